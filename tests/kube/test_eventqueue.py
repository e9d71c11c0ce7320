"""Namespaces have their turn, warnings are taken first, equal Events are one, and who has most loses his oldest ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kube.eventqueue import Event, EventQueue, ObjectRef

START = datetime(2026, 1, 1, tzinfo=UTC)


def event(name: str) -> Event:
    """A name that begins with `w` is a warning."""
    return Event(ObjectRef("Pod", name), "Warning" if name.startswith("w") else "Normal", "R", "m")


def filled(room: int, *names: str) -> EventQueue:
    queue = EventQueue(room)
    for second, name in enumerate(names):
        queue.put(event(name), START + timedelta(seconds=second))
    return queue


def taken(queue: EventQueue) -> list[tuple[str, int]]:
    found = []
    while (waiting := queue.take()) is not None:
        found.append((waiting.event.about.name, waiting.count))
        queue.done(waiting)
    return found


@pytest.mark.parametrize(
    ("room", "names", "left", "dropped"),
    [
        pytest.param(9, ["n1", "n2"], [("n1", 1), ("n2", 1)], 0, id="in order"),
        pytest.param(9, ["n1", "w1", "n2", "w2"], [("w1", 1), ("w2", 1), ("n1", 1), ("n2", 1)], 0, id="warnings first"),
        pytest.param(9, ["n1", "n2", "n1"], [("n1", 2), ("n2", 1)], 0, id="a repeated one is counted"),
        pytest.param(2, ["n1", "n2", "n3"], [("n2", 1), ("n3", 1)], 1, id="full: the oldest ordinary one goes"),
        pytest.param(2, ["n1", "w1", "w2"], [("w1", 1), ("w2", 1)], 1, id="full: a warning takes its place"),
        pytest.param(2, ["w1", "w2", "n1"], [("w1", 1), ("w2", 1)], 1, id="full of warnings: no ordinary one enters"),
        pytest.param(2, ["w1", "w2", "w3"], [("w2", 1), ("w3", 1)], 1, id="full of warnings: the oldest goes"),
        pytest.param(1, ["n1", "n1", "n2"], [("n2", 1)], 2, id="each occurrence is counted as dropped"),
    ],
)
def test_order_and_room(room: int, names: list[str], left: list[tuple[str, int]], dropped: int) -> None:
    queue = filled(room, *names)
    assert len(queue) == len(left)
    assert taken(queue) == left
    assert (queue.dropped, queue.empty) == (dropped, True)


def about(namespace: str, number: int, kind: str = "Normal") -> Event:
    return Event(ObjectRef("Pod", f"{namespace}{number}", namespace), kind, "R", "m")


def test_who_floods_the_queue_holds_up_nobody_else() -> None:
    """Thousands of warnings of one namespace, which whoever may write there brings about, leave others their turn."""
    queue = EventQueue(1000)
    for number in range(1000):
        queue.put(about("evil", number, "Warning"), START)
    queue.put(about("online", 0), START)
    queue.put(about("train", 0, "Warning"), START)
    for number in range(1000, 1500):
        queue.put(about("evil", number, "Warning"), START)
    assert (len(queue), queue.dropped) == (1000, 502)
    assert [name for name, _ in taken(queue)[:4]] == ["evil502", "online0", "train0", "evil503"]


def test_what_comes_while_taken_waits() -> None:
    """The same Event is never taken twice at a time; times are those of the first and the last occurrence."""
    queue = filled(9, "n1", "n1")
    first = queue.take()
    assert first is not None and (first.first, first.last) == (START, START + timedelta(seconds=1))
    for second in (5, 6):
        queue.put(event("n1"), START + timedelta(seconds=second))
    assert queue.take() is None and len(queue) == 1 and not queue.empty
    queue.done(first)
    again = queue.take()
    assert again is not None and (again.count, again.first) == (2, START + timedelta(seconds=5))


def test_what_goes_back_keeps_its_count() -> None:
    """A try that failed waits behind the others with all that came meanwhile, also in a full room."""
    queue = filled(2, "n1", "n2")
    first = queue.take()
    assert first is not None
    queue.put(event("n1"), START + timedelta(seconds=7))
    queue.put(event("n3"), START)
    queue.back(first)
    assert (queue.dropped, len(queue)) == (1, 2)
    assert taken(queue) == [("n3", 1), ("n1", 2)]
    assert first.last == START + timedelta(seconds=7)
