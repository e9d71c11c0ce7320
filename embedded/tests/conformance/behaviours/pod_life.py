"""Pods: gates, binding, deletion, eviction, logs."""

from __future__ import annotations

import functools
from typing import Any

import kubernetes

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.clients import Refused
from embedded.tests.conformance.resources import PODS, Object, pod


def _bind(t: Case, name: str, node: str) -> None:
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    if t.by_raw:
        t.raw.call("POST", t.path(PODS, name, "binding"), body=body)
        return
    _python(t, "create_namespaced_pod_binding", name, body)


def _evict(t: Case, name: str, **options: Any) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}} | options
    if t.by_raw:
        t.raw.call("POST", t.path(PODS, name, "eviction"), body=body)
        return
    _python(t, "create_namespaced_pod_eviction", name, body)


def _python(t: Case, method: str, name: str, body: Object) -> None:
    try:
        getattr(t.python.typed(), method)(name, t.ns, body, _preload_content=False)
    except kubernetes.client.ApiException as refused:
        raise Refused.from_body(refused.status or 0, refused.body or "") from None


def _running(t: Case, name: str, labels: dict[str, str] | None = None) -> None:
    """A pod on a node that nobody runs, ready as far as anyone can tell."""
    t.given(PODS, pod(name, labels, nodeName=t.node()))
    t.defer(lambda: t.raw.delete(PODS, t.ns, name, grace=0))
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    t.change(PODS, name, {"status": status}, "status")


# -- binding ---------------------------------------------------------------------------------------------------


@behaviour(pages.BINDING, Via.RAW)
def a_binding_takes_a_binding_of_its_pod(t: Case) -> None:
    t.given(PODS, pod("p"))
    target = {"kind": "Node", "name": t.node()}
    for meta, words in (({"name": "other"}, "name in URL does not match"), ({"name": "p", "namespace": "other"}, "")):
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        answer = t.raw.answer("POST", t.path(PODS, "p", "binding"), body=body)
        assert (answer.code, words in answer.json["message"]) == (400, True), answer.body
    assert "nodeName" not in t.now(PODS, "p")["spec"]


@behaviour(pages.BINDING, Via.CODE)
def a_binding_puts_a_pod_on_a_node(t: Case) -> None:
    node = t.node()
    t.given(PODS, pod("p"))
    _bind(t, "p", node)
    found = t.now(PODS, "p")
    assert found["spec"]["nodeName"] == node
    scheduled = [item for item in found["status"]["conditions"] if item["type"] == "PodScheduled"]
    assert [item["status"] for item in scheduled] == ["True"]


@behaviour(pages.BINDING, Via.CODE)
def a_bound_pod_is_not_bound_again(t: Case) -> None:
    node = t.node()
    t.given(PODS, pod("p"))
    _bind(t, "p", node)
    with t.refused("Conflict", "already assigned to node"):
        _bind(t, "p", node)


@behaviour(pages.BINDING, Via.CODE)
def what_does_not_exist_cannot_be_bound(t: Case) -> None:
    with t.refused("NotFound"):
        _bind(t, "absent", "anywhere")


