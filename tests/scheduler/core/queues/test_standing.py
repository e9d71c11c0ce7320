"""How all queues stand."""

from __future__ import annotations

import pytest
from queue_builders import CPU, books, cell, queue

from scheduler.core.queues.standing import QueueCounts, standing_of, standings

QUEUES = (
    queue("org", weight=2, cpu=cell(nominal=60)),
    queue("a", "org"),
    queue("b", "org", cpu=cell(10)),
    queue("c", cpu=cell(nominal=40)),
    queue("lost", "nowhere"),
)


def test_every_queue_stands() -> None:
    """The root first, each queue after its parent, with what it and all below it have."""
    quota = books(QUEUES, 100, {"a": 50, "c": 20}, {"a": 20, "b": 5})
    counts = QueueCounts({"org": 3, "a": 2, "b": 1}, {"a": 4}, {"a": 1, "b": 2})
    found = standings(
        quota, {"a": {CPU: 10}, "org": {CPU: 10}}, {"a": {CPU: 70}, "b": {CPU: 5}, "c": {CPU: 20}}, counts
    )
    assert list(found) == ["", "c", "default", "lost", "org", "a", "b"]
    org, a = found["org"], found["a"]
    assert org.children == ("a", "b")
    assert (org.cells[CPU].used, org.cells[CPU].nominated, org.cells[CPU].demand) == (40, 10, 75)
    assert (org.dominant_share, org.dominant_resource, org.weighted_share) == (0.5, "cpu", 0.25)
    assert (org.pending_jobs, org.running_jobs, org.position) == (3, 0, 0)
    assert (a.pending_jobs, a.running_jobs, a.position) == (2, 4, 1)
    assert a.cells[CPU].demand == 70
    assert found[""].cells[CPU].demand == 95
    assert found["lost"].problem.startswith('queue "lost": its parent "nowhere" does not exist')
    assert found["c"].problem == ""


@pytest.mark.parametrize("name", ["a", "gone"])
def test_one_queue_alone(name: str) -> None:
    """Also one that is gone while its work runs."""
    found = standing_of(books(QUEUES, 100, {name: 50}), name, {}, {CPU: 50})
    assert found.queue.name == name
    assert found.cells[CPU].used == 50
    assert found.weighted_share == 0.5


def test_what_is_borrowed_is_what_is_lent() -> None:
    """Over the leaves and what their parents, the root among them, gave to none."""
    quota = books(QUEUES, 100, {"a": 65, "c": 20}, {"a": 20, "b": 5, "c": 20})
    found = standings(quota, {}, {})
    assert found["a"].cells[CPU].borrowed == found["c"].cells[CPU].lent == 15
    loans = quota.lending(CPU)
    assert sum(loans.borrowed.values()) == sum(loans.lent.values())
