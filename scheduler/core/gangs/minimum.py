"""Minimum of a gang: how many of its waiting members are needed, by its match policy.

Koordinator's flag "satisfied once" is set by the first member seen with a node, so a restart in the middle of binding
releases the rest as single pods (pkg/scheduler/plugins/coscheduling/core/gang.go, addBoundPod). Here the minimum was
met only once that many members had a node, or had completed, at the same time. What such a gang gets later, a
replacement of a lost member for instance, is placed alone, without waiting for others.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.workload import Gang, GangPhase, GangSpec, MatchPolicy, TopologyLevel, WorkloadId
from scheduler.core.gangs.roster import Roster, age


class GangPart(msgspec.Struct, frozen=True):
    """One gang of a workload; `gang` is its PodGroup where one exists, `met` whether its minimum was ever met.

    `ran` is what to remember of it: bindings can fail and kubelets reject, running and completed members are proof.
    """

    key: str
    members: Roster
    gang: Gang | None
    spec: GangSpec
    met: bool
    ran: bool = False

    @property
    def needed(self) -> int:
        """How many of its waiting members must be placed at once; 0 where any number helps."""
        spec = self.spec
        if spec.match is MatchPolicy.ONLY_WAITING:
            return spec.min_member if self.members.pending else 0
        if spec.match is MatchPolicy.ONCE_SATISFIED and self.met:
            return 0
        return max(0, spec.min_member - self.counted)

    @property
    def counted(self) -> int:
        """Members that need no node any more and count towards the minimum."""
        return satisfied(self.members, self.spec)

    @property
    def had(self) -> int:
        """How many members count towards the minimum already."""
        return 0 if self.spec.match is MatchPolicy.ONLY_WAITING else self.counted

    @property
    def missing(self) -> bool:
        """Whether too few members exist for what is needed."""
        return self.needed > len(self.members.pending)


def part_of(key: str, members: Roster, gang: Gang | None, *, ran: bool = False) -> GangPart:
    """A gang as it stands; `ran` is what is remembered from before, or read from where it was noted."""
    spec = spec_of(members, gang)
    ran = ran or _runs(members, spec, gang)
    return GangPart(key, members, gang, spec, ran or _meets(members, spec, gang), ran)


def spec_of(members: Roster, gang: Gang | None) -> GangSpec:
    """The PodGroup's definition; for an annotation gang that of its oldest living pod, as Koordinator's first pod."""
    if gang is not None:
        return gang.spec
    if lacks_object(members):
        return GangSpec(0, problem="its PodGroup does not exist")
    gangs = (pod.spec.gang for pod in members.counted)
    specs = (gang.spec for gang in gangs if gang is not None and gang.spec is not None)
    return next(specs, GangSpec(0, problem="no pod defines it"))


def satisfied(members: Roster, spec: GangSpec) -> int:
    """How many members are placed, or are through where these count."""
    return len(members.placed) if spec.live else members.satisfied


def lacks_object(members: Roster) -> bool:
    """Whether its pods say that an object defines their gang; asked where there is none."""
    gangs = (pod.spec.gang for pod in members.counted)
    return any(gang is not None and gang.spec is None for gang in gangs)


def belongs(subject: WorkloadId, part: GangPart) -> bool:
    """Whether a gang lists the group under whose subject it is looked at."""
    return WorkloadId.gang(part.key, *part.spec.groups) == subject


def topology_of(parts: Iterable[GangPart]) -> tuple[TopologyLevel, ...]:
    """The topology of a group: that of its first gang that asks for one."""
    return next((part.spec.topology for part in parts if part.spec.topology), ())


def original(members: Roster) -> tuple[Pod, ...]:
    """Members created before the first of them was bound; all of them where none was or the time is not known."""
    times = (pod.status.scheduled_seconds for pod in (*members.placed, *members.succeeded))
    bound = [seconds for seconds in times if seconds]
    if not bound:
        return members.counted
    return tuple(sorted((pod for pod in members.counted if pod.created_seconds <= min(bound)), key=age))


def _runs(members: Roster, spec: GangSpec, gang: Gang | None) -> bool:
    """Whether the minimum of members runs or is through, or the PodGroup's status says that it did."""
    if spec.problem:
        return False
    running = sum(pod.status.phase is PodPhase.RUNNING for pod in members.placed)
    told = gang is not None and (gang.phase.ran or gang.whole_seconds > 0)
    through = 0 if spec.live else len(members.succeeded)
    return told or running + through >= spec.min_member


def _meets(members: Roster, spec: GangSpec, gang: Gang | None) -> bool:
    """Whether the minimum has a node, or had one by the PodGroup's status; a kubelet may undo `Scheduled`."""
    if spec.problem:
        return False
    told = gang is not None and gang.phase is GangPhase.SCHEDULED and not members.rejected
    return told or satisfied(members, spec) >= spec.min_member
