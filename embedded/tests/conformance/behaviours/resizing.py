"""Pods whose CPU and memory change while they live: what pods/resize takes, and what it refuses.

What a node makes of it is for `embedded/tests/node` and the whole cluster: no node here runs anything.
"""

from __future__ import annotations

from typing import Any

import pytest

from embedded.tests.conformance import pages
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import PODS, Object, container, pod

_AMOUNTS = {"requests": {"cpu": "700m", "memory": "200Mi"}, "limits": {"cpu": "700m", "memory": "200Mi"}}
_MORE = {"requests": {"cpu": "800m"}, "limits": {"cpu": "800m"}}
_FIRST_KUBECTL = (1, 32)  # whose --subresource knows resize


def _given(t: Case, resources: Object, **spec: Any) -> Object:
    if t.by_kubectl and tuple(map(int, t.binary.version.split(".")[:2])) < _FIRST_KUBECTL:
        pytest.skip(f"kubectl {t.binary.version} refuses --subresource resize itself; 1.32 and newer know it")
    return t.given(PODS, pod("p", containers=[container(resources=resources)], **spec))


def _resize(t: Case, resources: Object, kind: str = "strategic") -> Object:
    body = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    found: Object = t.patch(PODS, "p", kind, body, subresource="resize")["spec"]["containers"][0]["resources"]
    return found


@behaviour(pages.RESIZE + "#example-1-resizing-cpu-without-restart", fast=Via.ALL)
def cpu_is_resized_through_the_subresource(t: Case) -> None:
    _given(t, _AMOUNTS)
    expected = {"cpu": "800m", "memory": "200Mi"}
    assert _resize(t, _MORE) == {"requests": expected, "limits": expected}
    assert t.now(PODS, "p")["spec"]["containers"][0]["resources"]["requests"] == expected


@behaviour(pages.RESIZE + "#example-2-resizing-memory-with-restart")
def memory_is_resized_through_the_subresource(t: Case) -> None:
    _given(t, _AMOUNTS)
    more = {"memory": "300Mi"}
    assert _resize(t, {"requests": more, "limits": more})["limits"] == {"cpu": "700m", "memory": "300Mi"}


@behaviour(pages.RESIZE + "#container-resize-policies", Via.CODE)
def the_policy_of_a_container_is_kept(t: Case) -> None:
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    t.given(PODS, pod("p", containers=[container(resources=_AMOUNTS, resizePolicy=policy)]))
    _resize(t, _MORE)
    assert t.now(PODS, "p")["spec"]["containers"][0]["resizePolicy"] == policy


@behaviour(pages.RESIZE + "#limitations")
def resources_are_resized_by_no_other_way(t: Case) -> None:
    _given(t, _AMOUNTS)
    body = {"spec": {"containers": [{"name": "main", "resources": _MORE}]}}
    with t.refused("Invalid", "pod updates may not change fields other than"):
        t.patch(PODS, "p", "strategic", body)


@behaviour(pages.RESIZE + "#limitations")
def the_qos_class_stays(t: Case) -> None:
    _given(t, _AMOUNTS)
    with t.refused("Invalid", "Pod QOS Class may not change as a result of resizing"):
        _resize(t, {"requests": {"cpu": "600m"}})


@behaviour(pages.RESIZE + "#limitations")
def only_cpu_and_memory_are_resized(t: Case) -> None:
    _given(t, {"requests": {"cpu": "100m"}})
    with t.refused("Invalid", "only cpu and memory resources are mutable"):
        _resize(t, {"requests": {"ephemeral-storage": "1Gi"}})


@behaviour(pages.RESIZE + "#limitations", Via.CODE)
def an_amount_cannot_be_removed(t: Case) -> None:
    _given(t, {"requests": {"cpu": "100m", "memory": "64Mi"}})
    with t.refused("Invalid", "resource requests cannot be removed"):
        _resize(t, {"requests": {"memory": None}})


@behaviour(pages.RESIZE, Via.RAW | Via.PYTHON)
def a_resize_changes_nothing_else(t: Case) -> None:
    held = _given(t, _AMOUNTS)
    body = {"metadata": {"labels": {"late": "1"}}, "spec": {"containers": [{"name": "main", "image": "app:2"}]}}
    found = t.patch(PODS, "p", "strategic", body, subresource="resize")
    assert (found["metadata"].get("labels"), found["spec"]) == (held["metadata"].get("labels"), held["spec"])


@behaviour(pages.RESIZE, Via.RAW)
def the_subresource_is_announced(t: Case) -> None:
    found = {each["name"]: each for each in t.raw.answer("GET", "/api/v1").json["resources"]}
    assert sorted(found["pods/resize"]["verbs"]) == ["get", "patch", "update"]
