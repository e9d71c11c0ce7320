"""One attempt to place a workload: all members, or those needed and as many more as there is room for, or nobody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from model.reason import Reason
from scheduler.core.filters import fit
from scheduler.core.filters.cause import cause
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.placement.fill import FillOptions, Group, PlacementTrial, fill
from scheduler.core.placement.working_snapshot import Assignment, WorkingSnapshot
from scheduler.core.scores.choice import NodeChoice
from scheduler.core.snapshot.podclass import PodClass, PodTraits
from scheduler.core.snapshot.snapshot import ClusterSnapshot

_GROUPS_TRIED = 128
"""Groups of unlike members that are asked for in all orders: whoever makes a gang chooses how many there are."""


class Placed(msgspec.Struct, frozen=True):
    """At least the needed members have a node; `report` is of the first class, before any of them was placed; `choice`
    says why a lone pod has its node."""

    assignments: tuple[Assignment, ...]
    report: fit.FitReport
    choice: NodeChoice | None = None


class Misfit(msgspec.Struct, frozen=True):
    """`fits` of the waiting members would fit, fewer than needed; the rest is about the next member after those.

    `short` and `pod_traits` are that member's.
    """

    fits: int
    report: fit.FitReport
    cause: Reason = Reason.UNSCHEDULABLE
    short: PodClass = PodClass()
    pod_traits: PodTraits = PodTraits()


class MemberGroups(msgspec.Struct, frozen=True):
    """A candidate's members in groups alike; `needs` is how many of each gang must be placed, `counts` how many
    wait.
    """

    candidate: Candidate
    groups: tuple[Group, ...]
    needs: Mapping[str, int]
    counts: Mapping[str, int]

    @property
    def first(self) -> Group:
        return self.groups[0]

    @property
    def elastic(self) -> bool:
        """Whether fewer than all will do."""
        return any(self.needs[gang] < number for gang, number in self.counts.items())


def party_of(working: WorkingSnapshot, candidate: Candidate) -> MemberGroups:
    """Members that differ only in what residents' terms say of them are groups of their own."""
    workload = candidate.workload
    grouped = bool(workload.gangs)
    member_traits = candidate.member_traits or tuple((PodTraits(),) * pods.count for pods in workload.pod_sets)
    sets = zip(candidate.classes, workload.pod_sets, member_traits, strict=True)
    groups = [Group(pod_class, pods.uids, own, pods.gang if grouped else "") for pod_class, pods, own in sets]
    if working.indexed:
        groups = [part for group in groups for part in _apart(working, group)]
    counts: dict[str, int] = {}
    for group in groups:
        counts[group.gang] = counts.get(group.gang, 0) + len(group.uids)
    needs = dict.fromkeys(counts, 0) | (dict(workload.gangs) if grouped else {"": candidate.needed})
    return MemberGroups(candidate, tuple(groups), needs, counts)


def _apart(working: WorkingSnapshot, group: Group) -> Iterator[Group]:
    members: dict[object, list[int]] = {}
    known: dict[PodTraits, object] = {}
    for index, pod_traits in enumerate(group.member_traits):
        if pod_traits not in known:
            known[pod_traits] = working.pod_index.objections(pod_traits)
        members.setdefault(known[pod_traits], []).append(index)
    for indexes in members.values():
        uids, member_traits = tuple(group.uids[i] for i in indexes), tuple(group.member_traits[i] for i in indexes)
        yield Group(group.pod_class, uids, member_traits, group.gang)


def attempt(working: WorkingSnapshot, member_groups: MemberGroups, how: FillOptions) -> Placed | None:
    """Assignments, or None where the needed members do not all fit. Several sizes: the orders are tried one by one."""
    orders = _orders(working.snapshot, member_groups.groups)
    before = working.report(member_groups.first.pod_class, member_groups.first.member_traits[0], how.requester)
    with PlacementTrial(working) as trial:
        whole = fill(trial, orders[0], member_groups.counts, how, whole=len(orders[0]) > 1)
    if whole.short is None or (
        len(member_groups.groups) == 1
        and whole.assignments
        and len(whole.assignments) >= sum(member_groups.needs.values())
    ):
        return Placed(whole.assignments, before)
    if len(member_groups.groups) == 1:
        return None
    for order in orders if member_groups.elastic else orders[1:]:
        assignments = _least_and_more(working, member_groups, order, how)
        if assignments:
            return Placed(assignments, before)
    return None


def _least_and_more(
    working: WorkingSnapshot, member_groups: MemberGroups, order: Sequence[Group], how: FillOptions
) -> tuple[Assignment, ...]:
    """The needed members of each gang, then as many more as there is room for; nobody where the first does not work."""
    with PlacementTrial(working) as trial:
        least = fill(trial, order, member_groups.needs, how, whole=True)
        if least.short is not None:
            return ()
        left = {gang: number - member_groups.needs[gang] for gang, number in member_groups.counts.items()}
        return least.assignments + fill(trial, least.rest, left, how).assignments


def misfit(
    working: WorkingSnapshot, member_groups: MemberGroups, how: FillOptions, extra: Sequence[fit.Refused] = ()
) -> Misfit:
    """Why the member groups do not fit: how far it gets, largest members first, and what the next one lacks."""
    if working.silent:
        return Misfit(
            0, working.report(member_groups.first.pod_class, member_groups.first.member_traits[0], how.requester)
        )
    with PlacementTrial(working) as trial:
        whole = fill(trial, _orders(working.snapshot, member_groups.groups)[0], member_groups.counts, how)
        short = whole.short or member_groups.first
        after = trial.working
        outlook = after.outlook(short.pod_class, short.member_traits[0], how.requester)
        report = after.report_of(outlook, short.pod_class, how.requester, extra)
        free = after.free_for(how.requester)
        reason = cause(after.snapshot, free, short.pod_class, outlook.obstacles, outlook.refused)
    return Misfit(len(whole.assignments), report, reason, short.pod_class, short.member_traits[0])


def _orders(snapshot: ClusterSnapshot, groups: tuple[Group, ...]) -> tuple[tuple[Group, ...], ...]:
    """Largest members first, as given, smallest first; each order once, and of many groups the first order alone."""
    if len(groups) == 1:
        return (groups,)
    totals = snapshot.totals
    largest = tuple(sorted(groups, key=lambda group: _size(totals, group.pod_class), reverse=True))
    return tuple(dict.fromkeys((largest, groups, largest[::-1])))[: max(1, _GROUPS_TRIED // len(groups))]


def _size(totals: Mapping[str, int], pod_class: PodClass) -> float:
    """The largest share of the cluster one pod asks for."""
    return max((amount / max(totals[name], 1) for name, amount in pod_class.request if name in totals), default=0.0)
