"""Gangs that want to be together: all members in one domain of their topology, the one that they fill best.

A required level is kept to, a preferred one is tried first, from the narrowest on. Domains are taken in the order: most
members of the job there already, fewest slots to spare, name (Koordinator's network topology solver). Members that are
there already bind the rest to their domain where the level is required.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from model.reason import Reason
from model.workload import TopologyLevel, WorkloadId
from scheduler.core.filters import fit
from scheduler.core.filters.fit import FitReport, Refused
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.placement.attempt import MemberGroups, Misfit, Placed, attempt, misfit
from scheduler.core.placement.domains import Domains, TopologyDomains
from scheduler.core.placement.fill import FillOptions, Group
from scheduler.core.placement.working_snapshot import WorkingSnapshot
from scheduler.core.snapshot.snapshot import Amounts, Mask

OUTSIDE = "node(s) were outside the domain that holds most of the gang"
_SHOWN_KEY = 63 + 1 + 253
"""Characters of a node label's key that are told: Kubernetes allows no longer one, an annotation may hold any text."""

_REQUIRED_TRIES, _PREFERRED_TRIES = 256, 16
"""The first domain fits wherever members are all alike; members of several sizes, or that keep apart, may need more."""
_GROUPS_TRIED, _LEAST_TRIES = 256, 8
"""Groups of unlike members that are tried in all domains together; at least so many domains are. Whoever makes a gang
may make it so that it fits none of them: 300 domains took 0.05 s each time it was placed.
"""


def place_by_topology(working: WorkingSnapshot, member_groups: MemberGroups, how: FillOptions) -> Placed | Misfit:
    """Assignments in one domain of the narrowest level that works; else, if none is required, in few domains."""
    levels = member_groups.candidate.workload.topology
    required = max((depth for depth, level in enumerate(levels) if level.required), default=-1)
    topology_domains = TopologyDomains(working.domains(tuple(level.key for level in levels)), levels)
    members_by_node = _members_by_node(working, member_groups.candidate)
    for depth in range(len(levels) - 1, max(required, 0) - 1, -1):
        for code in _ranked(
            working, member_groups, how, _At(topology_domains, depth, members_by_node, levels[depth].required)
        ):
            placed = attempt(working, member_groups, _inside(topology_domains, depth, code, how))
            if placed is not None:
                return placed
    if required < 0:
        few = FillOptions(how.requester, how.policy, topology_domains.everywhere)
        return (
            attempt(working, member_groups, few)
            or attempt(working, member_groups, how)
            or misfit(working, member_groups, how)
        )
    return _nowhere(working, member_groups, how, _At(topology_domains, required, members_by_node, required=True))


def unlabelled(working: WorkingSnapshot, levels: tuple[TopologyLevel, ...]) -> list[Refused]:
    """Nodes that no required level has a place for, by the label they lack."""
    required = max((depth for depth, level in enumerate(levels) if level.required), default=-1)
    domains = working.domains(tuple(level.key for level in levels))
    return _lacking(domains, levels[: required + 1])


def _lacking(domains: Domains, levels: tuple[TopologyLevel, ...]) -> list[Refused]:
    """Nodes by the widest label of the levels that they do not carry."""
    found: list[Refused] = []
    outer = np.full(len(domains.codes[0]) if levels else 0, True)
    for level, codes in zip(levels, domains.codes, strict=False):
        found.append((outer & (codes < 0), f"node(s) have no label {level.key[:_SHOWN_KEY]}"))
        outer = codes >= 0
    return found


def _members_by_node(working: WorkingSnapshot, candidate: Candidate) -> Amounts:
    """By row, how many of them are there already; of a group, the members of all its gangs."""
    if not candidate.workload.bound:
        return np.zeros(len(working.snapshot.names), np.int64)
    jobs = {candidate.subject, *(WorkloadId.gang(key) for key, _ in candidate.workload.gangs)}
    return np.asarray(sum(working.members_by_node(job) for job in sorted(jobs)))


class _At:
    """A level of the topology domains, with the members that are there already."""

    def __init__(self, topology_domains: TopologyDomains, depth: int, members_by_node: Amounts, required: bool) -> None:
        self.topology_domains, self.depth, self.required = topology_domains, depth, required
        self.members = topology_domains.domains.sums(members_by_node, depth, topology_domains.domains.codes[depth])

    def slots(self, working: WorkingSnapshot, group: Group, how: FillOptions) -> Amounts:
        """Per domain, how many of the group it holds; an upper bound where members keep apart."""
        room = working.outlook(group.pod_class, group.member_traits[0], how.requester).room
        return self.topology_domains.slots(np.minimum(room, len(group.uids)), self.depth)


