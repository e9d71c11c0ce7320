"""Quotas of queues in a turn: how much of a workload is let through, whose turn it is, and in what order."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from queue_world import BATCH, cpu, pod, queue, running
from scheduler_builders import raw_group, raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from model.reason import Reason
from scheduler.settings import QueueSettings, SchedulerSettings


def world(*items: Any, **queues: Any) -> World:
    return World(SchedulerSettings(queues=QueueSettings(**queues))).see(raw_node(batch_cpu="4000"), *items)


def selecting(source: objects.Pod, labels: dict[str, str]) -> objects.Pod:
    return msgspec.structs.replace(source, spec=msgspec.structs.replace(source.spec, node_selector=labels))


def test_a_gang_gets_as_many_members_as_there_is_quota_for() -> None:
    """Its minimum at once, and of the rest those that fit; one more as the queue may have more."""
    members = [pod(f"w{i}", "team", group="train") for i in range(4)]
    found = world(queue("team", quota={"hard": cpu(1700)}), raw_group("train", 2), *members)
    found.turn()
    assert sorted(found.binder.assigned) == ["w0", "w1", "w2"]
    found.see(*(pod(name, "team", group="train", node_name="n1", phase="Running") for name in ("w0", "w1", "w2")))
    found.turn(after=11.0)
    assert "w3" not in found.binder.assigned
    found.see(queue("team", quota={"hard": cpu(2000)})).turn(after=11.0)
    assert sorted(found.binder.assigned) == ["w0", "w1", "w2", "w3"]


def test_a_minimum_beyond_the_quota_is_placed_in_no_part() -> None:
    """Nobody is bound, and all members say why."""
    members = [pod(f"w{i}", "team", group="train") for i in range(3)]
    found = world(queue("team", quota={"hard": cpu(1000)}), raw_group("train", 3), *members)
    turn = found.turn()
    assert found.binder.assigned == {}
    assert [decision.reason for decision in turn.decisions] == [Reason.QUOTA_TOO_SMALL]
    assert len(found.writer.conditions) == 3


@pytest.mark.parametrize(
    ("order", "placed"),
    [("StrictFIFO", set()), ("BestEffortFIFO", {"small"}), ("Backfill", {"small"})],
)
def test_what_a_first_that_does_not_fit_means_to_others(order: str, placed: set[str]) -> None:
    """In a strict queue they wait, also in the turns in which it rests; other queues go on."""
    found = world(queue("team", order=order), queue("other"))
    found.see(running("r", "", batch_cpu="3000"), pod("large", "team", batch_cpu="2000", created=1.0))
    found.see(pod("small", "team", batch_cpu="100", created=2.0), pod("o", "other", created=3.0))
    found.turn()
    found.turn(after=0.5)
    assert found.binder.assigned.keys() == placed | {"o"}
    if order == "StrictFIFO":
        assert "pod/default/large is before it" in found.told("small")[0]
        found.gone(pod("large", "team", batch_cpu="2000", created=1.0)).turn(after=11.0)
        assert "small" in found.binder.assigned


NEVER: dict[str, tuple[dict[str, Any], list[objects.Pod], str]] = {
    "more than its queue may have": (
        {"quota": {"hard": cpu(1000)}},
        [pod("never", "team", batch_cpu="2000", created=1.0)],
        'queue "team" can never have 2000',
    ),
    "a priority that its queue does not take": (
        {"admissionControl": {"priorityRange": {"max": 6000}}},
        [pod("never", "team", priority=6001, created=1.0)],
        'queue "team" takes priorities up to 6000',
    ),
    "more than the largest node has": (
        {},
        [pod("never", "team", batch_cpu="4001", created=1.0)],
        "what the cluster has",
    ),
    "a node that does not exist": (
        {},
        [selecting(pod("never", "team", created=1.0), {"zone": "lost"})],
        "0/1 nodes",
    ),
    "more members than all nodes hold": (
        {},
        [pod(f"never{i}", "team", group="train", batch_cpu="1500", created=1.0) for i in range(3)],
        "what the cluster has",
    ),
}


@pytest.mark.parametrize(("spec", "never", "told"), NEVER.values(), ids=NEVER)
def test_a_first_that_can_never_run_holds_up_nobody(spec: dict[str, Any], never: list[objects.Pod], told: str) -> None:
    """A strict queue goes on with the next, and the first is told its own reason."""
    found = world(queue("team", order="StrictFIFO", **spec), raw_group("train", 3))
    found.see(*never, pod("next", "team", created=2.0)).turn()
    assert found.binder.assigned == {"next": "n1"}
    assert told in found.told(never[0].metadata.name)[0]


def test_a_pod_of_very_many_resources_is_in_no_accounts() -> None:
    """It waits with a sentence, and what it names is in nobody's books; others go on."""
    many = pod("many", "team", created=1.0)
    amounts = {BATCH: "500"} | {f"example.com/r{index}": "1" for index in range(200)}
    own = objects.Container("main", objects.Resources(amounts, amounts))
    found = world(queue("team", order="StrictFIFO"), pod("next", "team", created=2.0))
    found.see(msgspec.structs.replace(many, spec=msgspec.structs.replace(many.spec, containers=[own]))).turn()
    assert found.told("many") == ["a pod of it names 202 resources, and queues count up to 128"]
    assert found.binder.assigned == {"next": "n1"}
    assert {cell[1] for each in found.cycle.standings() for cell in each.cells} == {BATCH, "pods"}


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


def test_use_over_time() -> None:
    """A queue that ran all night goes last in the morning, though it has nothing any more."""
    found = world(queue("night"), queue("day"), usage_half_life_seconds=3600.0)
    night = [pod(f"n{i}", "night", node_name="n1", phase="Running") for i in range(8)]
    found.see(*night).turn()
    found.turn(after=36_000.0)
    found.gone(*night).turn(after=1.0)
    found.see(*(pod(f"m{i}", "night", created=1.0) for i in range(4)))
    found.see(*(pod(f"d{i}", "day", created=2.0) for i in range(9))).turn(after=1.0)
    assert {name[0] for name in found.binder.assigned} == {"d"}


def test_switched_off() -> None:
    """Queues are nobody's business then, not even one that does not exist."""
    found = world(queue("team", quota={"hard": cpu(100)}), enable=False)
    found.see(pod("a", "team"), pod("b", "lost")).turn()
    assert found.binder.assigned.keys() == {"a", "b"}
    assert found.cycle.quotas.quota is None


def test_books_for_those_who_ask_without_queues() -> None:
    """What runs counts to the default queue; what no queue governs to none."""
    found = world(pod("a", node_name="n1", phase="Running"), raw_pod("web", node_name="n1", phase="Running"))
    found.turn()
    picture = found.cycle.quotas.picture(found.cycle._cache.snapshot())
    assert found.cycle.quotas.quota is None
    assert (picture.used("default", ("", BATCH)), picture.capacity["", BATCH]) == (500, 3500)
    assert msgspec.structs.asdict(picture.headroom("default", ("", BATCH)))["amount"] == 3000
