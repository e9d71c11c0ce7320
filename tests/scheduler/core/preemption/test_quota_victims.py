"""Whose going gives a queue its quota: no more than it takes, the cheapest that help."""

from __future__ import annotations

from typing import Any

import numpy as np
from preemption_builders import NOW, Arena, node, queue_rules, resident

from model.pod.pod import Pod
from model.queue import Queue
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.facts import PreemptionFacts
from scheduler.core.preemption.queue_rules import QueueRules
from scheduler.core.preemption.quota_victims import QuotaVictims
from scheduler.core.preemption.victims import victims_of
from scheduler.core.queues.shares import ShareRules
from scheduler.core.queues.tree import tree_of
from scheduler.core.queues.turn_quota import TurnQuota


def chosen(pods: list[Pod], asks: int, used: int = 4000, minimum: int | None = None) -> str | None:
    """Names of the cheapest victims for so much of 4 CPUs; None where not even all are enough."""
    arena = Arena([node(cpu=99)], pods)
    residents = arena.residents()
    found = victims_of(residents, residents.rows >= 0, [0], arena.gangs(minimum), 1)
    costs = VictimCosts(found, residents, PreemptionFacts(), NOW)
    victims = QuotaVictims(queue_rules("p", {"p": 4000, "q": 0}, used=used, asks=asks), costs)
    best = victims.cheapest()
    if best is None:
        assert not victims.enough(range(len(found)))
        return None
    assert victims.enough(best)
    single = [index for index in best if found.gangs[index] < 0]
    assert all(not victims.enough(best - {index}) for index in single), "somebody goes for nothing"
    return "".join(sorted(costs.key(index).removeprefix("default/") for index in best))


def singles() -> list[Pod]:
    return [resident(name, cpu=1, priority=index) for index, name in enumerate("abcd")]


def test_the_cheapest_that_are_enough() -> None:
    """Lower priority first; with room already nobody; where all are not enough nobody either."""
    assert chosen(singles(), 1000) == "a"
    assert chosen(singles(), 2500) == "abc"
    assert chosen(singles(), 1000, used=3000) == ""
    assert chosen(singles(), 5000) is None


def test_who_is_not_needed_stays() -> None:
    """The small one is taken first and given back once the large one goes."""
    pods = [resident("small", cpu=1, priority=1), resident("large", cpu=3, priority=2)]
    assert chosen(pods, 3000) == "large"


def test_a_gang_goes_whole() -> None:
    """Two members where one would give enough."""
    gang = [resident(name, cpu=1, group="train") for name in "xy"]
    assert chosen(gang, 1000, used=4000) == "xy"


def test_what_a_gang_can_spare_goes_before_a_job_does() -> None:
    """Before a lone pod, too; where more is asked the gang goes whole, and nothing of it is given back."""
    gang = [resident(name, cpu=1, group="train", minimum_member=name == "w") for name in "wxy"]
    lone = resident("a", cpu=1)
    assert chosen([*gang, lone], 1000, minimum=2) in ("x", "y")
    assert chosen([*gang, lone], 2000, minimum=1) == "xy"
    assert chosen([*gang, lone], 2000, minimum=2) in ("ax", "ay")
    assert chosen(gang, 2000, minimum=2) == "wxy"


def test_one_row_is_enough() -> None:
    """Quota is freed wherever it is used."""
    assert np.array_equal(sorted(chosen(singles(), 2000) or ""), ["a", "b"])


def test_two_queues_together_take_no_more_from_their_parent_than_it_may_lose() -> None:
    """Each team has a CPU too much, and so has their org: either job may go, not both."""
    cell = ("", "cpu")
    quota = TurnQuota(tree_of([Queue("a"), Queue("org"), Queue("x", "org"), Queue("y", "org")]), ShareRules())
    due = {"": 4000, "a": 1000, "org": 3000, "x": 1000, "y": 1000}
    quota.begin({cell: 4000}, lambda: {name: {cell: amount} for name, amount in due.items()})
    pods = [resident("one", cpu=2), resident("other", cpu=2)]
    arena = Arena([node(cpu=4)], pods, queues={pods[0].uid: "x", pods[1].uid: "y"})
    for name in "xy":
        quota.charge(name, {cell: 2000})
    residents = arena.residents()
    found = victims_of(residents, residents.rows >= 0, [0], arena.gangs(), 1)
    rules = QueueRules(quota, "a", {cell: 1000}, {}, (cell,))
    victims = QuotaVictims(rules, VictimCosts(found, residents, PreemptionFacts(), NOW))
    assert [victims.lawful(chosen) for chosen in ((0,), (1,), (0, 1))] == [True, True, False]


class Asked(TurnQuota):
    """Counts what it is asked."""

    questions = 0

    def may_lose(self, *args: Any, **named: Any) -> bool:
        self.questions += 1
        return super().may_lose(*args, **named)

    def charge(self, *args: Any) -> None:
        self.questions += 1
        super().charge(*args)


def test_questions_grow_with_the_pods_and_not_with_their_square() -> None:
    """Whoever makes victims may make them small: each is looked at a few times, however many went before."""

    def questions(number: int) -> int:
        cell, quota = ("", "cpu"), Asked(tree_of([Queue("a"), Queue("b")]), ShareRules())
        quota.begin({cell: 1000 * number}, lambda: {"": {cell: 1000 * number}, "a": {cell: 1000 * number}, "b": {}})
        pods = [resident(f"v{index}", cpu=1) for index in range(number)]
        arena = Arena([node(cpu=number)], pods, queues={pod.uid: "b" for pod in pods})
        quota.charge("b", {cell: 1000 * number})
        residents = arena.residents()
        found = victims_of(residents, residents.rows >= 0, [0], arena.gangs(), 1)
        rules = QueueRules(quota, "a", {cell: 1000 * number}, {}, (cell,))
        best = QuotaVictims(rules, VictimCosts(found, residents, PreemptionFacts(), NOW)).cheapest()
        assert best is not None and len(best) == number
        return quota.questions

    assert questions(80) < 2.5 * questions(40)
