"""Budgets are counted change by change, and come to what a fresh count would give."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedded.apiserver.controllers.disruption import budget_status
from embedded.tests.apiserver.conftest import Api

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
PODS = "/api/v1/namespaces/default/pods"
NAMES = ("a", "b", "c")


def budget(name="b", labels=None, **spec):
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels or {}}} | spec}


def pod(name, **labels):
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def counts(api, name="b"):
    status = api.get(f"{BUDGETS}/{name}")["status"]
    return status["expectedPods"], status["currentHealthy"], status["disruptionsAllowed"]


def recount(api, labels):
    covered = [
        p
        for p in api.get(PODS)["items"]
        if labels.items() <= p["metadata"].get("labels", {}).items()
        and p["status"]["phase"] not in ("Succeeded", "Failed")
    ]
    ready = sum(
        c["type"] == "Ready" and c["status"] == "True" for p in covered for c in p["status"].get("conditions", ())
    )
    return len(covered), ready, max(0, ready - 1) if covered else 0


def do(api, step):
    action, name = step
    match action:
        case "create":
            api.call("POST", PODS, pod(name, app="x"))
        case "relabel" | "label":
            api.patch(f"{PODS}/{name}", {"metadata": {"labels": {"app": "x" if action == "label" else "y"}}})
        case "ready" | "unready":
            value = "True" if action == "ready" else "False"
            status = {"phase": "Running", "conditions": [{"type": "Ready", "status": value}]}
            api.patch(f"{PODS}/{name}/status", {"status": status})
        case "finish":
            api.patch(f"{PODS}/{name}/status", {"status": {"phase": "Succeeded"}})
        case "delete":
            api.call("DELETE", f"{PODS}/{name}")


ACTIONS = ("create", "relabel", "label", "ready", "unready", "finish", "delete")


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(NAMES)), max_size=25), st.integers(0, 25))
def test_counting_change_by_change_comes_to_the_same(steps, budget_at):
    """Whatever happens to the pods, and whenever the budget comes."""
    api = Api()
    for number, step in enumerate(steps):
        if number == budget_at:
            api.post(BUDGETS, budget(labels={"app": "x"}, minAvailable=1))
        do(api, step)
        if number % 3 == 0:
            api.settle()
    if budget_at >= len(steps):
        api.post(BUDGETS, budget(labels={"app": "x"}, minAvailable=1))
    api.settle()
    assert counts(api) == recount(api, {"app": "x"})


def test_a_changed_selector_is_counted_again(api):
    """And a deleted budget is forgotten."""
    for name in NAMES:
        api.post(PODS, pod(name, app=name))
    api.post(BUDGETS, budget(labels={"app": "a"}, minAvailable=0))
    api.settle()
    assert counts(api)[0] == 1
    live = api.get(f"{BUDGETS}/b") | {"spec": {"minAvailable": 0, "selector": {"matchLabels": {}}}}
    assert api.call("PUT", f"{BUDGETS}/b", live)[0] == 200
    api.settle()
    assert counts(api)[0] == 3
    api.call("DELETE", f"{BUDGETS}/b")
    do(api, ("delete", "a"))
    api.settle()
    assert api.call("GET", f"{BUDGETS}/b")[0] == 404


def test_a_budget_without_a_selector_covers_nothing(api):
    """Unlike one whose selector is empty."""
    api.post(PODS, pod("a", app="a"))
    api.post(BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}})
    api.settle()
    assert counts(api) == (0, 0, 0)


def test_percentages_are_rounded_up():
    """https://kubernetes.io/docs/tasks/run-application/configure-pdb/#rounding-logic-when-specifying-percentages"""
    found = {"metadata": {"generation": 2}, "spec": {"minAvailable": "50%"}}
    status = budget_status(found, expected=7, healthy=7, now=0.0)
    assert (status["desiredHealthy"], status["disruptionsAllowed"], status["observedGeneration"]) == (4, 3, 2)
    found = {"metadata": {}, "spec": {"maxUnavailable": "30%"}}
    assert budget_status(found, expected=10, healthy=9, now=0.0)["disruptionsAllowed"] == 2


def test_an_unknown_policy_for_unhealthy_pods_is_refused(api):
    """422 with the two that are known."""
    code, answer = api.call("POST", BUDGETS, budget(unhealthyPodEvictionPolicy="Sometimes"))
    assert code == 422 and 'supported values: "AlwaysAllow", "IfHealthyBudget"' in answer["message"]


@pytest.mark.parametrize("share", ["101%", "9" * 5000 + "%", "x%", "-1%", "%"])
def test_what_is_no_percentage_is_refused(api, share):
    """422, of whatever length."""
    assert api.call("POST", BUDGETS, budget(maxUnavailable=share))[0] == 422
