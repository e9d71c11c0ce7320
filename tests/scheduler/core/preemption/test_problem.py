"""The question put into arrays: who is asked for, who may go, what is coming free, and whether amounts alone decide."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from filter_builders import HOST, apart, term
from preemption_builders import NOW, Arena, members, node, resident, waiting
from scheduler_builders import candidate, gang

from model.pod.pod import Pod
from model.workload import TopologyLevel, WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.preemption.facts import GangFacts, PreemptionFacts
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.preemption.problem import PreemptionProblem, domains, problem_of, prospects_of


def asked(arena: Arena, wanted: Candidate, **facts: Any) -> PreemptionProblem:
    known = PreemptionFacts(**{"gangs": arena.gangs()} | facts)
    residents = arena.residents()
    prospects = prospects_of(residents, wanted, known, (PreemptionPolicySettings(), NOW))
    return problem_of(arena.working(), wanted, residents, known, prospects)


def free(problem: PreemptionProblem) -> list[int]:
    """Of CPU, by row, in whole CPUs."""
    return [line[0] // 1000 for line in problem.capacity.free.tolist()]


def test_a_lone_pod() -> None:
    """Amounts alone decide, so what is not found is not there."""
    arena = Arena([node("n1", 8), node("n2", 8)], [resident("a", cpu=5), resident("b", "n2", cpu=3)])
    found = asked(arena, candidate([waiting(cpu=6)]))
    assert free(found) == [3, 5]
    (ask,) = found.capacity.asks
    assert (ask.want, ask.most.tolist()) == (1, [1, 1])
    assert (found.plain, found.exact, found.coming) == (True, True, False)
    assert len(found.costs.victims) == 2


def test_no_row_takes_more_than_it_could_when_empty() -> None:
    """Of all who may go; who may not stays where it is."""
    pods = [resident("a", cpu=5), resident("kept", "n2", cpu=5, priority=500)]
    found = asked(Arena([node("n1", 8), node("n2", 8)], pods), candidate(members(4, 2), gang(4)))
    assert found.capacity.asks[0].most.tolist() == [4, 1]


def test_pods_on_their_way_out_are_gone_already() -> None:
    """Their room is free, and they are nobody's victims."""
    pods = [resident("a", cpu=5), resident("b", cpu=2, deleting=True)]
    found = asked(Arena([node("n1", 8)], pods), candidate([waiting(cpu=6)]))
    assert (free(found), found.coming, len(found.costs.victims)) == ([3], True, 1)
    assert dict(found.legal.excluded) == {"being deleted": 1}


def test_members_of_a_gang_of_which_others_stay_are_told() -> None:
    """All go or none: one of them is too important."""
    pods = [resident("g1", cpu=2, group="g"), resident("g2", cpu=2, group="g", priority=500)]
    gangs = {WorkloadId.gang("default/g"): GangFacts(2, 2, whole=True)}
    found = asked(Arena([node("n1", 8)], pods), candidate([waiting(cpu=6)]), gangs=gangs)
    assert len(found.costs.victims) == 0
    assert dict(found.legal.excluded) == {"same or higher priority": 1, "in a gang of which others stay": 1}


def test_only_needed_members_are_asked_for() -> None:
    """No room is made for a surplus."""
    found = asked(Arena([node("n1", 8)]), candidate(members(5, 2), gang(2)))
    assert (found.demand.pending, found.capacity.want) == (2, 2)


def test_the_largest_pods_are_asked_for_first() -> None:
    """Several classes are no exact arithmetic."""
    pods = [*members(2, 1), *(waiting(f"big{i}", 6, gang=members(1)[0].spec.gang) for i in range(2))]
    found = asked(Arena([node("n1", 8), node("n2", 8)]), candidate(pods, gang(4)))
    assert [ask.request.max() for ask in found.capacity.asks] == [6000, 1000]
    assert (found.plain, found.exact) == (True, False)


def test_terms_about_other_pods_are_not_plain() -> None:
    """Where anybody is in its way; without anybody they are."""
    arena = Arena([node("n1", 8, labels={HOST: "n1"})], [resident("a", cpu=5, labels={"app": "a"})])
    wary = candidate([waiting(cpu=6, affinity=apart(term(HOST, app="a")))])
    assert (asked(arena, wary).plain, asked(arena, wary).exact) == (False, False)


def zoned(*levels: TopologyLevel) -> Candidate:
    found = candidate(members(3, 2), gang(3))
    return msgspec.structs.replace(found, workload=msgspec.structs.replace(found.workload, topology=levels))


ZONES = [
    node(f"n{i}", cpus, labels={"zone": zone} if zone else {})
    for i, (cpus, zone) in enumerate(((4, "b"), (4, "a"), (4, "b"), (9, "")))
]


@pytest.mark.parametrize(
    ("levels", "rows"),
    [
        ((), [[0, 1, 2, 3]]),
        ((TopologyLevel("zone", required=False),), [[0, 1, 2, 3]]),
        ((TopologyLevel("zone", required=True),), [[0, 2]]),
        ((TopologyLevel("zone", required=True), TopologyLevel("rack", required=False)), [[0, 2]]),
        ((TopologyLevel("rack", required=True),), []),
    ],
)
def test_domains(levels: tuple[TopologyLevel, ...], rows: list[list[int]]) -> None:
    """Those that could hold all members, whoever goes; a node without the label is in none."""
    arena = Arena(ZONES)
    found = asked(arena, zoned(*levels))
    assert [each.tolist() for each in domains(arena.working(), found)] == rows
    assert found.exact is (not levels)


def test_who_asks_is_below_prod_where_any_of_its_pods_is() -> None:
    """Then it may evict nobody outside the bands."""
    pods = [resident("online", cpu=5), resident("batch", cpu=2, below_prod=True)]
    own = waiting(cpu=6, below_prod=True)
    found = asked(Arena([node("n1", 8)], pods), candidate([own]), pods={own.uid: own})
    assert dict(found.legal.excluded) == {"outside the mid, batch and free bands": 1}


@pytest.mark.parametrize(
    ("pods", "none"),
    [
        ([], True),
        ([resident("kept", priority=500)], True),
        ([resident("a")], False),
        ([resident("gone", priority=500, deleting=True)], False),
    ],
)
def test_prospects(pods: list[Pod], none: bool) -> None:
    """None where nobody may go and nobody goes."""
    arena = Arena([node("n1", 8)], pods)
    limits = (PreemptionPolicySettings(), NOW)
    found = prospects_of(arena.residents(), candidate([waiting(cpu=6)]), PreemptionFacts(), limits)
    assert found.none is none
