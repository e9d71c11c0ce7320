"""Whose turn it is: by shares, by who borrows, and what comes first and last whatever these are."""

from __future__ import annotations

from queue_world import BATCH, cpu, pod, queue, world
from scheduler_builders import raw_pod


def test_what_a_queue_refuses_for_ever_comes_last_and_is_no_demand() -> None:
    """Its key moves its queue neither forward nor back, and what it asks for makes nobody's share smaller."""
    found = world(queue("a"), queue("b", admissionControl={"priorityRange": {"max": 6000}}))
    found.see(pod("refused", "b", priority=7000, created=1.0), pod("x", "a", created=2.0), pod("y", "b", created=3.0))
    found.turn()
    ordered = [each.workload.key for each in found.cycle.ordered(found.cycle.backlog.candidates, 1001.0)]
    assert ordered[-1:] == ["default/refused"]
    found.see(*(pod(f"r{i}", "b", priority=7000, batch_cpu="9999") for i in range(9)))
    found.see(*(pod(f"a{i}", "a", batch_cpu="1000", created=5.0) for i in range(9))).turn(after=1.0)
    shares = {each.queue.name: each.cells[("", BATCH)].share for each in found.cycle.standings()}
    assert shares["a"] == 4000 - shares["b"] and shares["b"] == 500
    pending = {each.queue.name: each.pending_jobs for each in found.cycle.standings()}
    assert pending["b"] == 0


def test_the_smaller_share_goes_first() -> None:
    """One pod of each queue in turn, two of the one that weighs 2; priority decides only inside a queue."""
    found = world(queue("a"), queue("b", weight=2))
    found.see(*(pod(f"a{i}", "a", created=float(i), priority=5900) for i in range(9)))
    found.see(*(pod(f"b{i}", "b", created=20.0 + i) for i in range(9))).turn()
    assert sorted(name[0] for name in found.binder.assigned) == ["a"] * 3 + ["b"] * 5


def test_without_fair_sharing_priority_decides() -> None:
    """Between queues that borrow nothing."""
    found = world(queue("a"), queue("b", weight=2), fair_sharing=False)
    found.see(*(pod(f"a{i}", "a", created=float(i), priority=5900) for i in range(9)))
    found.see(*(pod(f"b{i}", "b", created=20.0 + i) for i in range(9))).turn()
    assert {name[0] for name in found.binder.assigned} == {"a"}


def test_who_borrows_goes_last() -> None:
    """Whatever its weight: what is another's own is not handed out while that one waits for it."""
    found = world(
        queue("own", quota={"soft": cpu(2000)}),
        queue("loud", weight=100, quota={"soft": cpu(2000), "hard": cpu(4000)}),
    )
    found.see(*(pod(f"l{i}", "loud", created=float(i)) for i in range(8)))
    found.see(*(pod(f"o{i}", "own", created=20.0 + i) for i in range(4))).turn()
    assert sorted(name[0] for name in found.binder.assigned) == ["l"] * 4 + ["o"] * 4


def test_online_pods_without_a_queue_come_first_and_count_to_nobody() -> None:
    """No quota makes a service wait, not even one of the default queue."""
    web = raw_pod("web", batch_cpu="3000", created=99.0)
    found = world(queue("default", quota={"hard": cpu(100)}), queue("team"), web)
    found.see(*(pod(f"t{i}", "team", created=float(i)) for i in range(8))).turn()
    assert sorted(found.binder.assigned) == ["t0", "t1", "web"]
