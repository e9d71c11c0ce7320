"""Pods of a wanted size, as JSON, for the benchmark of the API server."""

from __future__ import annotations

from typing import Any

import msgspec

SMALL_BYTES, MIDDLE_BYTES = 340, 3_400
LARGE_BYTES = 5_400  # 7 KB as stored, with what the server adds
NODES = 100
_PLACEHOLDER = "pod-00000000"
_VARIABLE_BYTES = 35  # of a variable with an empty value
_RESOURCES = {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
_PROBE = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1}


def named(number: int) -> str:
    """All names are equally long, so that a body's name is replaced in place."""
    return f"pod-{number:08d}"


def node_of(number: int) -> str:
    return f"node-{number % NODES}"


def template(size_bytes: int) -> bytes:
    """A pod to create of about this size: environment variables fill what its other fields leave."""
    pod = _small() if size_bytes < MIDDLE_BYTES else _usual()
    environment = pod["spec"]["containers"][0].setdefault("env", [])
    while (missing := size_bytes - len(msgspec.json.encode(pod))) > 0:
        number = len(environment)
        value = f"value-of-setting-{number:03d}"[: max(missing - _VARIABLE_BYTES, 0)]
        environment.append({"name": f"SETTING_{number:03d}", "value": value})
    return msgspec.json.encode(pod)


def body(of: bytes, number: int) -> bytes:
    """The template under a name of its own."""
    return of.replace(_PLACEHOLDER.encode(), named(number).encode(), 1)


def _small() -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example.com/team/worker:1.0", "resources": _RESOURCES}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _PLACEHOLDER, "labels": {"app": "worker"}},
        "spec": {"containers": [container]},
    }


def _usual() -> dict[str, Any]:
    """What a Deployment of an ordinary service makes: two containers, probes, volumes, tolerations."""
    pod = _small()
    pod["metadata"]["labels"] |= {"app.kubernetes.io/part-of": "shop", "pod-template-hash": "6b7c9d5f4"}
    pod["metadata"]["annotations"] = {"prometheus.io/scrape": "true", "prometheus.io/port": "9090"}
    first = pod["spec"]["containers"][0]
    mounts = [{"name": "data", "mountPath": "/data"}, {"name": "settings", "mountPath": "/etc/worker"}]
    first |= {"ports": [{"containerPort": 8080}], "volumeMounts": mounts, "livenessProbe": _PROBE}
    first |= {"readinessProbe": _PROBE, "command": ["/bin/worker"], "args": ["--listen", ":8080", "--data", "/data"]}
    second = {"name": "proxy", "image": "registry.example.com/mesh/proxy:1.0", "resources": _RESOURCES}
    pod["spec"] |= {
        "containers": [first, second],
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "settings", "configMap": {"name": "worker"}}],
        "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "online", "effect": "NoSchedule"}],
        "terminationGracePeriodSeconds": 30,
    }
    return pod
