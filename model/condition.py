"""Conditions of Kubernetes objects that Sublet reads or writes."""

from __future__ import annotations

from enum import StrEnum


class ConditionStatus(StrEnum):
    """Whether a condition is met."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class ConditionType(StrEnum):
    """What a condition is about."""

    COLOCATION_READY = "ColocationReady"
    """A Node's: its agent lends there. Ours."""
    READY = "Ready"
    POD_SCHEDULED = "PodScheduled"
    INITIALIZED = "Initialized"
    DISRUPTION_TARGET = "DisruptionTarget"
    GROUP_SCHEDULED = "PodGroupInitiallyScheduled"
    """A scheduling.k8s.io PodGroup's."""
    PARTIALLY_BOUND = "sublet.dev/PartiallyBound"
    """A scheduling.k8s.io PodGroup's: bound below its minimum, which it never had. Ours."""
