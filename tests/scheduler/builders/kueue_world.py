"""Kueue's objects, GPU nodes of two kinds and GPU pods, as the API server has them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import yaml
from scheduler_builders import SCHEDULER
from scheduler_fakes import World

from kube import objects

EXAMPLE = Path(__file__).parents[3] / "examples" / "kueue" / "training.yaml"
A100, V100 = "NVIDIA-A100-SXM4-80GB", "Tesla-V100-SXM2-32GB"
GPU = "nvidia.com/gpu"
ALL_OF_THEM = {"namespaceSelector": {}}


def read(text: str) -> list[Any]:
    """The objects of a manifest, each with an identity."""
    found = []
    for number, body in enumerate(yaml.safe_load_all(text)):
        kind = getattr(objects, body["kind"])
        body["metadata"] |= {"uid": f"uid-{body['kind']}-{body['metadata']['name']}", "resourceVersion": str(number)}
        found.append(msgspec.convert(body, kind, strict=False))
    return found


def training() -> list[Any]:
    """The objects of the example, whose ClusterQueue has 64 A100 and 32 V100."""
    return read(EXAMPLE.read_text())


def named(kind: type[Any], name: str, spec: dict[str, Any], namespace: str = "") -> Any:
    return kind(objects.Metadata(name=name, namespace=namespace, uid=f"uid-{kind.__name__}-{name}"), spec)


def cluster_queue(name: str, cohort: str = "", gpus: int = 8, flavor: str = "gpu-a100", **spec: Any) -> Any:
    """With quota of GPUs of one flavour alone; `borrows` and `lends` are its limits."""
    quota = {"name": GPU, "nominalQuota": gpus}
    for word, field in (("borrows", "borrowingLimit"), ("lends", "lendingLimit")):
        if word in spec:
            quota[field] = spec.pop(word)
    group = {"coveredResources": [GPU], "flavors": [{"name": flavor, "resources": [quota]}]}
    told = {**ALL_OF_THEM, "resourceGroups": [group], **({"cohortName": cohort} if cohort else {}), **spec}
    return named(objects.ClusterQueue, name, told)


def local_queue(name: str, queue: str, namespace: str = "default", **spec: Any) -> Any:
    return named(objects.LocalQueue, name, {"clusterQueue": queue, **spec}, namespace)


def flavor(name: str = "gpu-a100", product: str = A100, **spec: Any) -> Any:
    told = {"nodeLabels": {"nvidia.com/gpu.product": product}, "tolerations": [{"key": GPU, "operator": "Exists"}]}
    return named(objects.ResourceFlavor, name, {**told, **spec})


def namespace(name: str = "default", **labels: str) -> objects.Namespace:
    return objects.Namespace(objects.Metadata(name=name, uid=f"uid-ns-{name}", labels=labels))


def gpu_node(name: str, product: str = A100, gpus: int = 8) -> objects.Node:
    amounts: dict[str, Any] = {"cpu": 4 * gpus, "memory": f"{32 * gpus}Gi", GPU: gpus, "pods": 110}
    labels = {"nvidia.com/gpu.product": product, "kubernetes.io/hostname": name}
    taints = [objects.Taint("nvidia.com/gpu", "present", "NoSchedule")]
    metadata = objects.Metadata(name=name, uid=f"uid-{name}", labels=labels, resource_version="1")
    return objects.Node(metadata, objects.NodeSpec(taints=taints), objects.NodeStatus(amounts, amounts))


def gpu_pod(
    name: str,
    queue: str = "team",
    gpus: int = 8,
    *,
    namespace: str = "default",
    priority: int = 0,
    created: float = 0.0,
    node: str = "",
    annotations: dict[str, str] | None = None,
    whole: bool = False,
    **spec: Any,
) -> objects.Pod:
    """A pod that names a LocalQueue; with `whole` it asks for CPUs and memory as well, an eighth of a node a GPU."""
    request: dict[str, Any] = {GPU: gpus} | ({"cpu": 4 * gpus, "memory": f"{32 * gpus}Gi"} if whole else {})
    metadata = objects.Metadata(
        name=name,
        namespace=namespace,
        uid=f"uid-{name}",
        labels={"kueue.x-k8s.io/queue-name": queue},
        annotations=annotations or {},
        creation_timestamp=datetime.fromtimestamp(created, UTC),
    )
    told = objects.PodSpec(
        [objects.Container("main", objects.Resources(request, request))],
        scheduler_name=SCHEDULER,
        priority=priority,
        node_name=node,
        **spec,
    )
    return objects.Pod(metadata, told, objects.PodStatus(phase="Running" if node else "Pending"))


def settled(world: World, turns: int = 4) -> World:
    """Some turns, until nothing more follows."""
    for _ in range(turns):
        world.turn(after=1.0)
    return world


def waits(world: World, name: str, namespace: str = "default") -> str:
    """What the newest decision about a waiting pod says."""
    found = world.history.newest(f"pod/{namespace}/{name}")
    return found.detail if found is not None else ""
