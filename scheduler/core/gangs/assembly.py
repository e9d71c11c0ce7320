"""Pods and PodGroups assembled into Workloads: what waits for nodes, and what cannot even be tried yet.

A gang's own state is read from its pods, and from its PodGroup's status: members that are bound, assumed or have
succeeded count towards the minimum, so a scheduler that restarts in the middle of a gang completes the gang. A gang
group is one workload, tried only when every gang of it has its minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from model.pod.pod import Pod
from model.priority import PreemptionPolicy
from model.queue import governing
from model.reason import Reason
from model.workload import DEFAULT_GANG_TIMEOUT_SECONDS, Gang, GangMode, GangSpec, PodSet, Workload, WorkloadId
from scheduler.core.gangs.groups import subject_of
from scheduler.core.gangs.holds import why_held
from scheduler.core.gangs.minimum import GangPart, belongs, part_of, spec_of, topology_of
from scheduler.core.gangs.roster import Roster, roster
from scheduler.core.gangs.tasks import place_key, place_needs
from scheduler.core.snapshot.assignment import Requester
from scheduler.core.snapshot.podclass import PodClass, PodTraits, class_of, pod_traits_of

__all__ = [
    "Assembly",
    "Candidate",
    "Hold",
    "GangPart",
    "Roster",
    "assemble",
    "assemble_parts",
    "part_of",
    "roster",
    "spec_of",
    "subject_of",
]

_NODE_TERMS = 32
"""So many terms about nodes cost as much as one about pods."""
_DOMAINS = 512
"""Asks of a gang of unlike members that wants to be together: a turn tries one or two of these."""
_STRICTNESS = (PreemptionPolicy.NEVER, PreemptionPolicy.LOWER, PreemptionPolicy.ALWAYS)


class Candidate(msgspec.Struct, frozen=True):
    """A workload that may be placed.

    `classes` holds the equivalence class of each of its pod sets, `member_traits` what others may see of each pod.
    `profile` is the scheduler name that its pods ask for; `online`: none of its waiting pods is of the mid, batch or
    free band.
    """

    subject: WorkloadId
    workload: Workload
    classes: tuple[PodClass, ...]
    member_traits: tuple[tuple[PodTraits, ...], ...] = ()
    profile: str = ""
    online: bool = False

    @property
    def governed_by(self) -> str:
        """The queue whose quota it asks; the root where no queue governs it."""
        return governing(self.workload.queue, online=True) if self.online else self.workload.queue

    @property
    def needed(self) -> int:
        """How many members must be placed at once; 0 where the minimum is met already."""
        workload = self.workload
        gangs = workload.gangs
        if gangs:
            return gangs[0][1] if len(gangs) == 1 else sum([needed for _, needed in gangs])
        missing = workload.min_total - workload.bound
        return missing if missing > 0 else 0

    @property
    def begun(self) -> bool:
        """Bound in part: some members have their nodes while others, which must be placed at once, have none."""
        return self.workload.gang is not None and self.workload.bound > 0 and self.needed > 0

    @property
    def pending(self) -> int:
        """How many members wait."""
        sets = self.workload.pod_sets
        return len(sets[0].uids) if len(sets) == 1 else sum([pods.count for pods in sets])

    @property
    def asks(self) -> int:
        """How often filters are asked to place all: once a class, once a member for each of its terms about pods.

        Terms about nodes are read once a class, and cost less. Where unlike members want one domain each of hundreds
        may be tried.
        """
        sets = zip(self.classes, self.workload.pod_sets, strict=False)  # a broken candidate is set aside elsewhere
        about_pods = sum(_terms(pod_class) * pods.count or 1 for pod_class, pods in sets)
        domains = _DOMAINS if self.workload.topology and about_pods > 1 else 0
        return about_pods + domains + sum(map(_node_terms, self.classes)) // _NODE_TERMS

    @property
    def uids(self) -> tuple[str, ...]:
        return tuple(uid for pods in self.workload.pod_sets for uid in pods.uids)

    @property
    def timeout_seconds(self) -> float:
        """How long room is kept for it; a lone pod gets what a gang gets that names no time."""
        gang = self.workload.gang
        return gang.timeout_seconds if gang else DEFAULT_GANG_TIMEOUT_SECONDS

    @property
    def requester(self) -> Requester:
        """In whose name it asks for room."""
        return Requester(self.subject, self.workload.outer_priority, self.online)


class Hold(msgspec.Struct, frozen=True):
    """Pods that are not tried, and why; `detail` names what to mend."""

    subject: WorkloadId
    reason: Reason
    detail: str
    uids: tuple[str, ...]


class Assembly(msgspec.Struct, frozen=True):
    """What one subject's pods amount to; nothing at all where none of them waits."""

    candidate: Candidate | None = None
    holds: tuple[Hold, ...] = ()


