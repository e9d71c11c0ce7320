"""Pods and PodGroups assembled into Workloads: what waits for nodes, and what cannot even be tried yet.

A gang's own state is read from its pods alone, never remembered: members that are bound, assumed or have succeeded
count towards the minimum, so a scheduler that restarts in the middle of a gang completes the gang.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from model.pod import Pod, PodPhase
from model.queue import DEFAULT_QUEUE
from model.reason import Reason
from model.workload import Gang, GangSource, GangSpec, PodSet, Workload
from scheduler.core.podclass import PodClass, class_of


class Candidate(msgspec.Struct, frozen=True):
    """A workload that may be placed; `classes` holds the equivalence class of each of its pod sets."""

    subject: str
    workload: Workload
    classes: tuple[PodClass, ...]

    @property
    def needed(self) -> int:
        """How many members must be placed at once; 0 where the minimum is met already."""
        return max(0, self.workload.min_total - self.workload.bound)

    @property
    def pending(self) -> int:
        """How many members wait."""
        return sum(pods.count for pods in self.workload.pod_sets)

    @property
    def uids(self) -> tuple[str, ...]:
        return tuple(uid for pods in self.workload.pod_sets for uid in pods.uids)


class Hold(msgspec.Struct, frozen=True):
    """Pods that are not tried, and why; `detail` names what to mend."""

    subject: str
    reason: Reason
    detail: str
    uids: tuple[str, ...]


class Assembly(msgspec.Struct, frozen=True):
    """What one subject's pods amount to; nothing at all where none of them waits."""

    candidate: Candidate | None = None
    holds: tuple[Hold, ...] = ()


class Roster(msgspec.Struct, frozen=True):
    """A gang's pods by how they count: each is in one of these, oldest first."""

    pending: tuple[Pod, ...] = ()
    placed: tuple[Pod, ...] = ()
    succeeded: tuple[Pod, ...] = ()
    failed: tuple[Pod, ...] = ()
    gated: tuple[Pod, ...] = ()
    unsupported: tuple[Pod, ...] = ()
    foreign: tuple[Pod, ...] = ()
    deleting: tuple[Pod, ...] = ()

    @property
    def satisfied(self) -> int:
        """Members that need no node any more."""
        return len(self.placed) + len(self.succeeded)

    @property
    def present(self) -> int:
        """Members that have a node, had one, or can be tried."""
        return self.satisfied + len(self.pending)


def subject_of(pod: Pod) -> str:
    """`gang/namespace/name` or, for a lone pod, `pod/namespace/name`."""
    return f"gang/{pod.gang.key}" if pod.gang else f"pod/{pod.key}"


def roster(pods: Iterable[Pod], assumed: Collection[str], schedulers: Collection[str]) -> Roster:
    """Sort pods by how they count; `assumed` are uids with a binding on its way, `schedulers` our scheduler names."""
    groups: dict[str, list[Pod]] = {}
    for pod in sorted(pods, key=_age):
        groups.setdefault(_standing(pod, assumed, schedulers), []).append(pod)
    return Roster(**{name: tuple(members) for name, members in groups.items()})


def _standing(pod: Pod, assumed: Collection[str], schedulers: Collection[str]) -> str:
    """The Roster field a pod belongs to."""
    if pod.phase is PodPhase.SUCCEEDED:
        return "succeeded"
    if pod.phase is PodPhase.FAILED:
        return "failed"
    if pod.deleting:
        return "deleting"
    if pod.node_name or pod.uid in assumed:
        return "placed"
    if pod.scheduler_name not in schedulers:
        return "foreign"
    if pod.gated:
        return "gated"
    return "unsupported" if pod.unsupported else "pending"


def assemble(subject: str, members: Roster, gang: Gang | None, queue: str = DEFAULT_QUEUE) -> Assembly:
    """The workload of one subject, or why it is held; `gang` is its PodGroup where one exists."""
    unsupported = tuple(_unsupported(pod) for pod in members.unsupported)
    if not members.pending:
        return Assembly(holds=unsupported)
    if subject.startswith("pod/"):
        return Assembly(_lone(subject, members.pending[0], queue), unsupported)
    hold = _hold(subject, members, gang)
    if hold is not None:
        return Assembly(holds=(hold, *unsupported))
    return Assembly(_gang(subject, members, spec_of(members, gang), gang, queue), unsupported)


