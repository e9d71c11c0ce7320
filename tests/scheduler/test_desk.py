"""What agents report, and what they are told."""

from __future__ import annotations

from scheduler_builders import raw_group, raw_node, raw_pod
from scheduler_fakes import World

from model.decision import Decision, Term, Unit
from model.reason import Reason
from model.report import CheckpointSaved, EvictionCost, NodeReport, Usage
from scheduler.desk import NodeDesk

BE = {"koordinator.sh/qosClass": "BE"}


def lends(amount: int) -> NodeReport:
    terms = (Term("capacity", amount),)
    decision = Decision("node/n1", "batch-cpu", amount, Unit.MILLI_CPU, Reason.COMPUTED, terms)
    return NodeReport(1.0, Usage(), Usage(), Usage(), Usage(), (decision,))


def desk_of(world: World) -> NodeDesk:
    return NodeDesk(world.cache, world.history, world.clock, world.loop.tell)


def test_costs() -> None:
    """Best-effort pods of the node by uid: their gang, how many members it has to spare, how old the checkpoint is."""
    world = World().see(raw_node(), raw_group(minimum=2))
    world.see(*(raw_pod(f"w{i}", group="train", node_name="n1", labels=BE) for i in range(3)))
    world.see(raw_pod("lone", node_name="n1", labels=BE), raw_pod("done", node_name="n1", labels=BE, phase="Failed"))
    world.turn()
    desk = desk_of(world)
    desk.checkpoint(CheckpointSaved("default", "w1", "uid-w1", world.clock.now - 60.0))
    desk.checkpoint(CheckpointSaved("default", "unknown", "uid-unknown", 1.0))
    assert desk.costs("n1") == (
        EvictionCost("uid-lone"),
        EvictionCost("uid-w0", "default/train", 1),
        EvictionCost("uid-w1", "default/train", 1, 60.0),
        EvictionCost("uid-w2", "default/train", 1),
    )
    assert desk.costs("n2") == ()


def test_a_report_that_lends_more_wakes() -> None:
    """Parked workloads are tried again when a node lends more, not when it lends the same or less."""
    world = World().see(raw_node(batch_cpu="100"), raw_pod())
    world.turn()
    desk = desk_of(world)
    desk.report("n1", lends(100))
    assert len(world.turn(after=2.0).decisions) == 1
    for amount in (100, 50):
        desk.report("n1", lends(amount))
        assert world.turn(after=20.0).decisions == []
    desk.report("n1", lends(51))
    assert len(world.turn(after=20.0).decisions) == 1
