"""PodGroups as the scheduler keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec
import pytest
from cache_builders import empty_cache, feed
from scheduler_builders import raw_group, raw_node, raw_pod
from scheduler_fakes import World
from structlog.testing import capture_logs

from kube import objects
from kube.dialects.gangs.membership import ANNOTATION_GROUPS
from kube.dialects.gangs.podgroups import PARTIAL_SINCE
from kube.informer import Change, ChangeKind
from model.workload import WorkloadId
from scheduler.cache.gang_cache import GangCache
from scheduler.cache.pod_charges import PodCharges
from scheduler.cache.pod_record import PodRecord
from scheduler.cache.pods import Pods
from scheduler.core.gangs.roster import Roster

LISTING = 100
OF_ITS_OWN = {"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "1"}


def listing(name: str, *others: str, minimum: int = 1) -> objects.PodGroup:
    return raw_group(name, minimum, annotations={ANNOTATION_GROUPS: json.dumps([f"default/{each}" for each in others])})


def labelled(name: str, label: str) -> objects.Node:
    node = raw_node(name)
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels={label: "a"}))


def test_an_unreadable_mark_is_told_once() -> None:
    """Not with each change of its PodGroup; another text is told again."""
    book = GangCache()
    with capture_logs() as logs:
        for text, minimum in (("soon", 2), ("soon", 3), ("later", 3), ("2026-01-01T00:00:00Z", 3)):
            book.seen(Change(ChangeKind.MODIFIED, raw_group(minimum=minimum, annotations={PARTIAL_SINCE: text})))
    assert [line["error"].partition("; ")[0] for line in logs] == [
        f"PodGroup default/train: metadata.annotations[{PARTIAL_SINCE}] is {text!r}" for text in ("soon", "later")
    ]


def test_a_pod_is_nothing_to_those_that_list_its_gang_and_are_not_listed() -> None:
    """Whoever makes PodGroups makes thousands that list one gang; with each word of a pod of it all were looked at."""
    cache = empty_cache()
    feed(cache, raw_group("g"), *(listing(f"q{index}", "g") for index in range(LISTING)), raw_pod("p", group="g"))
    cache.take_touched()
    feed(cache, raw_pod("p", group="g", labels={"word": "new"}))
    assert cache.take_touched().subjects == {WorkloadId.gang("default/g")}
    feed(cache, raw_group("g", 5))
    assert 1 < len(cache.take_touched().subjects) < LISTING / 2
    feed(cache, listing("g", "q7"), listing("q7", "g"))
    together = WorkloadId.gang("default/g", "default/q7")
    assert together in cache.take_touched().subjects
    feed(cache, raw_pod("p", group="g", labels={"word": "newer"}))
    assert cache.take_touched().subjects == {together}


def test_of_a_gang_in_another_group_no_members_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of those that list it would go through all of its pods. What they are told stays as it is."""
    asked: list[str] = []
    members = Pods.members

    def noted(pods: Pods, key: str) -> Roster:
        asked.append(key)
        return members(pods, key)

    monkeypatch.setattr(Pods, "members", noted)
    world = World().see(raw_node(), raw_group("g", 3), listing("q", "g"), raw_pod("p", group="g"))
    world.see(raw_pod("w", group="q")).turn()
    assert asked.count("default/q") and asked.count("default/g") == 1
    told = "gang default/g: it is listed in group default/g,default/q but lists default/g itself; give all of them one list"
    assert world.writer.conditions["w"].endswith(told)
    assert world.writer.statuses["g"].phase != ""


def test_who_lists_a_gang_without_object_hears_that_it_comes_and_goes() -> None:
    """As it did; a pod that does not count is none."""
    world = World().see(raw_node(), listing("q", "g"), raw_pod("w", group="q"))
    world.turn()
    world.turn(after=60.0)
    absent = "gang default/g of group default/g,default/q does not exist"
    assert world.writer.conditions["w"].endswith(absent)
    failed, first = raw_pod("a", annotations=OF_ITS_OWN, phase="Failed"), raw_pod("b", annotations=OF_ITS_OWN)
    world.see(first, failed).turn()
    assert "lists default/g itself" in world.writer.conditions["w"]
    world.gone(first, failed).turn()
    world.turn(after=60.0)
    assert world.writer.conditions["w"].endswith(absent)


def test_gangs_that_another_lists_are_charged_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may write a PodGroup lists 64 gangs of any namespace, of thousands of pods, and changes it again and
    again; each of these pods was charged anew.
    """
    charged: list[str] = []
    regrouped = PodCharges.regrouped

    def noted(charges: PodCharges, key: str, members: Iterable[PodRecord]) -> None:
        charged.append(key)
        regrouped(charges, key, members)

    monkeypatch.setattr(PodCharges, "regrouped", noted)
    cache = empty_cache()
    feed(cache, raw_node(), raw_group("g"), raw_pod("p", group="g", node_name="n1"))
    for minimum in (1, 2, 3):
        feed(cache, listing("q", "g", minimum=minimum))
        cache.take_touched()
    assert "default/g" not in charged
    feed(cache, listing("g", "q"))
    charge = cache.ledger.charge("uid-p")
    assert charge is not None and charge.subject == WorkloadId.gang("default/g", "default/q")
    feed(cache, raw_group("g"))
    charge = cache.ledger.charge("uid-p")
    assert charge is not None and charge.subject is None


def test_labels_of_nodes_are_gathered_once() -> None:
    """For all gangs that ask for a topology, until a node comes, goes or has others."""
    cache = empty_cache()
    feed(cache, labelled("n1", "rack"))
    first = cache._node_labels()
    feed(cache, raw_pod("p", node_name="n1"), labelled("n1", "rack"))
    assert first == {"rack"} and cache._node_labels() is first
    feed(cache, labelled("n1", "zone"), labelled("n2", "rack"))
    assert cache._node_labels() == {"rack", "zone"}
    feed(cache, labelled("n1", "zone"), kind=ChangeKind.DELETED)
    assert cache._node_labels() == {"rack"}
