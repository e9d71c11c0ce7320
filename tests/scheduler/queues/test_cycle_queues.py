"""Queues in the cycle: admission, quota, order, and what is taken back."""

from __future__ import annotations

import pytest
from queue_world import cpu, pod, queue, running
from scheduler_builders import raw_group, raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from model.reason import Reason
from scheduler.settings import QueueSettings, SchedulerSettings


def test_a_hard_quota_holds() -> None:
    """Two of three pods fit into the queue; the third is told the queue, the amounts and the bound."""
    world = World().see(raw_node(batch_cpu="4000"), queue("team", quota={"hard": cpu(1000)}))
    world.see(*(pod(f"p{i}", "team", created=float(i)) for i in range(3)))
    turn = world.turn()
    assert world.binder.assigned == {"p0": "n1", "p1": "n1"}
    refused = [decision for decision in turn.decisions if decision.subject == "pod/default/p2"]
    assert [decision.reason for decision in refused] == [Reason.QUOTA_EXHAUSTED]
    assert world.told("p2") == [
        'queue "team" may have 0 more of kubernetes.io/batch-cpu now, and 500 is asked for: that is the maximum of queue "team"'
    ]
    world.gone(running("p0", "team")).turn(after=1.0)
    assert world.binder.assigned["p2"] == "n1"


def test_guarantees_of_more_than_is_left() -> None:
    """A node is lost: each team has half of its guarantee, and nothing stands idle; what does not fit now waits."""
    world = World().see(raw_node(batch_cpu="2000"))
    world.see(*(queue(name, quota={"guaranteed": cpu(2000)}) for name in ("one", "two")))
    world.see(*(pod(f"{name}{i}", name, created=float(i)) for name in ("one", "two") for i in range(3)))
    turn = world.turn()
    assert sorted(world.binder.assigned) == ["one0", "one1", "two0", "two1"]
    told = {decision.reason for decision in turn.decisions if decision.subject.endswith("2")}
    assert told == {Reason.QUOTA_EXHAUSTED}
    world.see(raw_node("n2", batch_cpu="2000")).turn(after=1.0)
    assert len(world.binder.assigned) == 6


@pytest.mark.parametrize(
    ("queues", "reason", "message"),
    [
        pytest.param([], Reason.QUEUE_NOT_FOUND, 'queue "team" does not exist; create it, or name another', id="none"),
        pytest.param(
            [queue("other")],
            Reason.QUEUE_NOT_FOUND,
            'queue "team" does not exist; create it, or name another',
            id="another",
        ),
        pytest.param(
            [queue("team", state="Closed")],
            Reason.QUEUE_CLOSED,
            'queue "team" is closed: it takes no work',
            id="closed",
        ),
        pytest.param(
            [queue("team", parent="lost")],
            Reason.QUEUE_INVALID,
            'queue "team": its parent "lost" does not exist; create it, or name another in spec.parent',
            id="parent missing",
        ),
        pytest.param(
            [queue("team"), queue("below", parent="team")],
            Reason.QUEUE_HAS_CHILDREN,
            'queue "team" has queues below it (below); name one of these',
            id="inner",
        ),
        pytest.param(
            [queue("team", quota={"hard": cpu(100)})],
            Reason.QUOTA_TOO_SMALL,
            'queue "team" can never have 500 of kubernetes.io/batch-cpu, only 100: that is the maximum of queue "team"',
            id="never",
        ),
        pytest.param(
            [queue("team", admissionControl={"priorityRange": {"min": 6000, "max": 7000}})],
            Reason.QUEUE_REFUSES_JOB,
            'queue "team" takes priorities from 6000 to 7000, and the job\'s is 5500',
            id="priority",
        ),
    ],
)
def test_a_queue_that_takes_no_such_work(queues: list[objects.Queue], reason: Reason, message: str) -> None:
    """The pod waits and is told why; work without a queue goes on."""
    world = World().see(raw_node(batch_cpu="4000"), *queues, pod("p", "team"), pod("free"))
    turn = world.turn()
    assert world.binder.assigned == {"free": "n1"}
    assert world.told("p") == [message]
    assert reason in [decision.reason for decision in turn.decisions]
    assert world.turn(after=1.0).decisions == []


def test_a_queue_that_is_made_later() -> None:
    """It is news to those who wait for it."""
    world = World().see(raw_node(batch_cpu="4000"), pod("p", "team"))
    world.turn()
    world.see(queue("team")).turn(after=1.0)
    assert world.binder.assigned == {"p": "n1"}


def test_a_queue_that_is_deleted_over_its_jobs_takes_nothing_from_them() -> None:
    """Admission judges by a status that may be seconds old: what runs stays and is counted, what waits is told."""
    team, other = queue("team", quota={"hard": cpu(1000)}), queue("other")
    world = World().see(raw_node(batch_cpu="4000"), team, other, running("p0", "team"))
    world.turn()
    world.gone(team).see(pod("p1", "team", created=1.0), pod("p2", "team", created=2.0)).turn(after=1.0)
    assert world.told("p1") == ['queue "team" does not exist; create it, or name another']
    assert not world.binder.assigned and not world.evictor.evicted
    world.see(team).turn(after=2.0)
    assert world.binder.assigned == {"p1": "n1"}