@behaviour(pages.GATES)
def a_gated_pod_waits_and_says_so(t: Case) -> None:
    t.create(PODS, pod("p", schedulingGates=[{"name": "example.com/wait"}]))
    condition = t.get(PODS, "p")["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


@behaviour(pages.GATES, Via.CODE)
def a_gated_pod_cannot_be_bound(t: Case) -> None:
    t.given(PODS, pod("p", schedulingGates=[{"name": "example.com/wait"}]))
    with t.refused("Conflict", "schedulingGates"):
        _bind(t, "p", t.node())


@behaviour(pages.GATES, Via.CODE)
def a_gate_may_be_removed_but_not_added(t: Case) -> None:
    t.given(PODS, pod("p", schedulingGates=[{"name": "example.com/wait"}]))
    assert "schedulingGates" not in t.patch(PODS, "p", "merge", {"spec": {"schedulingGates": None}})["spec"]
    with t.refused("Invalid", "schedulingGates"):
        t.patch(PODS, "p", "merge", {"spec": {"schedulingGates": [{"name": "example.com/late"}]}})


# -- deletion --------------------------------------------------------------------------------------------------


@behaviour(pages.POD_LIFECYCLE + "#pod-termination", fast=Via.ALL)
def an_unscheduled_pod_is_gone_at_once(t: Case) -> None:
    t.given(PODS, pod("p"))
    t.delete(PODS, "p")
    assert not t.exists(PODS, "p")


@behaviour(pages.POD_LIFECYCLE + "#pod-termination", fast=Via.ALL)
def a_running_pod_has_its_grace_period(t: Case) -> None:
    _running(t, "p")
    t.delete(PODS, "p")
    meta = t.now(PODS, "p")["metadata"]
    assert meta["deletionTimestamp"] and meta["deletionGracePeriodSeconds"] == 30


@behaviour(pages.POD_LIFECYCLE + "#pod-termination", Via.CODE)
def a_deletion_may_name_its_grace_period_and_shorten_it(t: Case) -> None:
    _running(t, "p")
    seen = []
    for grace in (20, 10, 25):
        t.delete(PODS, "p", grace=grace)
        seen.append(t.now(PODS, "p")["metadata"]["deletionGracePeriodSeconds"])
    assert seen == [20, 10, 10]


@behaviour(pages.POD_LIFECYCLE + "#pod-termination-forced")
def a_forced_deletion_does_not_wait(t: Case) -> None:
    _running(t, "p")
    t.delete(PODS, "p", grace=0)
    assert not t.exists(PODS, "p")


@behaviour(pages.POD_LIFECYCLE + "#pod-termination", Via.CODE)
def a_finished_pod_is_gone_at_once(t: Case) -> None:
    _running(t, "p")
    t.change(PODS, "p", {"status": {"phase": "Succeeded"}}, "status")
    t.delete(PODS, "p")
    assert not t.exists(PODS, "p")


# -- eviction --------------------------------------------------------------------------------------------------


def _budgeted(t: Case, **spec: Any) -> None:
    """A budget that has seen the pod `p` it covers."""
    _running(t, "p", {"app": "web"})
    t.given(r.BUDGETS, r.budget("b", "web", **spec))
    t.eventually(lambda: t.now(r.BUDGETS, "b").get("status", {}).get("expectedPods") == 1, "the budget's status")


@behaviour(pages.EVICTION, Via.CODE)
def an_eviction_deletes_with_grace(t: Case) -> None:
    _running(t, "p")
    _evict(t, "p")
    assert t.now(PODS, "p")["metadata"]["deletionTimestamp"]


@behaviour(pages.DISRUPTIONS, Via.CODE)
def an_evicted_pod_says_so(t: Case) -> None:
    _running(t, "p")
    _evict(t, "p")
    conditions = {item["type"]: item for item in t.now(PODS, "p")["status"]["conditions"]}
    found = conditions["DisruptionTarget"]
    assert (found["status"], found["reason"]) == ("True", "EvictionByEvictionAPI")


@behaviour(pages.EVICTION, Via.CODE, needs="controllers")
def an_eviction_beyond_the_budget_is_refused(t: Case) -> None:
    _budgeted(t, minAvailable=1)
    with t.refused("TooManyRequests", "disruption budget") as seen:
        _evict(t, "p")
    assert seen[0].code == 429
    assert [cause["reason"] for cause in seen[0].causes] == ["DisruptionBudget"]
    assert "deletionTimestamp" not in t.now(PODS, "p")["metadata"]


@behaviour(pages.EVICTION, Via.CODE, needs="controllers")
def an_eviction_within_the_budget_spends_it(t: Case) -> None:
    _budgeted(t, minAvailable=0)  # of pods without a controller, the other way to say so is of no effect
    assert t.now(r.BUDGETS, "b")["status"]["disruptionsAllowed"] == 1
    _evict(t, "p")
    assert t.now(r.BUDGETS, "b")["status"]["disruptionsAllowed"] == 0


@behaviour(pages.EVICTION, Via.CODE, needs="controllers")
def an_eviction_under_two_budgets_is_an_error(t: Case) -> None:
    _budgeted(t, minAvailable=0)
    t.given(r.BUDGETS, r.budget("second", "web", minAvailable=0))
    with t.refused("", "This pod has more than one PodDisruptionBudget") as seen:
        _evict(t, "p")
    assert seen[0].code == 500
    assert "deletionTimestamp" not in t.now(PODS, "p")["metadata"]


@behaviour(pages.EVICTION, Via.RAW)
def an_eviction_with_options_that_do_not_exist_evicts_nobody(t: Case) -> None:
    _running(t, "p")
    for options, field in (({"dryRun": ["Some"]}, "dryRun"), ({"propagationPolicy": "Some"}, "propagationPolicy")):
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}, "deleteOptions": options}
        answer = t.raw.answer("POST", t.path(PODS, "p", "eviction"), body=body)
        assert (answer.code, answer.json["details"]["causes"][0]["field"]) == (422, field), answer.body
    assert "deletionTimestamp" not in t.now(PODS, "p")["metadata"]


