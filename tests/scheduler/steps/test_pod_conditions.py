"""What waiting pods are told: the same message once, nominations as they change, and nothing of pods that are gone."""

from __future__ import annotations

from scheduler_builders import raw_pod

from kube.informer import Change, ChangeKind
from model.decision import Decision, Unit
from model.reason import Reason
from model.workload import WorkloadId
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.placement.explain import Verdict
from scheduler.settings import SchedulerSettings
from scheduler.steps.pod_conditions import PodConditions, says_as_much

JOB = WorkloadId.pod("default/a")


class Told:
    """A cache with these pods, and what is nominated for them."""

    def __init__(self, *names: str, bound: str = "") -> None:
        self.nodes: dict[str, str] = {}
        self.cache = cache = ClusterCache(SchedulerSettings().served)
        for name in names:
            cache.apply(facts.PodSeen(Change(ChangeKind.ADDED, raw_pod(name, node_name=bound))))
        self.conditions = PodConditions(cache, lambda uid, subject: self.nodes.get(uid, "") if subject == JOB else "")

    def tell(self, message: str, *names: str, quiet: bool = False) -> list[tuple[str, str, bool, str | None, bool]]:
        uids = tuple(f"uid-{name}" for name in names)
        writes = self.conditions.tell(Verdict(JOB, DECISION, uids, message), quiet=quiet)
        return [(write.pod.name, write.message, write.first, write.nominated, write.event) for write in writes]


DECISION = Decision(JOB.text, "batch/schedule", 0, Unit.NODES, Reason.UNSCHEDULABLE, ())


def test_a_message_is_told_once_to_each() -> None:
    """The first time as the first; another one is news; who is not in the cache is told nothing."""
    world = Told("a", "b")
    assert world.tell("full", "a", "b", "gone") == [("a", "full", True, None, True), ("b", "full", True, None, True)]
    assert world.tell("full", "a", "b") == []
    assert world.tell("fuller", "a") == [("a", "fuller", False, None, True)]


def test_quietly_who_was_told_something_keeps_it() -> None:
    """Who was not is told."""
    world = Told("a", "b")
    world.tell("full", "a")
    assert world.tell("fuller", "a", "b", quiet=True) == [("b", "fuller", True, None, True)]


def test_a_nomination_is_told_when_it_changes() -> None:
    """Without an Event where the message is the same; empty where it ends."""
    world = Told("a")
    world.nodes["uid-a"] = "n1"
    assert world.tell("room is made", "a") == [("a", "room is made", True, "n1", True)]
    assert world.tell("room is made", "a") == []
    world.nodes["uid-a"] = "n2"
    assert world.tell("room is made", "a", quiet=True) == [("a", "room is made", False, "n2", False)]
    world.nodes.clear()
    assert world.tell("full again", "a") == [("a", "full again", False, "", True)]


def test_a_nomination_that_is_over_is_taken_back() -> None:
    """Of a pod that waits and was told something; once."""
    world = Told("a")
    assert world.conditions.renominate("uid-a", JOB) == []
    world.nodes["uid-a"] = "n1"
    world.tell("room is made", "a")
    assert world.conditions.renominate("uid-a", JOB) == []
    world.nodes.clear()
    (write,) = world.conditions.renominate("uid-a", JOB)
    assert (write.message, write.nominated, write.first, write.event) == ("room is made", "", False, False)
    assert world.conditions.renominate("uid-a", JOB) == []
    assert world.conditions.renominate("uid-gone", JOB) == []


def test_a_bound_pod_has_no_nomination_to_take_back() -> None:
    """It has a node."""
    world = Told("a", bound="n1")
    world.tell("full", "a")
    world.nodes["uid-a"] = "n2"
    assert world.conditions.renominate("uid-a", JOB) == []


def test_other_numbers_are_no_news_for_a_minute() -> None:
    """Other words are, and so are other numbers where it is not known when it was told."""
    world = Told("a")
    record = world.cache.pods.record("uid-a")
    assert record is not None
    world.tell("1 of 3 cpu", "a")
    assert not says_as_much(record, "2 of 3 cpu", 100.0)
    record.told_seconds = 100.0
    assert says_as_much(record, "1 of 3 cpu", 1000.0)
    assert says_as_much(record, "2.5 of 13 cpu", 159.0)
    assert not says_as_much(record, "2.5 of 13 cpu", 160.0)
    assert not says_as_much(record, "2.5 of 13 memory", 101.0)


def test_the_number_in_a_name_is_news() -> None:
    """Another queue is no other number of the same one."""
    world = Told("a")
    record = world.cache.pods.record("uid-a")
    assert record is not None
    world.tell('the maximum of queue "team-1" is 3 cpu', "a")
    record.told_seconds = 100.0
    assert says_as_much(record, 'the maximum of queue "team-1" is 4 cpu', 101.0)
    assert not says_as_much(record, 'the maximum of queue "team-2" is 3 cpu', 101.0)
    assert not says_as_much(record, 'the maximum of queue "1" is 3 cpu', 101.0)
