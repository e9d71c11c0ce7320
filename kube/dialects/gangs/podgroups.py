"""PodGroup objects as gangs: scheduler-plugins' definition, which Koordinator builds on, and Kubernetes' own.

Source: Koordinator apis/thirdparty/scheduler-plugins; k8s.io/api/scheduling/v1beta1 (KEP-4671, KEP-5710, KEP-5732).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kube.dialects.gangs import networktopology
from kube.dialects.gangs.membership import USUAL, GangDefaults, spec_of
from kube.dialects.sublet.preemption import policy_word
from kube.objects import (
    Condition,
    PodGroup,
    PodGroupStatus,
    Time,
    UpstreamPodGroup,
    UpstreamPodGroupSpec,
    VolcanoPodGroup,
    unix_seconds,
)
from model.condition import ConditionStatus, ConditionType
from model.fault import ConfigurationFault
from model.reason import Reason
from model.workload import Gang, GangMode, GangPhase, GangSource, GangSpec, GangTimes, MatchPolicy, TopologyLevel

PARTIAL_SINCE = "sublet.dev/partially-bound-since"
WHOLE_SINCE = "sublet.dev/whole-since"
_PHASES = {member.value: member for member in GangPhase}
_WHOLE_GROUP = ("All", "PodGroup")


def pod_group(group: PodGroup, defaults: GangDefaults = USUAL) -> Gang:
    """A PodGroup object; a minMember below 1 becomes the spec's `problem`, naming object and field."""
    metadata = group.metadata
    key = f"{metadata.namespace}/{metadata.name}"
    minimum = group.spec.min_member
    timeout = group.spec.schedule_timeout_seconds
    status = group.status or PodGroupStatus()
    if isinstance(minimum, bool) or not isinstance(minimum, int) or not 1 <= minimum < 1 << 31:
        told = "is missing" if minimum is None else f"is {repr(minimum)[:60]}"
        spec = GangSpec(0, problem=f"PodGroup {key}: spec.minMember {told}; write a whole number of 1 or more")
    else:
        seconds = float(timeout) if isinstance(timeout, int) and 0 < timeout < 1 << 31 else None
        spec = spec_of(minimum, key, metadata.annotations or {}, defaults, seconds)
    told = phase(status)
    noted = times_with(told, read_times(group)[0])
    return Gang(
        namespace=metadata.namespace,
        name=metadata.name,
        spec=spec,
        uid=metadata.uid,
        phase=told,
        partial_seconds=noted.partial_seconds,
        whole_seconds=noted.whole_seconds,
        created_seconds=unix_seconds(metadata.creation_timestamp),
    )


def read_times(group: PodGroup | VolcanoPodGroup) -> tuple[GangTimes, tuple[str, ...]]:
    """The scheduler's annotations on a PodGroup as they stand, and what is wrong with those that are no time."""
    metadata, problems = group.metadata, list[str]()

    def seconds(name: str) -> float:
        text = (metadata.annotations or {}).get(name)
        found = _unix(text)
        if text is not None and not found:
            told = f"PodGroup {metadata.namespace}/{metadata.name}: metadata.annotations[{name}] is {text[:60]!r}"
            problems.append(f"{told}; remove it or write a time such as 2026-01-01T00:00:00Z")
        return found

    return GangTimes(seconds(PARTIAL_SINCE), seconds(WHOLE_SINCE)), tuple(problems)


def _unix(text: str | None) -> float:
    """Unix seconds of an RFC 3339 time, 0 for anything else."""
    try:
        return unix_seconds(msgspec.convert(text, Time))
    except msgspec.ValidationError:
        return 0.0


def phase(status: PodGroupStatus) -> GangPhase:
    """A word that nobody here knows is UNKNOWN."""
    return _PHASES.get(status.phase, GangPhase.UNKNOWN)


def times_with(phase: GangPhase, read_times: GangTimes) -> GangTimes:
    """What times mean beside the phase: where that says that the minimum was bound, the time of a part is outdated."""
    outdated = read_times.whole_seconds or phase.bound
    return GangTimes(0.0, read_times.whole_seconds) if outdated else read_times


def upstream_gang(group: UpstreamPodGroup, defaults: GangDefaults = USUAL) -> Gang:
    """scheduling.k8s.io's PodGroup. Policy basic holds no member back for another: a minimum of one."""
    metadata = group.metadata
    told = (group.status.conditions if group.status else None) or ()
    return Gang(
        namespace=metadata.namespace,
        name=metadata.name,
        spec=_upstream_spec(group, f"PodGroup {metadata.namespace}/{metadata.name}", defaults),
        uid=metadata.uid,
        created_seconds=unix_seconds(metadata.creation_timestamp),
        source=GangSource.UPSTREAM,
        phase=GangPhase.SCHEDULED if _is_true(told, ConditionType.GROUP_SCHEDULED) else GangPhase.UNSET,
        partial_seconds=partially_bound_since(told),
    )