def _unsupported(pod: Pod) -> Hold:
    fields = ", ".join(pod.unsupported)
    detail = f"pod {pod.key} uses {fields}; remove it or give the pod to another scheduler"
    return Hold(f"pod/{pod.key}", Reason.CONSTRAINT_NOT_SUPPORTED, detail, (pod.uid,))


def _lone(subject: str, pod: Pod, queue: str) -> Candidate:
    workload = Workload(
        key=pod.key,
        queue=queue,
        priority=pod.priority,
        pod_sets=(PodSet("0", (pod.uid,), pod.requests),),
        uid=pod.uid,
        created_seconds=pod.created_seconds,
        eligible_seconds=pod.created_seconds,
    )
    return Candidate(subject, workload, (class_of(pod),))


def _hold(subject: str, members: Roster, gang: Gang | None) -> Hold | None:
    """Why a gang is not tried, None where it may be."""
    key = subject.removeprefix("gang/")
    waiting = tuple(pod.uid for pod in members.pending)
    if gang is None and _needs_pod_group(members):
        detail = f"gang {key}: PodGroup {key} does not exist; create it, or correct the pods' label"
        return Hold(subject, Reason.GANG_NOT_FOUND, detail, waiting)
    spec = spec_of(members, gang)
    if spec.problem:
        return Hold(subject, Reason.GANG_INVALID, f"gang {key}: {spec.problem}", waiting)
    if members.present < spec.min_member:
        detail = f"gang {key}: {members.present} of {spec.min_member} members exist{_left_out(members)}"
        return Hold(subject, Reason.GANG_WAITING_FOR_MEMBERS, detail, waiting)
    return None


def _left_out(members: Roster) -> str:
    """The pods that exist but do not count, in words."""
    groups = (
        (members.gated, "gated"),
        (members.unsupported, "with constraints not supported"),
        (members.foreign, "of another scheduler"),
        (members.deleting, "being deleted"),
        (members.failed, "failed"),
    )
    told = ", ".join(f"{len(pods)} {word}" for pods, word in groups if pods)
    return f" (not counted: {told})" if told else ""


def _needs_pod_group(members: Roster) -> bool:
    counted = (*members.pending, *members.placed, *members.succeeded)
    return any(pod.gang is not None and pod.gang.source is GangSource.POD_GROUP for pod in counted)


def spec_of(members: Roster, gang: Gang | None) -> GangSpec:
    """The PodGroup's definition; for an annotation gang that of its oldest living pod, as Koordinator's first pod."""
    if gang is not None:
        return gang.spec
    if _needs_pod_group(members):
        return GangSpec(0, problem="its PodGroup does not exist")
    living = sorted((*members.pending, *members.placed, *members.succeeded), key=_age)
    specs = (pod.gang.spec for pod in living if pod.gang is not None and pod.gang.spec is not None)
    return next(specs, GangSpec(0, problem="no pod defines it"))


def _gang(subject: str, members: Roster, spec: GangSpec, gang: Gang | None, queue: str) -> Candidate:
    sets: dict[PodClass, list[Pod]] = {}
    for pod in members.pending:
        sets.setdefault(class_of(pod), []).append(pod)
    key = subject.removeprefix("gang/")
    counted = sorted((*members.pending, *members.placed, *members.succeeded), key=_age)
    workload = Workload(
        key=key,
        queue=queue,
        priority=max(pod.priority for pod in members.pending),
        pod_sets=tuple(
            PodSet(str(index), tuple(pod.uid for pod in pods), pods[0].requests)
            for index, pods in enumerate(sets.values())
        ),
        min_total=spec.min_member,
        bound=members.satisfied,
        gang=spec,
        uid=gang.uid if gang and gang.uid else key,
        created_seconds=gang.created_seconds if gang else counted[0].created_seconds,
        eligible_seconds=counted[spec.min_member - 1].created_seconds,
    )
    return Candidate(subject, workload, tuple(sets))


def _age(pod: Pod) -> tuple[float, str, str]:
    return (pod.created_seconds, pod.name, pod.uid)
