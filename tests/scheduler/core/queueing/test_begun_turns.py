"""Gangs bound in part: few are all looked at, many in turn."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_builders import candidate, pod

from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queueing.begun_turns import BegunTurns


def begun(number: int, namespace: str = "default") -> list[Candidate]:
    """By subject, as the backlog has them; lone pods do as well here."""
    return [candidate([pod(f"g{index:03}", namespace=namespace)]) for index in range(number)]


def names(taken: Iterable[Candidate]) -> list[str]:
    return [each.subject.name for each in taken]


def test_few_are_all_looked_at() -> None:
    """In the order in which they came."""
    few = begun(32)
    assert list(BegunTurns().take(few)) == few


def test_many_are_looked_at_one_after_the_other() -> None:
    """As many a turn as there may be few; who is gone meanwhile keeps nobody from his turn."""
    turns, many = BegunTurns(), begun(100)
    seen = [names(turns.take(many)) for _ in range(3)]
    assert [len(each) for each in seen] == [32, 32, 32]
    assert len({name for each in seen for name in each}) == 96
    left = many[:90]
    after = [name for _ in range(3) for name in names(turns.take(left))]
    assert set(after) == set(names(left))


def test_thousands_of_one_namespace_take_no_turn_of_another() -> None:
    """Whoever makes them keeps no room from others' gangs; thousands of namespaces have their turn, too."""
    turns, many, own = BegunTurns(), begun(200, "many"), begun(2, "own")
    assert all("own/g000" in names(turns.take([*many, *own])) for _ in range(5))
    spread = [each for index in range(100) for each in begun(1, f"n{index:03}")]
    seen = {name for _ in range(4) for name in names(turns.take(spread))}
    assert seen == set(names(spread))
