"""Who is tried in a turn where more are ready than it tries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler_builders import candidate, gang, members, pod

from model.pod.colocation import Colocation
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queueing.attempts import Attempts, TurnLimits

_NAMES = "".join(f"{chr(ord('a') + number)}{chr(ord('A') + number)}{number}" for number in range(10)) + "klmnopqrst"


def waiting(name: str) -> Candidate:
    """A lone pod, online where the name is a capital letter; digits are of a namespace of their own."""
    namespace = "far" if name.isdigit() else "default"
    return candidate([pod(name, namespace=namespace, colocation=Colocation(below_prod=not name.isupper()))])


def in_turn(attempts: Attempts, order: Sequence[Candidate]) -> Iterator[Candidate]:
    """As the cycle has it: by the order, then those that were passed over, in the order too."""
    yield from takewhile(lambda each: attempts.by_order, order)
    due = {each.subject for each in attempts.due()}
    yield from (each for each in order if each.subject in due)


def turn(attempts: Attempts, order: str, most: int, *, free: str = "", plans: int = 99, evicting: str = "") -> str:
    """Whom a turn tries of those that are ready, a letter each.

    `free` wait on without an attempt; `evicting` need one of the `plans`, and only who gets it is among the tried.
    """
    attempts.begin(map(waiting, order), TurnLimits(most, plans))
    tried = waited = ""
    for each in in_turn(attempts, list(map(waiting, order))):
        if not attempts.may(each):
            continue
        subject, name = each.subject, each.subject.name[-1]
        if name in evicting and not attempts.may_plan(subject):
            attempts.postpone(subject)
        else:
            if name in evicting:
                attempts.planned(subject)
            tried, waited = tried + name * (name not in free), waited + name * (name in free)
        attempts.looked_at(each, tried=name not in free)
    assert attempts.end() is (len(tried + waited) < len(order))
    return tried


def test_by_the_order_alone_while_all_have_their_turn() -> None:
    attempts = Attempts()
    assert [turn(attempts, "abcd", 4) for _ in range(3)] == ["abcd"] * 3
    assert turn(attempts, "abxyzwc", 3, free="xyzw") == "abc"


@pytest.mark.parametrize(
    ("most", "tried"),
    [
        pytest.param(4, ["abcd", "abce", "abcf", "abcd"], id="one in an eighth, at least one"),
        pytest.param(1, ["a", "b", "c", "d"], id="one at a time: one after another"),
    ],
)
def test_who_was_passed_over_longest_is_tried_beside_the_first(most: int, tried: list[str]) -> None:
    attempts = Attempts()
    assert [turn(attempts, "abcdef", most) for _ in tried] == tried


def test_an_eighth_goes_to_them() -> None:
    attempts, order = Attempts(), "abcdefghijklmnopqrstuvwx"
    assert [turn(attempts, order, 16) for _ in range(3)] == [order[:16], order[:14] + "qr", order[:14] + "st"]


def test_who_is_not_ready_any_more_waits_anew() -> None:
    attempts = Attempts()
    turn(attempts, "abcd", 2)
    assert turn(attempts, "ab", 2) == "ab"
    assert [turn(attempts, "abdc", 2) for _ in range(2)] == ["ab", "ad"]


def test_it_goes_to_namespaces_in_turn() -> None:
    """Who has many passed over takes none of it from others; nor from its own online workloads."""
    attempts = Attempts()
    found = [turn(attempts, "abcdefghijklmnopqrstuvwxyz12XY", 8)[7:] for _ in range(8)]
    assert found == ["h", "i", "1", "X", "j", "2", "Y", "k"]


def test_plans_go_to_namespaces_in_turn() -> None:
    attempts, order = Attempts(), "abcdef12X"
    found = [turn(attempts, order, 16, plans=2, evicting=order) for _ in range(6)]
    assert found == ["ab", "ac", "a1", "aX", "ad", "a2"]


@given(st.integers(1, 40), st.integers(1, 20), st.integers(1, 3), st.sets(st.integers(0, 39)))
def test_everybody_is_tried_in_time(ready: int, most: int, plans: int, evicting: set[int]) -> None:
    """Although all that were tried, and those for which somebody was evicted, are ready again at once."""
    attempts, order = Attempts(), _NAMES[:ready]
    needing = "".join(name for number, name in enumerate(order) if number in evicting)
    turns = [turn(attempts, order, most, plans=plans, evicting=needing) for _ in range(4 + 2 * ready)]
    assert {name for tried in turns for name in tried} == set(order)
    assert all(sum(name in needing for name in tried) <= max(plans, 1) for tried in turns)


def unlike(name: str, size: int) -> Candidate:
    """A gang whose members all ask for something else."""
    pods = [each for i in range(size) for each in members(1, name=f"{name}{i}-", group=name, batch_cpu=100 + i)]
    return candidate(pods, gang(size, name))


@pytest.mark.parametrize(("size", "turns"), [(1, "ab cd"), (2, "ab cd"), (3, "a bc d"), (40, "a bc d")])
def test_a_gang_of_unlike_members_counts_by_their_classes(size: int, turns: str) -> None:
    """Each is asked for by itself; who is first, in the order or of the passed over, is tried however many they are."""
    attempts, left = Attempts(), [unlike(name, size) for name in "abcd"]
    told = []
    while left:
        attempts.begin(left, TurnLimits(2, 1))
        told.append("")
        for each in in_turn(attempts, tuple(left)):
            if attempts.may(each):
                attempts.looked_at(each, tried=True)
                left.remove(each)
                told[-1] += each.subject.name[-1]
        attempts.end()
    assert " ".join(told) == turns


def test_once_plans_are_made_only_online_workloads_are_tried() -> None:
    """Batch work behind them would take room that the next plan has to free again."""
    attempts = Attempts()
    assert turn(attempts, "abcdefW", 9, plans=3, evicting="abcde") == "abcW"


def test_an_eighth_of_the_plans_goes_to_the_passed_over() -> None:
    attempts = Attempts()
    found = [turn(attempts, "abcdef", 16, plans=2, evicting="abcdef") for _ in range(5)]
    assert found == ["ab", "ac", "ad", "ae", "af"]


def test_one_head_of_each_queue() -> None:
    """Whoever stands behind it in its queue is left for the next turn, tried or waiting on."""
    attempts, limits = Attempts(), TurnLimits(9, 9, heads=1)
    named = {name: in_queue(name, name[0]) for name in ("a1", "a2", "b1", "a3")}
    for expected in (["a1", "b1"], ["a2"], ["a3"]):
        ready = [each for name, each in named.items() if name in named]
        attempts.begin(ready, limits)
        tried = []
        for name, each in tuple(named.items()):
            if attempts.may(each):
                attempts.looked_at(each, tried=name != "a2")
                tried.append(name)
                del named[name]
        assert (tried, attempts.end()) == (expected, bool(named))


def in_queue(name: str, queue: str) -> Candidate:
    """A lone batch pod."""
    found = waiting(name)
    return msgspec.structs.replace(found, workload=msgspec.structs.replace(found.workload, queue=queue))


def test_what_looks_at_many_victims_counts_as_several() -> None:
    """For every 64 questions about what queues may lose one attempt more, also where it was passed over before."""

    def tried(attempts: Attempts, questions: int) -> str:
        attempts.begin(map(waiting, "abcdef"), TurnLimits(4, 99))
        found = ""
        for name in "abcdef":
            if attempts.may(waiting(name)):
                found += name
                attempts.looked_at(waiting(name), tried=True, questions=questions)
        attempts.end()
        return found

    assert [tried(Attempts(), questions) for questions in (0, 63, 64, 640)] == ["abcd", "abcd", "ab", "a"]
    attempts = Attempts()
    assert [tried(attempts, 640) for _ in range(3)] == ["a", "ab", "ac"]


def test_thousands_that_fare_as_one_before_them_are_not_all_looked_at_in_one_turn() -> None:
    """Eight of them count as an attempt."""
    attempts, ready = Attempts(), [waiting(f"p{number}") for number in range(100)]
    turns = []
    while ready:
        attempts.begin(ready, TurnLimits(5, 99))
        looked_at = []
        for each in in_turn(attempts, ready):
            if attempts.may(each):
                attempts.looked_at(each, tried=False)
                looked_at.append(each)
        attempts.end()
        ready = [each for each in ready if each not in looked_at]
        turns.append(len(looked_at))
    assert (max(turns) <= 48, sum(turns)) == (True, 100)
