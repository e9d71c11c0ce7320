"""Requests that wait: the newest of each pod, few, later and later, never for long."""

from __future__ import annotations

import pytest

from agent.core.evict.eviction_request import EvictionRequest, EvictionRequestKind
from agent.core.evict.request_queue import BOUND, LONGEST_SECONDS, RequestQueue
from model.decision import Decision, Term, Unit
from model.reason import Reason


def request(name: str, frees: int = 1) -> EvictionRequest:
    terms = (Term("memory", frees),)
    decision = Decision(f"pod/ns/{name}", "evict", frees, Unit.BYTES, Reason.BE_MEMORY_EVICT, terms)
    return EvictionRequest(EvictionRequestKind.EVICT, f"uid-{name}", "ns", name, decision)


def names(requests: list[EvictionRequest]) -> list[str]:
    return [found.name for found in requests]


def test_the_newest_order_of_a_pod_wins() -> None:
    """It takes the older one's place in the queue and starts its time again."""
    queue = RequestQueue()
    queue.put(request("a", 1), 0.0)
    assert queue.put(request("a", 2), 50.0) is None
    assert queue.expire(LONGEST_SECONDS) == []
    assert [taken.request.decision.value for taken in queue.take(60.0, (), 9)] == [2] and len(queue) == 0


def test_a_full_queue_drops_the_oldest() -> None:
    """And says which."""
    queue = RequestQueue()
    dropped = [queue.put(request(f"p{number}"), 0.0) for number in range(BOUND + 1)]
    assert names([found for found in dropped if found]) == ["p0"] and len(queue) == BOUND


def test_orders_are_taken_as_they_came() -> None:
    """No more than there is room for, and none about a pod that is being dealt with."""
    queue = RequestQueue()
    for name in "abcd":
        queue.put(request(name), 0.0)
    assert names([taken.request for taken in queue.take(0.0, {"uid-b"}, 2)]) == ["a", "c"]
    assert queue.take(0.0, {"uid-b", "uid-d"}, 2) == [] == queue.take(0.0, (), 0) == queue.take(0.0, (), -1)


def test_every_attempt_waits_longer() -> None:
    """Half a second, doubled each time, at most eight; never less than the server asked for."""
    queue, now, delays = RequestQueue(), 0.0, []
    queue.put(request("a"), 0.0)
    for _ in range(6):
        (taken,) = queue.take(now, (), 1)
        queue.retry(taken, now)
        due = queue.next_change(now)
        assert due is not None and queue.take(due - 0.01, (), 1) == []
        delays.append(due - now)
        now = due
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    (taken,) = queue.take(now, (), 1)
    queue.retry(taken, now, 30.0)
    assert queue.take(now + 29.9, (), 1) == [] and len(queue.take(now + 30.0, (), 1)) == 1


def test_an_order_that_was_replaced_does_not_come_back() -> None:
    """What was decided later counts."""
    queue = RequestQueue()
    queue.put(request("a", 1), 0.0)
    (taken,) = queue.take(0.0, (), 1)
    queue.put(request("a", 2), 0.1)
    queue.retry(taken, 0.2)
    assert [found.request.decision.value for found in queue.take(9.0, (), 9)] == [2]


def test_an_old_order_leaves_however_often_it_was_tried() -> None:
    """Its time runs from when it came."""
    queue = RequestQueue()
    queue.put(request("a"), 0.0)
    (taken,) = queue.take(40.0, (), 1)
    queue.retry(taken, 59.0, 30.0)
    assert queue.expire(59.9) == [] and queue.next_change(59.9) == LONGEST_SECONDS
    assert names(queue.expire(LONGEST_SECONDS)) == ["a"] and len(queue) == 0


@pytest.mark.parametrize("busy", [False, True], ids=["empty", "all due"])
def test_nothing_to_wait_for(busy: bool) -> None:
    """A due request that cannot be taken yet is no moment to wake up at: only its end is."""
    queue = RequestQueue()
    if busy:
        queue.put(request("a"), 0.0)
    assert queue.next_change(1.0) == (LONGEST_SECONDS if busy else None)


def test_withdrawn_and_cleared() -> None:
    """Both leave nothing behind."""
    queue = RequestQueue()
    for name in "abc":
        queue.put(request(name), 0.0)
    queue.withdraw("uid-b")
    queue.withdraw("uid-x")
    assert names(queue.clear()) == ["a", "c"] and len(queue) == 0
