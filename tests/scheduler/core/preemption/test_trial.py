"""Trying it with all filters: who must go so that everybody needed has a place, and who need not."""

from __future__ import annotations

from itertools import combinations, islice
from typing import Any

import pytest
from filter_builders import HOST, apart, term
from preemption_builders import NOW, Arena, members, node, resident, waiting
from scheduler_builders import candidate, gang, in_group

from scheduler.core.gangs.assembly import Candidate
from scheduler.core.preemption.facts import PreemptionFacts
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.preemption.problem import PreemptionProblem, problem_of, prospects_of


class Asked:
    """A problem, and its victims by name."""

    def __init__(self, arena: Arena, wanted: Candidate) -> None:
        facts = PreemptionFacts(gangs=arena.gangs())
        residents, limits = arena.residents(), (PreemptionPolicySettings(), NOW)
        prospects = prospects_of(residents, wanted, facts, limits)
        self.problem: PreemptionProblem = problem_of(arena.working(), wanted, residents, facts, prospects)
        costs = self.problem.costs
        self._names = {i: costs.key(i).removeprefix("default/") for i in range(len(costs.victims))}

    def of(self, names: str) -> frozenset[int]:
        return frozenset(index for index, name in self._names.items() if name in names.split())

    def named(self, found: frozenset[int] | None) -> str | None:
        return None if found is None else " ".join(sorted(self._names[index] for index in found))


def full(*sizes: tuple[str, str, float], **more: Any) -> Arena:
    """Two nodes of 4 CPUs and pods (name, node, CPUs) on them."""
    nodes = [node(name, labels={HOST: name}) for name in ("n1", "n2")]
    return Arena(nodes, [resident(name, on, cpu, **more) for name, on, cpu in sizes])


HALVES = full(("a", "n1", 2), ("b", "n1", 2), ("c", "n2", 3))


@pytest.mark.parametrize(
    ("cpu", "gone", "row"),
    [(3, "a b", 0), (3, "c", 1), (3, "a", None), (2, "a", 0), (1, "", 1), (4, "c", 1), (4, "a", None)],
)
def test_without_these(cpu: float, gone: str, row: int | None) -> None:
    """Where the pod goes; None where it still does not fit. Asked twice it is the same answer."""
    asked = Asked(HALVES, candidate([waiting(cpu=cpu)]))
    chosen = asked.of(gone)
    found = asked.problem.trial.without(chosen)
    assert (found.assignments[0].row if found else None) == row
    assert asked.problem.trial.without(chosen) is found
    assert asked.problem.trial.fits(chosen) is (row is not None)


@pytest.mark.parametrize(
    ("cpu", "gone", "left"),
    [
        (3, "a b c", {"a b", "c"}),
        (3, "a b", {"a b"}),
        (2, "a b", {"a", "b"}),
        (4, "a", {None}),
        (1, "a b c", {""}),
    ],
)
def test_who_need_not_go_is_put_back(cpu: float, gone: str, left: set[str | None]) -> None:
    """Nobody of those left could be put back; None where all of them are not enough."""
    asked = Asked(HALVES, candidate([waiting(cpu=cpu)]))
    assert asked.named(asked.problem.trial.reprieved(asked.of(gone))) in left


def test_a_gang_of_many_unlike_members_is_placed_a_few_times_alone() -> None:
    """What is not tried any more counts as too little room: whoever makes a gang chooses how dear a try is."""
    sizes = [(f"v{i}", f"n{1 + i % 2}", 0.5) for i in range(12)]
    unlike = [waiting(f"w{i}", 0.001 * (1 + i), gang=in_group()) for i in range(50)]
    for number, tries in ((1, 120), (50, 20)):
        asked = Asked(full(*sizes), candidate(unlike[:number], gang(number)))
        answers = [asked.problem.trial.fits(frozenset(chosen)) for chosen in islice(combinations(range(12), 3), 120)]
        assert answers == [True] * tries + [False] * (120 - tries), number
        assert asked.problem.trial.spent is (number == 50)


def test_the_lowest_priorities_go() -> None:
    """One of priority 1 rather than a smaller one of priority 5."""
    arena = Arena(
        [node("n1"), node("n2")], [resident("low", "n1", 4, priority=1), resident("high", "n2", 4, priority=5)]
    )
    asked = Asked(arena, candidate([waiting(cpu=3)]))
    assert asked.named(asked.problem.trial.cheapest(asked.problem.capacity)) == "low"


def test_a_whole_gang_is_placed_or_none() -> None:
    """Room for one of two members is none."""
    asked = Asked(full(("a", "n1", 4), ("b", "n2", 4)), candidate(members(2, 3), gang(2)))
    trial = asked.problem.trial
    assert trial.without(asked.of("a")) is None
    found = trial.without(asked.of("a b"))
    assert found is not None and sorted(assignment.row for assignment in found.assignments) == [0, 1]
    assert asked.named(trial.cheapest(asked.problem.capacity)) == "a b"


def test_nobody_is_evicted_in_vain() -> None:
    """No set of victims helps a pod that is larger than any node."""
    asked = Asked(HALVES, candidate([waiting(cpu=5)]))
    assert asked.problem.trial.cheapest(asked.problem.capacity) is None
    assert asked.problem.trial.reprieved(asked.of("a b c")) is None


def test_terms_count_beside_amounts() -> None:
    """Who is kept away from goes, though there is room beside it."""
    arena = full(("a", "n1", 1), ("b", "n2", 1), labels={"app": "x"})
    asked = Asked(arena, candidate([waiting(cpu=1, affinity=apart(term(HOST, app="x")))]))
    assert asked.problem.trial.without(frozenset()) is None
    assert asked.named(asked.problem.trial.cheapest(asked.problem.capacity)) in ("a", "b")
