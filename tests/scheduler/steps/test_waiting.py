"""An error of the scheduler itself that one object brings about costs that one, and nobody else.

What brings it about here is nothing an API server would admit: a weight beyond 64 bits, a node selector that is no text.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from scheduler_builders import raw_group, raw_node, raw_pod
from scheduler_fakes import World
from structlog.testing import capture_logs

from kube import objects
from model.reason import Reason
from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Assembly

_BEYOND = {"weight": 1 << 80, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}}
POISON = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_BEYOND]}}


def poisoned(name: str = "bad", **more: Any) -> objects.Pod:
    found = raw_pod(name, **more)
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, affinity=POISON))


def unreadable(name: str = "bad", **more: Any) -> objects.Pod:
    found = raw_pod(name, **more)
    return msgspec.structs.replace(
        found, spec=msgspec.structs.replace(found.spec, node_selector={"zone": ["no", "text"]})
    )


def test_one_workload_is_set_aside_and_the_others_are_placed() -> None:
    """It says so on the pod, in its decision and in the counter; the log has the traceback once."""
    world = World().see(raw_node(), poisoned(created=1.0), raw_pod("first"), raw_pod("last", created=2.0))
    with capture_logs() as logs:
        world.turn()
        world.turn(after=300.0)
    assert world.binder.assigned == {"first": "n1", "last": "n1"}
    decision = world.history.newest("pod/default/bad")
    assert decision is not None and decision.reason is Reason.SCHEDULER_ERROR
    assert decision.value == sum(term.value for term in decision.terms) == 0
    told = world.writer.conditions["bad"]
    assert told == decision.detail and "OverflowError (pod_affinity.py:" in told and "when it changes" in told
    assert world.announcer.events.count(("FailedScheduling", "bad", told)) == 1
    assert world.meter.aside == 2
    shown = [entry for entry in logs if entry["event"].startswith("workload set aside")]
    assert [entry["subject"] for entry in shown] == ["pod/default/bad"] * 2
    assert ["exc_info" in entry for entry in shown] == [True, False]


def test_it_is_tried_again_when_it_changes_and_for_no_other_news() -> None:
    """No pod that goes and no node that comes helps against an error of ours; five minutes are worth another try."""
    world = World().see(raw_node(), poisoned())
    world.turn()
    world.see(raw_node("n2")).gone(raw_pod("other")).turn(after=20.0)
    assert world.meter.aside == 1
    assert world.cycle.backlog.next_due() == world.clock.now + 280.0
    world.see(raw_pod("bad")).turn(after=1.0)
    assert world.binder.assigned.keys() == {"bad"} and world.meter.aside == 1


def broken_gang(*members: objects.Pod) -> World:
    """A gang that waits for a node, as a candidate that assembling never makes: it has pods and no classes."""
    world = World().see(raw_group(minimum=2), *members)
    world.turn()
    subject = WorkloadId.gang("default/train")
    found = world.cycle.backlog.by_subject[subject]
    broken = Assembly(candidate=msgspec.structs.replace(found, classes=()))
    world.cycle.backlog.update(subject, broken, world.clock.now)
    return world


def test_a_gang_is_set_aside_as_a_whole() -> None:
    """All its members are told; whoever comes behind takes the room."""
    world = broken_gang(*(raw_pod(f"w{n}", group="train") for n in range(2)))
    world.see(raw_node(), raw_pod("p1", created=5.0)).turn(after=1.0)
    assert world.binder.assigned == {"p1": "n1"} and world.meter.aside == 1
    assert world.writer.conditions.keys() == {"w0", "w1"}
    assert "error of the scheduler" in world.writer.conditions["w0"]
    world.see(raw_pod("w0", group="train", priority=7), raw_node("n2")).turn(after=10.0)
    assert world.binder.assigned.keys() == {"p1", "w0", "w1"}


def test_a_gang_that_is_bound_in_part_keeps_no_room_by_it() -> None:
    """Nor are its assignments looked for in each turn."""
    world = broken_gang(raw_pod("w0", group="train", node_name="n1"), raw_pod("w1", group="train"))
    world.see(raw_node(), raw_pod("p1", created=5.0))
    for _ in range(3):
        world.turn(after=1.0)
    assert world.binder.assigned == {"p1": "n1"} and world.meter.aside == 1


@pytest.mark.parametrize("node_name", ["", "n1"])
def test_a_pod_that_cannot_be_read_by_an_error_of_ours(node_name: str) -> None:
    """Left out as any other that cannot be read: its node gets no new pods, since what it takes is not known."""
    world = World().see(raw_node(), raw_node("n2"), unreadable(node_name=node_name), *map(raw_pod, ("p1", "p2")))
    turn = world.turn()
    assert set(world.binder.assigned.values()) == ({"n2"} if node_name else {"n1", "n2"})
    (refusal,) = turn.refusals
    assert refusal.message.startswith("Pod default/bad: cannot be read by an error of the scheduler: TypeError (")
    world.gone(unreadable(node_name=node_name)).see(raw_pod("p3")).turn()
    assert world.binder.assigned["p3"] == "n1"


def test_other_objects_that_cannot_be_read_by_an_error_of_ours() -> None:
    """A node is none, a PodGroup stays as it was known."""
    broken = objects.Node(objects.Metadata("n2", uid="n2"), objects.NodeSpec(taints=5))  # type: ignore[arg-type]
    group = msgspec.structs.replace(raw_group("other"), metadata=objects.Metadata("other", annotations=5))  # type: ignore[arg-type]
    world = World().see(raw_node(), broken, group, raw_pod())
    turn = world.turn()
    assert world.binder.assigned == {"p1": "n1"}
    assert sorted(refusal.kind for refusal in turn.refusals) == ["Node", "PodGroup"]


def test_a_node_that_grows_wakes_those_whom_it_can_hold() -> None:
    """Its agent says how much it lends as often as it likes; who asks for more than that is not tried again."""
    world = World().see(raw_node(batch_cpu="0"), raw_pod("large", batch_cpu="3000"), raw_pod("small", batch_cpu="900"))
    world.turn()
    world.see(raw_node(batch_cpu="1000")).turn(after=0.1)
    assert world.binder.assigned == {"small": "n1"}
    for index in range(4):
        world.see(raw_node(batch_cpu=str(1000 * (index % 2)))).turn(after=0.1)
        parked = world.cycle.backlog._parked.get(WorkloadId.pod("default/large"))
        assert parked is not None
        assert (parked.attempts, parked.woken) == (1, False)
    world.see(raw_node(batch_cpu="3000")).turn(after=0.1)
    assert "large" not in world.binder.assigned
    world.turn(after=2.0)
    parked = world.cycle.backlog._parked.get(WorkloadId.pod("default/large"))
    assert parked is not None and parked.attempts == 2
    world.see(raw_node(batch_cpu="3900")).turn(after=0.1)
    assert world.binder.assigned["large"] == "n1"
