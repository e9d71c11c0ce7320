"""Why a decision came out as it did: one closed code per cause, and the one map of words for them.

Codes are stable: they are labels of metrics, reasons of Kubernetes Events and fields on the wire.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """A stable code; `words` turns it into a sentence fragment."""

    COMPUTED = "Computed"
    NODE_METRICS_MISSING = "NodeMetricsMissing"
    NODE_METRICS_STALE = "NodeMetricsStale"
    PODS_UNKNOWN = "PodsUnknown"
    PODS_STALE = "PodsStale"
    SETTINGS_UNREAD = "SettingsUnread"
    LENDING_DISABLED = "LendingDisabled"
    CEILING_NOT_POSSIBLE = "CeilingNotPossible"
    SUPPRESSION_DISABLED = "SuppressionDisabled"
    CONFIGURATION_INVALID = "ConfigurationInvalid"

    QUOTA_RAISED = "QuotaRaised"
    QUOTA_LOWERED = "QuotaLowered"
    BELOW_DEADBAND = "BelowDeadband"
    BRAKE = "Brake"
    WINDOW_FILLING = "WindowFilling"
    WEIGHT_HELD = "WeightHeld"
    PERIOD_HELD = "PeriodHeld"
    FOREIGN_WRITER_LOOSENED = "ForeignWriterLoosened"
    FOREIGN_WRITER_TIGHTER = "ForeignWriterTighter"
    KNOB_UNREADABLE = "KnobUnreadable"

    SCHEDULED = "Scheduled"
    UNSCHEDULABLE = "Unschedulable"
    GANG_WAITING_FOR_MEMBERS = "GangWaitingForMembers"
    GANG_INVALID = "GangInvalid"
    GANG_NOT_FOUND = "GangNotFound"
    GANG_DOES_NOT_FIT = "GangDoesNotFit"
    CONSTRAINT_NOT_SUPPORTED = "ConstraintNotSupported"
    BIND_FAILED = "BindFailed"


_WORDS: dict[Reason, str] = {
    Reason.COMPUTED: "computed from current facts",
    Reason.NODE_METRICS_MISSING: "no usage of the node is known yet",
    Reason.NODE_METRICS_STALE: "the node's usage was measured too long ago",
    Reason.PODS_UNKNOWN: "the pods of the node are not known",
    Reason.PODS_STALE: "the API server has been silent about the node's pods for too long",
    Reason.SETTINGS_UNREAD: "the cluster's settings were not read yet",
    Reason.LENDING_DISABLED: "lending is switched off",
    Reason.CEILING_NOT_POSSIBLE: "best effort's CPU ceiling cannot be held, so no CPU is lent",
    Reason.SUPPRESSION_DISABLED: "suppression is switched off: no ceiling of ours is in force",
    Reason.CONFIGURATION_INVALID: "a settings document is invalid or not read yet; the last good ones stay in force",
    Reason.QUOTA_RAISED: "more room is left: the ceiling rises by a step",
    Reason.QUOTA_LOWERED: "less room is left: the ceiling falls at once",
    Reason.BELOW_DEADBAND: "the change is too small to be worth a write",
    Reason.BRAKE: "online services surged: the brake cut the ceiling between two ticks",
    Reason.WINDOW_FILLING: "the live window is not full yet: nothing is raised",
    Reason.PERIOD_HELD: "the period is the one the ceiling is counted in",
    Reason.WEIGHT_HELD: "best-effort weight stays at the kernel's minimum",
    Reason.FOREIGN_WRITER_LOOSENED: "the kernel held another value: ours is written",
    Reason.FOREIGN_WRITER_TIGHTER: "somebody else set a tighter value: it is left alone until they write a looser one",
    Reason.KNOB_UNREADABLE: "the control file cannot be read",
    Reason.SCHEDULED: "placed",
    Reason.UNSCHEDULABLE: "no node fits",
    Reason.GANG_WAITING_FOR_MEMBERS: "the gang has fewer pods than its minimum",
    Reason.GANG_INVALID: "the gang's own definition is invalid",
    Reason.GANG_NOT_FOUND: "the PodGroup named by the pod does not exist",
    Reason.GANG_DOES_NOT_FIT: "not all needed members of the gang fit at once",
    Reason.CONSTRAINT_NOT_SUPPORTED: "the pod asks for a constraint this scheduler does not know, so it is not placed",
    Reason.BIND_FAILED: "the API server refused the binding",
}


def words(reason: Reason) -> str:
    """The sentence fragment for a code."""
    return _WORDS[reason]
