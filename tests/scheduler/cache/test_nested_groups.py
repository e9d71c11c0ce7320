"""PodGroups below composite groups, as trees grow and change."""

from __future__ import annotations

from typing import Any

import msgspec
from scheduler_builders import raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from kube.informer import Change, ChangeKind
from scheduler.cache.gang_cache import GangCache


def composite(name: str = "root", minimum: int = 2) -> objects.CompositePodGroup:
    told = {"metadata": {"name": name, "namespace": "default"}, "spec": {"schedulingPolicy": {}}}
    told["spec"]["schedulingPolicy"]["gang"] = {"minGroupCount": minimum}  # type: ignore[index]
    return msgspec.convert(told, objects.CompositePodGroup)


def group(name: str, parent: str = "root", minimum: int = 1) -> objects.UpstreamPodGroup:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": minimum}}, "parentCompositePodGroupName": parent}
    told = {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": spec}
    return msgspec.convert(told, objects.UpstreamPodGroup)


def member(name: str, of: str) -> objects.Pod:
    pod = raw_pod(name)
    return msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, scheduling_group=objects.SchedulingGroup(of))
    )


def told(found: World, name: str) -> str:
    """The newest message that a pod got."""
    found.turn(after=5.0)
    return found.told(name)[-1]


def placed(found: World) -> set[str]:
    found.turn()
    return set(found.binder.assigned)


def test_groups_of_a_composite_go_together() -> None:
    """None of them before all that are needed have their members; two of 500 fit on a node."""
    found = World().see(raw_node(), composite(), group("driver"), group("workers"), member("d", "driver"))
    assert placed(found) == set()
    found.see(member("w", "workers"))
    assert placed(found) == {"d", "w"}


def test_groups_that_do_not_fit_together() -> None:
    """Neither takes the room that the other would need."""
    found = World().see(raw_node(batch_cpu="500"), composite(), group("driver"), group("workers"))
    found.see(member("d", "driver"), member("w", "workers"))
    assert placed(found) == set()
    found.see(raw_node("n2"))
    assert placed(found) == {"d", "w"}


def test_a_composite_that_comes_last() -> None:
    """Until then its groups are held, and say what is missing; one that changes lets the others go alone."""
    found = World().see(raw_node(), group("driver"), member("d", "driver"))
    assert placed(found) == set()
    assert "leads to default/root, and there is no such CompositePodGroup" in told(found, "d")
    found.see(composite())
    assert placed(found) == set()
    found.see(composite(minimum=1))
    assert placed(found) == {"d"}


def test_a_group_that_goes() -> None:
    """What was placed with it keeps running; what waits for it says so."""
    found = World().see(raw_node(), composite(), group("driver"), group("workers"))
    found.see(member("d", "driver"))
    assert placed(found) == set()
    found.gone(group("workers"))
    message = "CompositePodGroup default/root needs 2 groups at once, and 1 name it as their parent"
    assert message in told(found, "d")


def test_trees_are_read_once_for_all_changes_of_a_turn() -> None:
    """And not for a change that is none to them, such as a status: who may write PodGroups has thousands seen."""
    cache = GangCache()
    cache.composite(Change(ChangeKind.ADDED, composite(minimum=3)))
    groups = [group(name) for name in ("a", "b", "c")]
    for each in groups:
        assert cache.seen(Change(ChangeKind.ADDED, each))[0]
    assert cache.get("default/a").gang.spec.groups == ()  # type: ignore[union-attr]
    cache.nest_again()
    assert cache.get("default/a").gang.spec.groups == ("default/a", "default/b", "default/c")  # type: ignore[union-attr]
    assert cache.seen(Change(ChangeKind.MODIFIED, groups[0]))[0] == set() == cache.nest_again()