@behaviour(pages.OWNERS, Via.RAW)
def the_status_of_a_pod_does_not_say_who_owns_it(t: Case) -> None:
    t.given(PODS, pod("p"))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "nobody"}
    t.change(PODS, "p", {"metadata": {"ownerReferences": [owner], "annotations": {"a": "b"}}}, "status")
    found = t.now(PODS, "p")["metadata"]
    assert (found["annotations"], "ownerReferences" in found) == ({"a": "b"}, False)


@behaviour(pages.EVICTION, Via.RAW)
def an_eviction_takes_an_eviction_of_its_pod(t: Case) -> None:
    _running(t, "p")
    for body in (pod("p"), {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "other"}}):
        answer = t.raw.answer("POST", t.path(PODS, "p", "eviction"), body=body)
        assert (answer.code, answer.json["reason"]) == (400, "BadRequest"), answer.body
    assert "deletionTimestamp" not in t.now(PODS, "p")["metadata"]


@behaviour(pages.EVICTION, Via.CODE)
def a_dry_eviction_evicts_nobody(t: Case) -> None:
    _running(t, "p")
    _evict(t, "p", deleteOptions={"dryRun": ["All"]})
    assert "deletionTimestamp" not in t.now(PODS, "p")["metadata"]


@behaviour(pages.EVICTION, Via.CODE)
def what_does_not_exist_cannot_be_evicted(t: Case) -> None:
    with t.refused("NotFound"):
        _evict(t, "absent")


@behaviour(pages.POD_CONCEPT, Via.RAW)
def the_log_of_a_pod_without_a_node_is_empty(t: Case) -> None:
    t.given(PODS, pod("p"))
    answer = t.raw.answer("GET", t.path(PODS, "p", "log"))
    assert (answer.code, answer.body) == (204, b"")
    other = t.raw.answer("GET", t.path(PODS, "p", "log"), query={"container": "none"})
    assert other.code == 400 and "container none is not valid for pod p" in other.json["message"]


@behaviour(pages.TAINTS + "#taint-based-evictions", Via.CODE, needs="controllers")
def a_no_execute_taint_evicts_who_does_not_tolerate_it(t: Case) -> None:
    node = t.node()
    taint = {"key": "example.com/leave", "effect": "NoExecute"}
    tolerating = [{"key": taint["key"], "operator": "Exists"}]
    for name, tolerations in (("goes", []), ("stays", tolerating)):
        t.given(PODS, pod(name, nodeName=node, tolerations=tolerations))
        t.defer(functools.partial(t.raw.delete, PODS, t.ns, name, grace=0))
    t.patch(r.NODES, node, "strategic", {"spec": {"taints": [taint]}})
    t.eventually(lambda: "deletionTimestamp" in t.now(PODS, "goes")["metadata"], "the eviction")
    assert "deletionTimestamp" not in t.now(PODS, "stays")["metadata"]
