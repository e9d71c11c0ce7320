"""Status of a pod: its phase, its times, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kube import objects
from model.condition import ConditionType
from model.pod.status import PodPhase

_PHASES = {member.value: member for member in PodPhase}
_OUT_OF = "OutOf"
_REFUSALS = frozenset(
    {
        "AppArmor",
        "Evicted",
        "InitContainerRestartPolicyForbidden",
        "InvalidNodeInfo",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "NodeShutdown",
        "NodeUnschedulable",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "SysctlForbidden",
        "TaintToleration",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
        "UnexpectedPredicateFailureType",
    }
)
"""status.reason of a pod that a kubelet refuses at admission, besides OutOf<resource> (pkg/kubelet/lifecycle,
pkg/kubelet/eviction, pkg/kubelet/nodeshutdown, pkg/kubelet/cm)."""


class Conditions(msgspec.Struct):
    """What the conditions tell; times in Unix seconds, 0 where a condition is not met."""

    scheduled_seconds: float = 0.0
    initialized_seconds: float = 0.0
    disrupted: bool = False
    evicted: bool = False


def conditions(told: Iterable[objects.Condition]) -> Conditions:
    """PodScheduled, Initialized, and DisruptionTarget, of a scheduler's preemption or any other."""
    found = Conditions()
    for each in told:
        if not each.met:
            continue
        match each.type:
            case ConditionType.POD_SCHEDULED:
                found.scheduled_seconds = _since(each)
            case ConditionType.INITIALIZED:
                found.initialized_seconds = _since(each)
            case ConditionType.DISRUPTION_TARGET:
                found.disrupted, found.evicted = each.reason == "PreemptionByScheduler", True
    return found


def _since(told: objects.Condition) -> float:
    """Unix seconds; 0 where the time is missing or none."""
    try:
        return msgspec.convert(told.last_transition_time, objects.Time).timestamp()
    except msgspec.ValidationError:
        return 0.0


def phase(status: objects.PodStatus) -> PodPhase:
    """An unknown or unset phase is Pending."""
    return _PHASES.get(status.phase, PodPhase.PENDING)


def container_ids(status: objects.PodStatus) -> dict[str, str]:
    """Of every container that was ever started, init containers and sidecars among them."""
    if not status.container_statuses and not status.init_container_statuses:
        return {}
    told = [*(status.container_statuses or ()), *(status.init_container_statuses or ())]
    return {item.name: item.container_id.rpartition("://")[2] for item in told if item.container_id}


def rejected(status: objects.PodStatus) -> str:
    """status.reason of a pod that its kubelet refused before any container ran; empty for every other pod."""
    if status.phase != PodPhase.FAILED or not (status.reason.startswith(_OUT_OF) or status.reason in _REFUSALS):
        return ""
    return "" if container_ids(status) else status.reason