def _upstream_spec(group: UpstreamPodGroup, where: str, defaults: GangDefaults) -> GangSpec:
    """With a `problem` its own words on priority and disruption hold all the same, for its pods that run."""
    spec = group.spec
    said = GangSpec(
        0,
        priority=spec.priority,
        preemption_policy=policy_word(spec.preemption_policy) if spec.preemption_policy else None,
        whole=_whole(spec),
    )
    problem = _problem(spec, where)
    if problem:
        return msgspec.structs.replace(said, problem=problem)
    try:
        topology = _topology(group, where)
    except ConfigurationFault as fault:
        return msgspec.structs.replace(said, problem=str(fault))
    gang = spec.scheduling_policy.gang
    return msgspec.structs.replace(
        said,
        min_member=gang.min_count if gang else 1,
        mode=GangMode.STRICT if gang else GangMode.NON_STRICT,
        timeout_seconds=defaults.timeout_seconds,
        match=MatchPolicy.WAITING_AND_RUNNING,
        topology=topology,
    )


def _problem(spec: UpstreamPodGroupSpec, where: str) -> str:
    gang = spec.scheduling_policy.gang
    if gang is None and spec.scheduling_policy.basic is None:
        return f"{where}: spec.schedulingPolicy is empty; set gang.minCount or basic"
    if gang is not None and gang.min_count < 1:
        told = f"{where}: spec.schedulingPolicy.gang.minCount is {gang.min_count}"
        return f"{told}; write a whole number of 1 or more"
    return ""


def _topology(group: UpstreamPodGroup, where: str) -> tuple[TopologyLevel, ...]:
    """The spec's constraints, and annotations where it has none."""
    constraints = group.spec.scheduling_constraints
    told = constraints.topology if constraints else None
    if told:
        networktopology.require_few(len(told), f"{where}: spec.schedulingConstraints.topology")
        return tuple(TopologyLevel(each.key, required=True) for each in told if each.key)
    return networktopology.levels(group.metadata.annotations or {}, where)


def _whole(spec: UpstreamPodGroupSpec) -> bool:
    """Mode `all` is an object with that key since v1alpha3, and a word before."""
    mode = spec.disruption_mode
    return mode.get("all") is not None if isinstance(mode, dict) else mode in _WHOLE_GROUP


def initially_scheduled(told: Sequence[Condition], placed: bool, message: str, now: str) -> Condition | None:
    """The condition to write on scheduling.k8s.io's PodGroup, None where what stands there says it already.

    True is final. `now` is an RFC 3339 time; the time of the last transition stays while the status does.
    """
    before = next((each for each in told if each.type == ConditionType.GROUP_SCHEDULED), Condition())
    status = ConditionStatus.TRUE if placed else ConditionStatus.FALSE
    reason = Reason.SCHEDULED if placed else Reason.UNSCHEDULABLE
    if before.met or (before.status, before.reason, before.message) == (status, reason, message):
        return None
    since = before.last_transition_time if before.status == status and before.last_transition_time else now
    return Condition(ConditionType.GROUP_SCHEDULED, status, reason, message, last_transition_time=since)


def partially_bound(told: Sequence[Condition], partial: bool, since: str) -> Condition | None:
    """The condition to write while a gang is bound without its minimum, and once it is not; None where it stands."""
    before = next((each for each in told if each.type == ConditionType.PARTIALLY_BOUND), None)
    if partial == (before is not None and before.met):
        return None
    if partial:
        message = "some members have a node and others, which must be placed with them, have none"
        return Condition(
            ConditionType.PARTIALLY_BOUND, ConditionStatus.TRUE, "WaitsForMembers", message, last_transition_time=since
        )
    message = "its minimum is bound, or nobody is"
    return Condition(
        ConditionType.PARTIALLY_BOUND, ConditionStatus.FALSE, "Settled", message, last_transition_time=since
    )


def partially_bound_since(told: Sequence[Condition]) -> float:
    """Unix time since when the condition is true, 0 where it is not."""
    found = (each.last_transition_time for each in told if each.type == ConditionType.PARTIALLY_BOUND and each.met)
    return _unix(next(found, None))


def _is_true(told: Sequence[Condition], kind: str) -> bool:
    return any(each.type == kind and each.met for each in told)