def _ranked(working: WorkingSnapshot, member_groups: MemberGroups, how: FillOptions, at: _At) -> Iterator[int]:
    """Domains that may hold what is needed, those that may hold all members first."""
    slots = np.array([at.slots(working, group, how) for group in member_groups.groups])
    needed, pending = sum(member_groups.needs.values()), member_groups.candidate.pending
    whole = np.logical_and.reduce([slots[i] >= len(group.uids) for i, group in enumerate(member_groups.groups)])
    total = np.minimum(slots.sum(axis=0), pending)
    fitting = np.flatnonzero((total >= max(needed, 1)) & _enough(working, member_groups, how, at))
    if at.required and at.members.any():
        fitting = fitting[at.members[fitting] == at.members.max()]
    order = np.lexsort((fitting, slots.sum(axis=0)[fitting], -total[fitting], ~whole[fitting], -at.members[fitting]))
    tries = min(
        _REQUIRED_TRIES if at.required else _PREFERRED_TRIES,
        max(_LEAST_TRIES, _GROUPS_TRIED // len(member_groups.groups)),
    )
    return iter(fitting[order][:tries].tolist())


def _enough(working: WorkingSnapshot, member_groups: MemberGroups, how: FillOptions, at: _At) -> Mask:
    """Domains that have as much as all members ask for together; each size by itself may seem to fit."""
    codes, domains = at.topology_domains.domains.codes[at.depth], at.topology_domains.domains
    found = np.full(len(domains.names[at.depth]), True)
    if len(member_groups.groups) == 1 or member_groups.elastic:
        return found
    asked = np.sum([fit.use(working.snapshot, group.pod_class) * len(group.uids) for group in member_groups.groups], 0)
    free = np.minimum(working.free_for(how.requester).clip(min=0), asked)
    for column in np.flatnonzero(asked).tolist():
        found &= domains.sums(free[:, column], at.depth, codes) >= asked[column]
    return found


def _inside(topology_domains: TopologyDomains, depth: int, code: int, how: FillOptions) -> FillOptions:
    def choose(room: Amounts, want: int) -> Amounts:
        return topology_domains.allot(room, want, depth, code)

    return FillOptions(how.requester, how.policy, choose, topology_domains.domains.codes[depth] == code)


def _nowhere(working: WorkingSnapshot, member_groups: MemberGroups, how: FillOptions, at: _At) -> Misfit:
    """Told of the domain that holds most of them, and of nodes that are in none for want of a label."""
    codes = at.topology_domains.domains.codes[at.depth]
    slots = at.slots(working, member_groups.first, how)
    if not len(slots):
        unknown = _carried_by_none(working, at)
        if unknown:
            return _unlabelled(working, member_groups, unknown)
        how = FillOptions(how.requester, how.policy, how.choose, codes >= 0)
        return misfit(
            working,
            member_groups,
            how,
            _lacking(at.topology_domains.domains, at.topology_domains.levels[: at.depth + 1]),
        )
    code = int(np.lexsort((np.arange(len(slots)), -slots, -at.members))[0])
    return misfit(
        working,
        member_groups,
        _inside(at.topology_domains, at.depth, code, how),
        (*_lacking(at.topology_domains.domains, at.topology_domains.levels[: at.depth + 1]), (codes != code, OUTSIDE)),
    )


def _carried_by_none(working: WorkingSnapshot, at: _At) -> str:
    """The widest label asked for that is on no node, empty where each is on some."""
    keys = (level.key for level in at.topology_domains.levels[: at.depth + 1])
    return next((key for key in keys if not any(key in labels for labels in working.snapshot.traits.labels)), "")


def _unlabelled(working: WorkingSnapshot, member_groups: MemberGroups, key: str) -> Misfit:
    """A label that no node carries makes no domain, whatever room there is."""
    nodes, ahead = len(working.snapshot.names), f"no node has label {key[:_SHOWN_KEY]}"
    report = FitReport(nodes, 0, (((ahead,), nodes),) if nodes else (), ahead)
    return Misfit(
        0, report, Reason.NODE_SELECTOR_MISMATCH, member_groups.first.pod_class, member_groups.first.member_traits[0]
    )
