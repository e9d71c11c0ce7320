"""Pods without a node, and too many finished ones."""

import pytest

from embedded.apiserver.apimachinery.selectors import EVERYTHING
from embedded.apiserver.controllers.pod_garbage_collector import PodCollector
from embedded.apiserver.reconciling.pods_by_node import PodsByNode
from embedded.apiserver.storage.records import Change, Event

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"


def pod(api, name="p", **spec):
    return api.post(PODS, {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]} | spec})


def after(api, seconds):
    api.clock.advance(seconds)
    api.settle()


def names(api):
    return sorted(found["metadata"]["name"] for found in api.get(PODS)["items"])


@pytest.mark.parametrize("ever", [True, False], ids=["the node is deleted", "there never was one"])
def test_a_pod_without_its_node_goes_after_a_while(api, ever):
    """40 s; meanwhile the node may be registered again."""
    if ever:
        api.post(NODES, {"metadata": {"name": "n"}})
    pod(api, nodeName="n")
    pod(api, "waiting")
    api.settle()
    api.call("DELETE", f"{NODES}/n")
    api.settle()
    after(api, 39)
    assert names(api) == ["p", "waiting"]
    after(api, 1)
    assert names(api) == ["waiting"]


def test_it_has_failed_before_it_goes(api):
    """Whoever watches sees why."""
    version = api.get(PODS)["metadata"]["resourceVersion"]
    pod(api, nodeName="n")
    api.settle()
    after(api, 40)
    last = [e["object"] for e in api.watch(f"{PODS}?watch=true&resourceVersion={version}") if e["type"] == "DELETED"]
    (target,) = [c for c in last[0]["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert (last[0]["status"]["phase"], target["reason"]) == ("Failed", "DeletionByPodGC")
    assert target["message"] == "PodGC: node no longer exists"


def test_a_node_that_is_registered_again_keeps_its_pods(api):
    """In time."""
    pod(api, nodeName="n")
    api.settle()
    after(api, 20)
    api.post(NODES, {"metadata": {"name": "n"}})
    after(api, 30)
    assert names(api) == ["p"]


def test_only_so_many_finished_pods_are_kept(api):
    """The oldest go first; those that run do not count."""
    for number in range(5):
        pod(api, f"p{number}")
        api.clock.advance(1)
    for number in (4, 2, 0, 1):
        api.set_pod_status(f"p{number}", {"phase": "Failed" if number % 2 else "Succeeded"})
    collector = PodCollector(api.resources, PodsByNode(), finished_limit=2)
    for record in api.resources.store.select("pods", EVERYTHING):
        collector.react("pods", Event(Change.ADDED, record, None))
    assert collector.trim() == 2
    assert names(api) == ["p2", "p3", "p4"]
