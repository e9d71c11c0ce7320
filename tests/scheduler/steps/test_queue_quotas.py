"""Quotas of queues in a turn: how much of a workload is let through, and what counts."""

from __future__ import annotations

import msgspec
import pytest
from queue_world import BATCH, cpu, pod, queue, world
from scheduler_builders import raw_group, raw_pod

from kube import objects
from model.reason import Reason
from scheduler.core.preemption.demand import cut


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


def test_of_which_there_is_quota_for_nothing_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is let through has quota for one pod at the least; else it waits for quota as others do."""
    found = world(queue("team"), pod("a", "team"))
    monkeypatch.setattr(found.cycle.quotas, "within", lambda each: cut(each, [0]))
    turn = found.turn()
    assert [decision.reason for decision in turn.decisions] == [Reason.QUOTA_EXHAUSTED]
    assert found.told("a") == ['queue "team" may have none of these pods now'] and found.meter.aside == 0


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