def assemble(
    subject: WorkloadId, members: Roster, gang: Gang | None, classes: Callable[[Pod], PodClass] = class_of
) -> Assembly:
    """The workload of a lone pod or of one gang, or why it is held; `gang` is its PodGroup where one exists.

    `classes` gives the class of a pod, one object for all equal ones where that is known: comparing it costs nothing.
    """
    if not subject.gangs:
        candidate = _lone(subject, members.pending[0], classes) if members.pending else None
        return Assembly(candidate, tuple(_unsupported(pod) for pod in members.unsupported))
    return assemble_parts(subject, (part_of(subject.name, members, gang),), classes)


def assemble_parts(
    subject: WorkloadId, parts: Sequence[GangPart], classes: Callable[[Pod], PodClass] = class_of
) -> Assembly:
    """The workload of a gang group, or why it is held; `parts` are all gangs its id names, in that order; `classes` as
    `assemble` has it.
    """
    own = tuple(part for part in parts if belongs(subject, part))
    unsupported = tuple(_unsupported(pod) for part in own for pod in part.members.unsupported)
    waiting = tuple(pod.uid for part in own for pod in part.members.pending)
    if not waiting:
        return Assembly(holds=unsupported)
    found = next((found for part in parts if (found := why_held(subject, part, parts))), None)
    if found is not None:
        reason, text = found
        return Assembly(holds=(Hold(subject, reason, text, waiting), *unsupported))
    return Assembly(_gang(subject, parts, classes), unsupported)


def _unsupported(pod: Pod) -> Hold:
    fields = ", ".join(pod.spec.unsupported)
    detail = f"pod {pod.key} uses {fields}; remove it or give the pod to another scheduler"
    return Hold(WorkloadId.pod(pod.key), Reason.CONSTRAINT_NOT_SUPPORTED, detail, (pod.uid,))


def _lone(subject: WorkloadId, pod: Pod, classes: Callable[[Pod], PodClass]) -> Candidate:
    workload = Workload(
        key=pod.key,
        queue=pod.spec.queue,
        priority=pod.spec.priority,
        pod_sets=(PodSet("0", (pod.uid,), pod.spec.requests),),
        uid=pod.uid,
        created_seconds=pod.created_seconds,
        eligible_seconds=pod.created_seconds,
        preemption_policy=pod.spec.preemption_policy,
    )
    online = not pod.colocation.below_prod
    return Candidate(subject, workload, (classes(pod),), ((pod_traits_of(pod),),), pod.spec.scheduler_name, online)


