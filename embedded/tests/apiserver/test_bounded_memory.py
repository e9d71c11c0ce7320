"""What the server keeps does not grow with what has been: after as many objects again, every structure is as large."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator, Sized
from types import FunctionType, MethodType, ModuleType
from typing import Any

import pytest

ROUNDS = 30
HELD = (dict, list, set, frozenset, deque, tuple)
ATOMS = (str, bytes, int, float, type(None), type, ModuleType, FunctionType, MethodType)
POD = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
NAMESPACED = "/api/v1/namespaces/default"


def sizes(root: Any) -> dict[str, int]:
    """How many items each container holds that is reached from an object, by where it was reached first."""
    found: dict[str, int] = {}
    seen: set[int] = set()
    left: deque[tuple[str, Any]] = deque([("", root)])
    while left:
        where, item = left.popleft()
        if isinstance(item, ATOMS) or id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, HELD) and isinstance(item, Sized):
            found[where] = max(found.get(where, 0), len(item))
        left.extend(parts(where, item))
    return found


def parts(where: str, item: Any) -> Iterator[tuple[str, Any]]:
    """What an object consists of. Items of one container share a name, as there is nothing else to call them by."""
    if isinstance(item, dict):
        yield from (
            (f"{where}[{key}]" if isinstance(key, str) and len(item) < 60 else f"{where}[]", value)
            for key, value in item.items()
        )
        yield from ((f"{where}.keys", key) for key in item)
    elif isinstance(item, HELD):
        yield from ((f"{where}[]", value) for value in item)
    elif type(item).__module__.startswith("local."):
        names = {name for kind in type(item).__mro__ for name in getattr(kind, "__slots__", ())}
        names |= set(getattr(item, "__dict__", ())) | set(getattr(type(item), "__struct_fields__", ()))
        yield from ((f"{where}.{name}", getattr(item, name)) for name in sorted(names) if hasattr(item, name))
    elif hasattr(item, "__self__"):
        yield where, item.__self__


def a_pod(api: Any, name: str) -> None:
    api.post(f"{NAMESPACED}/pods", {"metadata": {"name": name, "labels": {"a": "b"}}, "spec": POD})
    api.post(f"{NAMESPACED}/pods/{name}/binding", {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}})
    for phase in ("Running", "Failed"):
        api.set_pod_status(name, {"phase": phase, "podIP": "10.0.0.1"})
    api.settle()
    api.call("DELETE", f"{NAMESPACED}/pods/{name}?gracePeriodSeconds=0")


def a_job(api: Any, name: str) -> None:
    url, spec = "/apis/batch/v1/namespaces/default/jobs", {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
    api.post(url, {"metadata": {"name": name}, "spec": {**spec, "activeDeadlineSeconds": 86_400}})
    api.settle()
    api.call("DELETE", f"{url}/{name}?propagationPolicy=Background")


def a_workload(plural: str, spec: dict[str, Any]) -> Any:
    def make(api: Any, name: str) -> None:
        url = f"/apis/apps/v1/namespaces/default/{plural}"
        selector = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
        api.post(url, {"metadata": {"name": name}, "spec": {**selector, **spec}})
        api.settle()
        api.call("DELETE", f"{url}/{name}?propagationPolicy=Background")

    return make


def a_cron_job(api: Any, name: str) -> None:
    url, job = (
        "/apis/batch/v1/namespaces/default/cronjobs",
        {"spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}},
    )
    api.post(url, {"metadata": {"name": name}, "spec": {"schedule": "* * * * *", "jobTemplate": job}})
    api.clock.advance(60)
    api.settle()
    api.call("DELETE", f"{url}/{name}?propagationPolicy=Background")


def a_service(api: Any, name: str) -> None:
    api.post(
        f"{NAMESPACED}/services",
        {"metadata": {"name": name}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}},
    )
    api.settle()
    api.call("DELETE", f"{NAMESPACED}/services/{name}")


def a_budget(api: Any, name: str) -> None:
    url = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    api.post(url, {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}})
    api.settle()
    api.call("DELETE", f"{url}/{name}")


def a_claim(api: Any, name: str) -> None:
    url = f"{NAMESPACED}/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    api.post(url, {"metadata": {"name": name}, "spec": spec})
    api.settle()
    api.call("DELETE", f"{url}/{name}")


def a_node(api: Any, name: str) -> None:
    """One that is silent until its pods are evicted and forgotten."""
    api.post("/api/v1/nodes", {"metadata": {"name": name}})
    api.post(f"{NAMESPACED}/pods", {"metadata": {"name": name}, "spec": {**POD, "nodeName": name}})
    for _ in range(3):
        api.settle()
        api.clock.advance(400)
    api.call("DELETE", f"/api/v1/nodes/{name}")
    api.settle()
    api.call("DELETE", f"{NAMESPACED}/pods/{name}?gracePeriodSeconds=0")


def a_namespace(api: Any, name: str) -> None:
    api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    api.post(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "robot"}})
    api.post(f"/api/v1/namespaces/{name}/serviceaccounts/robot/token", {"spec": {}})
    api.settle()
    api.call("DELETE", f"/api/v1/namespaces/{name}")


def an_applied_map(api: Any, name: str) -> None:
    url = f"{NAMESPACED}/configmaps/{name}"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {name: name}}
    assert api.call("PATCH", f"{url}?fieldManager=m", body, content_type="application/apply-patch+yaml")[0] == 201
    api.call("DELETE", url)


def a_definition(api: Any, name: str) -> None:
    names = {"plural": f"{name}s", "kind": name.upper()}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"v": {"type": "string", "pattern": f"^{name}$"}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "x.example", "scope": "Namespaced", "names": names, "versions": [version]}
    url = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    api.post(url, {"metadata": {"name": f"{name}s.x.example"}, "spec": spec})
    api.post(
        f"/apis/x.example/v1/namespaces/default/{name}s",
        {"apiVersion": "x.example/v1", "kind": name.upper(), "metadata": {"name": name}, "v": name},
    )
    api.call("DELETE", f"{url}/{name}s.x.example")


def a_role(api: Any, name: str) -> None:
    url = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    rules = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
    api.post(
        url, {"metadata": {"name": name, "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}, **rules}
    )
    api.settle()
    api.call("DELETE", f"{url}/{name}")


def a_policy(api: Any, name: str) -> None:
    url = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    rules = {
        "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "operations": ["*"]}]
    }
    api.post(
        url,
        {
            "metadata": {"name": name},
            "spec": {"matchConstraints": rules, "validations": [{"expression": f"'{name}' != ''"}]},
        },
    )
    api.call("DELETE", f"{url}/{name}")


def a_refusal(api: Any, name: str) -> None:
    assert api.call("POST", f"{NAMESPACED}/pods", {"metadata": {"name": name}, "spec": {}})[0] == 422
    assert api.call("GET", f"{NAMESPACED}/pods/{name}")[0] == 404


def a_watch(api: Any, name: str) -> None:
    api.watch(f"{NAMESPACED}/pods?watch=1&labelSelector=a={name}", seconds=0.0)
    api.watch(f"{NAMESPACED}/pods?watch=1&fieldSelector=spec.nodeName={name}", seconds=0.0)


CHURN = {
    "pods": a_pod,
    "jobs": a_job,
    "cron jobs": a_cron_job,
    "deployments": a_workload("deployments", {"replicas": 2}),
    "replica sets": a_workload("replicasets", {"replicas": 2}),
    "daemon sets": a_workload("daemonsets", {}),
    "services": a_service,
    "budgets": a_budget,
    "claims": a_claim,
    "nodes": a_node,
    "namespaces": a_namespace,
    "applied objects": an_applied_map,
    "definitions": a_definition,
    "roles": a_role,
    "policies": a_policy,
    "refusals": a_refusal,
    "watches": a_watch,
}


@pytest.mark.parametrize("live", CHURN.values(), ids=CHURN)
def test_every_structure_is_bounded(small_ring_api: Any, live: Any) -> None:
    """An object of each kind comes, is looked at by controllers, and goes, again and again."""
    api = small_ring_api
    api.post("/api/v1/nodes", {"metadata": {"name": "n"}})

    def churn(begin: int) -> dict[str, int]:
        for number in range(begin, begin + ROUNDS):
            live(api, f"x{number}")
            for _ in range(3):
                api.clock.advance(25)
                api.settle()
                api.controllers.sweep()
        api.clock.advance(3700)  # when the Events of all this are forgotten, too
        api.settle()
        api.controllers.sweep()
        api.settle()
        gc.collect()
        return sizes((api.core, api.controllers))

    churn(0)
    before, after = churn(ROUNDS), churn(2 * ROUNDS)
    grown = {where: (before.get(where, 0), count) for where, count in after.items() if count > before.get(where, 0) + 8}
    assert grown == {}
