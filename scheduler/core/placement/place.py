"""Whole gangs onto nodes, all members in one vectorised step: all that are needed, or none.

A lone pod goes to the node that scores best. A gang is packed onto the fewest nodes whatever the profile says, the last
of them the one it fills best, since its members talk to each other and fragments block the next gang; only members
with terms about each other (anti-affinity, spreading) go one by one by score. Ties go to the first node by name.
Strict and NonStrict gangs are treated alike, as Koordinator does since v1.7 when a round ends.
"""

from __future__ import annotations

from scheduler.core.gangs.assembly import Candidate
from scheduler.core.placement.attempt import MemberGroups, Misfit, Placed, attempt, misfit, party_of
from scheduler.core.placement.fill import FillOptions
from scheduler.core.placement.pack import pack
from scheduler.core.placement.topology import place_by_topology
from scheduler.core.placement.working_snapshot import Assignment, WorkingSnapshot
from scheduler.core.scores.relative_scores import ScoredPod

__all__ = ["Misfit", "Placed", "pack", "place"]


def place(working: WorkingSnapshot, candidate: Candidate) -> Placed | Misfit:
    """Assignments for a workload in a working snapshot, which is left as it was: `working.put` makes them stand.

    If not all members fit, the needed ones are placed first and then as many more as there is room for. Packing
    several sizes is a heuristic: largest members first, and where that fails in the given order and smallest first.
    """
    member_groups = party_of(working, candidate)
    how = FillOptions(candidate.requester, working.policy(candidate.profile), pack)
    if candidate.workload.topology:
        return place_by_topology(working, member_groups, how)
    if candidate.workload.gang is None:
        return _lone(working, member_groups, how)
    return attempt(working, member_groups, how) or misfit(working, member_groups, how)


def _lone(working: WorkingSnapshot, member_groups: MemberGroups, how: FillOptions) -> Placed | Misfit:
    group = member_groups.first
    outlook = working.outlook(group.pod_class, group.member_traits[0], how.requester)
    row, choice = working.choose(ScoredPod(group.pod_class, group.member_traits[0], how.policy), outlook)
    if row < 0:
        return misfit(working, member_groups, how)
    report = working.report_of(outlook, group.pod_class, how.requester)
    return Placed((Assignment(group.uids[0], row, group.pod_class, group.member_traits[0]),), report, choice)
