"""Queues of ours and batch pods in them, as the API server has both."""

from __future__ import annotations

from typing import Any

from scheduler_builders import raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from scheduler.settings import QueueSettings, SchedulerSettings

BATCH = "kubernetes.io/batch-cpu"


def queue(name: str, **spec: Any) -> objects.Queue:
    return objects.Queue(objects.Metadata(name=name, uid=f"uid-{name}"), spec)


def cpu(millis: int) -> dict[str, Any]:
    """An amount of batch-cpu, as a quota has it."""
    return {"resources": {BATCH: millis}}


def pod(name: str, queue: str = "", **more: Any) -> objects.Pod:
    """A batch pod of 500m that names a queue, or none."""
    labels = {"koordinator.sh/qosClass": "BE"} | ({"sublet.dev/queue": queue} if queue else {})
    return raw_pod(name, labels=labels, **({"priority": 5500} | more))


def running(name: str, queue: str, node: str = "n1", **more: Any) -> objects.Pod:
    return pod(name, queue, node_name=node, phase="Running", **more)


def world(*items: Any, **queues: Any) -> World:
    """A node of 4 batch CPUs and these objects, by the settings `queues`."""
    return World(SchedulerSettings(queues=QueueSettings(**queues))).see(raw_node(batch_cpu="4000"), *items)