def test_what_was_lent_is_taken_back() -> None:
    """A queue under its own takes back what another borrowed, no more than it needs, whatever the priorities."""
    world = World().see(raw_node(batch_cpu="2000"))
    world.see(queue("a", quota={"soft": cpu(1000)}), queue("b", quota={"soft": cpu(1000)}))
    world.see(*(running(f"b{i}", "b", created=float(i), priority=5900) for i in range(4)))
    world.turn()
    world.see(pod("a0", "a", created=10.0)).turn(after=1.0)
    assert world.evictor.evicted == {
        "b0": "koord-scheduler: queue a takes back what queue b borrowed, preemptor: default/a0, triggerPod: default/a0"
    }
    assert "1 pod of other queues goes to make room" in world.told("a0")[0]
    world.gone(running("b0", "b")).turn(after=1.0)
    assert world.binder.assigned == {"a0": "n1"}


SERVICES = {
    "of koord-prod": (9500, 0, False, False),
    "of equal priority": (9500, 9500, False, False),
    "of lower priority": (9000, 9500, False, True),
    "above the bands": (1_000_000, 9500, False, False),
    "between the bands": (8500, 0, False, True),
    "without a class": (0, 0, False, True),
    "where the operator says so": (9500, 0, True, True),
}


@pytest.mark.parametrize(("service", "asking", "reclaim", "goes"), SERVICES.values(), ids=SERVICES)
def test_whether_a_service_is_taken_back(service: int, asking: int, reclaim: bool, goes: bool) -> None:
    """One from koord-prod up keeps what its queue borrowed against all but higher priority."""
    settings = SchedulerSettings(queues=QueueSettings(reclaim_prod=reclaim))
    world = World(settings).see(raw_node(batch_cpu="8000"))
    world.see(*(queue(name, quota={"soft": cpu(4000), "hard": cpu(8000)}) for name in ("a", "b")))
    theirs, ours = ({"sublet.dev/queue": name} for name in ("b", "a"))
    world.see(raw_pod("svc", labels=theirs, priority=service, batch_cpu="7000", node_name="n1", phase="Running"))
    world.turn()
    world.see(raw_pod("a0", labels=ours, priority=asking, batch_cpu="2000", created=10.0)).turn(after=1.0)
    assert list(world.evictor.evicted) == (["svc"] if goes else [])


def test_a_guarantee_is_never_taken() -> None:
    """b has no more than it is entitled to: nobody goes, and the other waits."""
    world = World().see(raw_node(batch_cpu="2000"))
    world.see(queue("a", quota={"soft": cpu(1000)}), queue("b", quota={"soft": cpu(2000), "guaranteed": cpu(2000)}))
    world.see(*(running(f"b{i}", "b", created=float(i)) for i in range(4)))
    world.turn()
    world.see(pod("a0", "a", created=10.0, priority=5999)).turn(after=1.0)
    assert world.evictor.evicted == {}


def test_a_gang_is_reclaimed_for_as_a_whole() -> None:
    """A gang that fits into what its queue may take back evicts for all members at once; one that does not, for none."""
    world = World().see(raw_node(batch_cpu="2000"))
    world.see(queue("a", quota={"soft": cpu(1000)}), queue("b", quota={"soft": cpu(1000)}))
    world.see(*(running(f"b{i}", "b", created=float(i)) for i in range(4)))
    world.turn()
    labels = {"koordinator.sh/qosClass": "BE", "sublet.dev/queue": "a"}
    world.see(raw_group("big", 3), *(raw_pod(f"g{i}", group="big", labels=labels, priority=5500) for i in range(3)))
    world.turn(after=1.0)
    assert world.evictor.evicted == {}
    world.see(raw_group("fits", 2), *(raw_pod(f"f{i}", group="fits", labels=labels, priority=5500) for i in range(2)))
    world.turn(after=1.0)
    assert sorted(world.evictor.evicted) == ["b0", "b1"]


def test_the_victim_is_the_one_that_makes_room() -> None:
    """Of what b may lose it is not the youngest that goes, but who leaves room for a large pod on one node."""
    world = World().see(raw_node("n1", batch_cpu="800"), raw_node("n2", batch_cpu="800"))
    world.see(queue("a", quota={"soft": cpu(800)}), queue("b", quota={"soft": cpu(800)}))
    b = {"queue": "b", "batch_cpu": "400"}
    world.see(running("b0", node="n1", **b), running("b1", node="n1", **b), running("b2", node="n2", **b))
    world.turn()
    world.see(pod("a0", "a", batch_cpu="800", created=9.0)).turn(after=1.0)
    assert list(world.evictor.evicted) == ["b2"]
    world.gone(running("b2", node="n2", **b)).turn(after=1.0)
    assert world.binder.assigned == {"a0": "n2"}
