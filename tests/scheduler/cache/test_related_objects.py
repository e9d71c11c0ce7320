"""Volumes, namespaces, budgets and topology by key; what is unreadable is told and counts as not there."""

from __future__ import annotations

from typing import Any

from kube import objects
from kube.informer import Change, ChangeKind
from model.storage import VolumeClaim
from scheduler.cache.related_objects import RelatedObjectsCache


def claim(volume: str = "") -> objects.PersistentVolumeClaim:
    return objects.PersistentVolumeClaim(objects.Metadata("data", "default"), objects.ClaimSpec(volume_name=volume))


def seen(item: Any, kind: ChangeKind = ChangeKind.MODIFIED) -> Change[Any]:
    return Change(kind, item)


def test_a_claim_that_gets_its_volume_may_let_a_pod_in() -> None:
    """The view is a new value where something of it changed, and the same one where nothing did."""
    cache = RelatedObjectsCache(lambda *refusal: None)
    assert cache.apply(seen(claim()))
    before = cache.view
    assert (cache.apply(seen(claim())), cache.view is before) == (False, True)
    assert cache.apply(seen(claim("disk")))
    assert cache.view.claims == {"default/data": VolumeClaim("default", "data", "disk")}
    assert cache.apply(seen(claim("disk"), ChangeKind.DELETED))
    assert cache.view.claims == {}


def test_an_unreadable_budget_is_told_and_left_out() -> None:
    """Nothing is half applied: the budget that stood before does not stay in force under a broken one."""
    refusals: list[tuple[str, str]] = []
    cache = RelatedObjectsCache(lambda where, metadata, message: refusals.append((where, message)))
    metadata = objects.Metadata("pdb", "default")
    good = objects.DisruptionBudgetSpec({"matchLabels": {"app": "web"}})
    cache.apply(seen(objects.PodDisruptionBudget(metadata, good)))
    assert [budget.name for budget in cache.budgets] == ["pdb"]
    bad = objects.DisruptionBudgetSpec({"matchExpressions": [{"key": "app", "operator": "Like"}]})
    cache.apply(seen(objects.PodDisruptionBudget(metadata, bad)))
    assert cache.budgets == ()
    assert [where for where, _ in refusals] == ["PodDisruptionBudget default/pdb"]
    assert "Like" in refusals[0][1]


def test_layers_of_all_topologies_by_name() -> None:
    """Whoever comes later in order of name wins, however they arrived."""
    cache = RelatedObjectsCache(lambda *refusal: None)
    for name, key in (("default", "rack-a"), ("also", "rack-b")):
        spec = objects.ClusterNetworkTopologySpec([objects.TopologyLayer("Rack", "", [key])])
        cache.apply(seen(objects.ClusterNetworkTopology(objects.Metadata(name), spec)))
    assert cache.layers["Rack"].keys == ("rack-a",)
