"""Workloads for tests: valid by default, with pods that do as they are told."""

from __future__ import annotations

from typing import Any

from embedded.tests.apiserver.conftest import Api

Object = dict[str, Any]
APPS = "/apis/apps/v1/namespaces/default"
DEPLOYMENTS, REPLICA_SETS, DAEMON_SETS = (f"{APPS}/{kind}" for kind in ("deployments", "replicasets", "daemonsets"))
REVISIONS = f"{APPS}/controllerrevisions"
PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
ENDPOINTS = "/api/v1/namespaces/default/endpoints"
LONG_AGO = "2026-01-01T00:00:00Z"


def template(image: str = "a:1", labels: Object | None = None, **spec: Any) -> Object:
    containers = [{"name": "c", "image": image}]
    return {"metadata": {"labels": labels or {"app": "web"}}, "spec": {"containers": containers} | spec}


def workload(name: str = "web", image: str = "a:1", **spec: Any) -> Object:
    """A Deployment, ReplicaSet or DaemonSet: what they are is said by where they are sent."""
    base = {"selector": {"matchLabels": {"app": "web"}}, "template": template(image)}
    return {"metadata": {"name": name}, "spec": base | spec}


def service(name: str = "web", **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]} | spec}


def pods(api: Api) -> list[Object]:
    """Those that stay."""
    return [pod for pod in api.get(PODS)["items"] if "deletionTimestamp" not in pod["metadata"]]


def images(api: Api) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in pods(api))


def serve(api: Api, *names: str, since: str = LONG_AGO) -> None:
    """Let pods run and be ready: these, or all."""
    for number, pod in enumerate(pods(api), 1):
        if not names or pod["metadata"]["name"] in names:
            ready = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
            status = {"phase": "Running", "podIP": f"127.64.0.{number}", "conditions": ready}
            api.set_pod_status(pod["metadata"]["name"], status)
    api.settle()


def conditions(obj: Object) -> dict[str, tuple[str, str]]:
    found = obj["status"].get("conditions", ())
    return {each["type"]: (each["status"], each["reason"]) for each in found}
