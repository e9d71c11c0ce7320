"""Standings of queues from what is charged, nominated and waits, and who lends to whom."""

from __future__ import annotations

from typing import Any

from scheduler_builders import raw_group, raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from model.queue import Loan, QueueStanding
from model.resources import BATCH_CPU

CELL = ("", BATCH_CPU)


def queue(name: str, parent: str = "", own: int | None = None, most: int | None = None) -> objects.Queue:
    """Ours, with so much batch-cpu of its own and at most."""
    quota = {"soft": own, "hard": most}
    told = {key: {"resources": {BATCH_CPU: amount}} for key, amount in quota.items() if amount is not None}
    return objects.Queue(objects.Metadata(name=name, uid=name), {"parent": parent, "quota": told})


def pod(name: str, of: str, *, batch_cpu: str = "500", group: str = "", node_name: str = "") -> objects.Pod:
    """Batch work of a queue."""
    labels = {"koordinator.sh/qosClass": "BE", "sublet.dev/queue": of}
    phase = "Running" if node_name else "Pending"
    return raw_pod(name, batch_cpu=batch_cpu, group=group, node_name=node_name, phase=phase, labels=labels)


def standings(world: World) -> dict[str, QueueStanding]:
    return {each.queue.name: each for each in world.cycle.standings()}


def world(*seen: Any) -> World:
    """A node of 2000, and queues a and b below ml, half of which is each one's own."""
    found = World().see(raw_node(batch_cpu="2000"), queue("ml"), queue("a", "ml", 1000), queue("b", "ml", 1000))
    found.see(*seen)
    found.turn()
    return found


def test_amounts_and_jobs_include_those_below() -> None:
    """A gang is one job, however many members it has; each parent comes before its children."""
    members = [pod(f"g{i}", "a", group="g", node_name="n1") for i in range(2)]
    found = standings(
        world(raw_group("g", 2), *members, pod("one", "b", node_name="n1"), pod("big", "a", batch_cpu="5000"))
    )
    assert list(found) == ["", "default", "ml", "a", "b"]
    assert {name: (each.running_jobs, each.pending_jobs) for name, each in found.items()} == {
        "": (2, 1),
        "default": (0, 0),
        "ml": (2, 1),
        "a": (1, 1),
        "b": (1, 0),
    }
    assert {name: found[name].cells[CELL].used for name in ("", "ml", "a", "b")} == {
        "": 1500,
        "ml": 1500,
        "a": 1000,
        "b": 500,
    }


def test_work_of_no_queue_is_a_job_of_the_default_one() -> None:
    """Its amounts are nobody's."""
    found = standings(world(raw_pod("web", node_name="n1", phase="Running"), raw_pod("big", batch_cpu="5000")))
    assert (found["default"].running_jobs, found["default"].pending_jobs) == (1, 1)
    assert found["default"].cells[CELL].used == 0
    alone = World().see(raw_node(), raw_pod("web", node_name="n1", phase="Running"))
    alone.turn()
    assert standings(alone)["default"].running_jobs == 1


def test_the_order_in_which_queues_were_served() -> None:
    """Of those in which something waits; a turn that tries nobody changes nothing."""
    found = world(pod("a0", "a", node_name="n1"), pod("a1", "a", batch_cpu="1800"), pod("b1", "b", batch_cpu="1800"))
    assert [(name, each.position) for name, each in standings(found).items() if each.position] == [("a", 2), ("b", 1)]
    found.turn()
    assert standings(found)["b"].position == 1


def test_who_lends_to_whom() -> None:
    """The siblings' loans are none of their parent's; what a queue lends is told of it, too."""
    found = world(*(pod(f"a{i}", "a", node_name="n1") for i in range(3)))
    assert found.cycle.loans("a") == found.cycle.loans("b") == (Loan("b", "a", CELL, 500),)
    assert found.cycle.loans("ml") == ()


def test_what_is_nobodys_own() -> None:
    """The cluster itself lends."""
    found = World().see(raw_node(batch_cpu="2000"), queue("a", own=500))
    found.see(*(pod(f"a{i}", "a", node_name="n1") for i in range(2)))
    found.turn()
    assert found.cycle.loans("a") == (Loan("", "a", CELL, 500),)


def test_in_parts_of_a_unit() -> None:
    """Shares are told to the part; everything else is that many times as much."""
    found = World().see(raw_node(batch_cpu="1000"), *(queue(name) for name in "abc"))
    found.see(*(pod(name, name, batch_cpu="900") for name in "abc"), pod("old", "a", batch_cpu="100", node_name="n1"))
    found.turn()
    finer = {each.queue.name: each.cells[CELL] for each in found.cycle.standings(parts=10)}
    assert [finer[name].share for name in "abc"] == [3334, 3333, 3333]
    whole = standings(found)["a"].cells[CELL]
    assert (finer["a"].used, finer["a"].demand) == (10 * whole.used, 10 * whole.demand)