def _gang(subject: WorkloadId, parts: Sequence[GangPart], classes: Callable[[Pod], PodClass]) -> Candidate:
    sets = [(*key, pods) for part in parts for key, pods in _alike(part, classes).items()]
    bound = sum(part.had for part in parts)
    spec, eligible = _spec(parts), max(_complete(part) for part in parts)
    workload = Workload(
        key=subject.name,
        queue=sets[0][2][0].spec.queue,
        priority=max(_priority(part) for part in parts if part.members.pending),
        pod_priority=_pod_priority(parts) if spec.queue_priority else None,
        pod_sets=tuple(
            PodSet(str(index), tuple(pod.uid for pod in pods), pods[0].spec.requests, key)
            for index, (key, _, pods) in enumerate(sets)
        ),
        min_total=sum(part.spec.min_member for part in parts),
        bound=bound,
        gang=spec,
        uid=",".join(part.gang.uid if part.gang and part.gang.uid else part.key for part in parts),
        created_seconds=min(_created(part) for part in parts),
        eligible_seconds=eligible,
        deadline_seconds=eligible + spec.wait_seconds if spec.wait_seconds else None,
        preemption_policy=_policy(parts),
        topology=topology_of(parts),
        gangs=tuple(need for part in parts for need in place_needs(part)),
    )
    member_traits = tuple(tuple(pod_traits_of(pod) for pod in pods) for _, _, pods in sets)
    profile = sets[0][2][0].spec.scheduler_name
    online = not any(pod.colocation.below_prod for _, _, pods in sets for pod in pods)
    return Candidate(subject, workload, tuple(found for _, found, _ in sets), member_traits, profile, online)


def _spec(parts: Sequence[GangPart]) -> GangSpec:
    """One definition for a group: Strict where any of its gangs is, and as patient as the most patient of them; it goes
    before others as soon as any of them does.
    """
    first = parts[0].spec
    if len(parts) == 1:
        return first
    strict = any(part.spec.mode is GangMode.STRICT for part in parts)
    joint: GangSpec = msgspec.structs.replace(
        first,
        min_member=sum(part.spec.min_member for part in parts),
        mode=GangMode.STRICT if strict else GangMode.NON_STRICT,
        timeout_seconds=max(part.spec.timeout_seconds for part in parts),
        wait_seconds=min((part.spec.wait_seconds for part in parts if part.spec.wait_seconds), default=0.0),
    )
    return joint


def _alike(part: GangPart, classes: Callable[[Pod], PodClass]) -> dict[tuple[str, PodClass], list[Pod]]:
    """Waiting members by class, and by task where these are told apart, in the order in which they are placed: by rank
    where they have one, then by age.
    """
    sets: dict[tuple[str, PodClass], list[Pod]] = {}
    for pod in sorted(part.members.pending, key=lambda pod: (pod.spec.rank < 0, pod.spec.rank)):
        sets.setdefault((place_key(part, pod), classes(pod)), []).append(pod)
    return sets


def _priority(part: GangPart) -> int:
    """That of its highest waiting member, by the gang's own word."""
    return part.spec.priority_of(max(pod.spec.priority for pod in part.members.pending))


def _pod_priority(parts: Sequence[GangPart]) -> int:
    return max(pod.spec.priority for part in parts for pod in part.members.pending)


def _policy(parts: Sequence[GangPart]) -> PreemptionPolicy:
    """The most restrictive word of the gangs and of their waiting members."""
    own = (part.spec.preemption_policy for part in parts if part.spec.preemption_policy is not None)
    members = (pod.spec.preemption_policy for part in parts for pod in part.members.pending)
    return min((*own, *members), key=_STRICTNESS.index)


def _created(part: GangPart) -> float:
    return part.gang.created_seconds if part.gang else part.members.counted[0].created_seconds


def _complete(part: GangPart) -> float:
    """When the pod came that completed the minimum (Unix seconds); the newest one where some are gone since."""
    counted = part.members.counted
    return counted[min(part.spec.min_member, len(counted)) - 1].created_seconds if counted else _created(part)


def _terms(pod_class: PodClass) -> int:
    affinity, spread = pod_class.interpod.affinity, pod_class.interpod.spread
    return sum(map(len, (affinity.pods, affinity.anti_pods, affinity.preferred_pods, spread)))


def _node_terms(pod_class: PodClass) -> int:
    affinity = pod_class.tolerance.affinity
    return len(affinity.nodes or ()) + len(affinity.preferred_nodes)
