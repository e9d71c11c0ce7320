"""The manifests of examples/quickstart/, applied and removed as `kubectl` would."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from kube.client import KubeClient, path_of
from kube.objects import Node, Pod
from model.condition import ConditionStatus, ConditionType
from model.fault import ConfigurationFault, KubernetesFault
from model.pod.status import PodPhase
from model.quantity import parse_units
from model.resources import BATCH_CPU

QUICKSTART = Path(__file__).parent.parent.parent / "examples" / "quickstart"
NAMESPACE = "default"
_RESOURCES = {
    "Pod": "v1/pods",
    "Job": "batch/v1/jobs",
    "PodGroup": "scheduling.sigs.k8s.io/v1alpha1/podgroups",
}
_POLL_SECONDS = 0.1
Document = dict[str, Any]
T = TypeVar("T")


class _PodList(msgspec.Struct, frozen=True):
    items: list[Pod] = []


def documents(*names: str, directory: Path = QUICKSTART) -> list[Document]:
    """The documents of files of the quick start, in order. Raises ConfigurationFault where one is missing."""
    found: list[Document] = []
    for name in names:
        try:
            found += [document for document in yaml.safe_load_all((directory / name).read_text()) if document]
        except (OSError, yaml.YAMLError) as error:
            raise ConfigurationFault(str(directory / name), f"unreadable: {error}", "run from a clone") from error
    return found


def with_environment(document: Document, values: dict[str, str]) -> Document:
    """A Pod with other values for those of its containers' variables that `values` names."""
    copy: Document = msgspec.json.decode(msgspec.json.encode(document))
    for container in copy["spec"]["containers"]:
        for variable in container.get("env", []):
            if variable["name"] in values:
                variable.pop("valueFrom", None)
                variable["value"] = values[variable["name"]]
    return copy


async def apply(client: KubeClient, objects: Iterable[Document]) -> None:
    """Create the objects; one that exists already stays. Raises KubernetesFault."""
    for document in objects:
        await client.create_missing(_collection(document), document)


async def remove(client: KubeClient, objects: Iterable[Document]) -> None:
    """Delete the objects and, in the background, what they own; one that is gone is fine."""
    for document in objects:
        path = f"{_collection(document)}/{document['metadata']['name']}"
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        try:
            await client.request("DELETE", path, body=msgspec.json.encode(options))
        except KubernetesFault as fault:
            if fault.status != 404:
                raise


async def pods(client: KubeClient, selector: str) -> list[Pod]:
    """The pods of the quick start that a label selector picks, by name."""
    path = path_of("v1/pods", namespace=NAMESPACE)
    listed = await client.get(path, _PodList, labelSelector=selector)
    return sorted(listed.items, key=lambda pod: pod.metadata.name)


async def all_running(client: KubeClient, selector: str, count: int) -> list[Pod] | None:
    """The pods, if `count` of them run at this very moment; else None."""
    found = await pods(client, selector)
    running = [pod for pod in found if pod.status.phase == PodPhase.RUNNING]
    return running if len(running) == count == len(found) else None


async def units_done(client: KubeClient, workers: Iterable[Pod]) -> int:
    """The sum of the last `units N` that the workers printed; one that printed none yet counts 0."""
    return sum([await _units_of(client, pod) for pod in workers])


async def _units_of(client: KubeClient, worker: Pod) -> int:
    path = path_of("v1/pods", namespace=NAMESPACE, name=worker.metadata.name, subresource="log")
    try:
        text = await client.request("GET", path, query={"tailLines": 5})
    except KubernetesFault:
        # A pod that waits for a place, or for its container, has no log yet.
        return 0
    counts = [line.split()[1] for line in text.decode(errors="replace").splitlines() if line.startswith("units ")]
    return int(counts[-1]) if counts else 0


async def batch_cpu_offered(client: KubeClient, node: str) -> int | None:
    """The Node's allocatable batch-cpu in milli-CPU; None while it has none."""
    found = await client.get(path_of("v1/nodes", name=node), Node)
    offered = (found.status.allocatable or {}).get(BATCH_CPU)
    return None if offered is None else parse_units(offered)


async def wait_for(look: Callable[[], Awaitable[T | None]], bound_seconds: float) -> T | None:
    """The first answer of `look` that is something, or None once the bound has passed."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + bound_seconds
    while (found := await look()) is None and loop.time() < deadline:
        await asyncio.sleep(_POLL_SECONDS)
    return found


async def gone(client: KubeClient, selector: str) -> bool | None:
    """True once no pod is left."""
    return None if await pods(client, selector) else True


async def why_not_running(client: KubeClient, selector: str) -> str:
    """How many pods do not run, by what Kubernetes says about them."""
    found = await pods(client, selector)
    states = Counter(_state(pod) for pod in found if pod.status.phase != PodPhase.RUNNING)
    told = [f"{count} of {len(found)} {state}" for state, count in states.items()]
    return "; ".join(told) or f"{len(found)} pods run at this moment"


def bound_apart_seconds(gang: list[Pod]) -> float | None:
    """Seconds between the first and the last member's binding; None where a time is missing."""
    times = [
        datetime.fromisoformat(condition.last_transition_time).timestamp()
        for pod in gang
        for condition in pod.status.conditions or []
        if condition.type == ConditionType.POD_SCHEDULED and condition.met and condition.last_transition_time
    ]
    return max(times) - min(times) if len(times) == len(gang) else None


def _state(pod: Pod) -> str:
    messages = [c.message for c in pod.status.conditions or [] if c.status == ConditionStatus.FALSE and c.message]
    return pod.status.phase + (f" ({messages[0]})" if messages else "")


def _collection(document: Document) -> str:
    return path_of(_RESOURCES[document["kind"]], namespace=NAMESPACE)
