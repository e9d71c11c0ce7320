"""What queues cost the scheduler's own turns: pods come as the API server tells of them, bindings go out."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from typing import Any

from bench.schedule.cluster import members_of, residents, synthetic_nodes, synthetic_requests
from bench.schedule.effort import SchedulingEffort, tell
from bench.schedule.queues import RESIDENT_SHARE, TURNS, QueuedSpeed, decisions, leaves, three_levels
from kube import objects
from kube.dialects.gangs.membership import ANNOTATION_MIN, ANNOTATION_NAME
from kube.dialects.queues.membership import LABEL_OURS
from kube.informer import Change, ChangeKind
from model.node import Node
from model.pod.pod import Pod
from model.queue import Queue
from model.resources import CPU, ResourceVector
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cycle import Cycle
from scheduler.settings import SchedulerSettings

_NOW = 1_700_000_000.0
_LABEL_OF_NOTHING = "example.com/team"
"""So that the pods are as large where there are no queues."""


def measure_turns(effort: SchedulingEffort) -> Iterator[QueuedSpeed]:
    """The same pods on the same cluster in the same round, all of one queue or each of one of many."""
    queues = three_levels(effort.queues)
    with_them, without_any = known_cluster(effort.queued_nodes, queues), known_cluster(effort.queued_nodes, ())
    for members in effort.queued_gangs:
        number, names = decisions(effort, members), leaves(queues)
        tell(f"turns that place {number} gangs of {members} with {effort.queues} queues and without")
        with_queues, without = list[float](), list[float]()
        for turn in range(effort.rounds):
            sides = [
                (with_queues, _Side(with_them, coming(number, members, names, LABEL_OURS))),
                (without, _Side(without_any, coming(number, members, names, _LABEL_OF_NOTHING))),
            ]
            for found, side in reversed(sides) if turn % 2 else sides:
                found.append(side.rate())
        yield QueuedSpeed(
            TURNS, effort.queued_nodes, members, number, effort.queues, tuple(with_queues), tuple(without)
        )


def known_cluster(count: int, queues: Sequence[Queue]) -> list[facts.Fact]:
    """Queues, nodes, and the pods that run there."""
    nodes = synthetic_nodes(count)
    found: list[facts.Fact] = [facts.ObjectSeen(Change(ChangeKind.ADDED, _queue(queue))) for queue in queues]
    found += [facts.NodeSeen(Change(ChangeKind.ADDED, _node(node))) for node in nodes]
    return found + [_seen(pod, {}, {}) for pod in residents(nodes, 1, RESIDENT_SHARE)]


class _Side:
    """A scheduler's cycle that has heard of the cluster, and what it hears next."""

    def __init__(self, cluster: Sequence[facts.Fact], coming: Sequence[facts.Fact]) -> None:
        settings = SchedulerSettings()
        self._cycle = Cycle(ClusterCache(settings.served), settings)
        self._turn(cluster)
        self._coming = coming

    def rate(self) -> float:
        """Pods placed in a second of CPU, until none is left to be tried. Raises AssertionError where one found no
        place.
        """
        gc.collect()
        begun = time.process_time()
        pods, more = self._turn(self._coming)
        while more:
            placed, more = self._turn(())
            pods += placed
        taken = time.process_time() - begun
        assert pods == len(self._coming), f"{pods} of {len(self._coming)} pods found a place"
        return pods / taken

    def _turn(self, inbox: Sequence[facts.Fact]) -> tuple[int, bool]:
        """How many pods it binds, and whether it leaves some to the next."""
        turn = self._cycle.turn(inbox, _NOW)
        if turn.errors:
            raise turn.errors[0][1]
        return sum(len(batch.binds) for batch in turn.batches), turn.more


def coming(number: int, members: int, queues: Sequence[str], label: str) -> list[facts.Fact]:
    """As `synthetic_gangs`, in each of the queues in turn."""
    found = []
    for at, (name, requests) in enumerate(synthetic_requests(number, 2)):
        gang = {} if members == 1 else {ANNOTATION_NAME: name, ANNOTATION_MIN: str(members)}
        labels = {label: queues[at % len(queues)]}
        found += [_seen(pod, labels, gang) for pod in members_of(name, members, requests)]
    return found


def _seen(pod: Pod, labels: dict[str, str], annotations: dict[str, str]) -> facts.Fact:
    metadata = objects.Metadata(
        name=pod.name, namespace=pod.namespace, uid=pod.uid, labels=labels, annotations=annotations
    )
    container = objects.Container("main", objects.Resources(_quantities(pod.spec.requests), {}))
    spec = objects.PodSpec(containers=[container], node_name=pod.spec.node_name, scheduler_name=pod.spec.scheduler_name)
    status = objects.PodStatus(phase="Running" if pod.spec.node_name else "Pending")
    return facts.PodSeen(Change(ChangeKind.ADDED, objects.Pod(metadata, spec, status)))


def _node(node: Node) -> objects.Node:
    amounts = _quantities(node.allocatable)
    return objects.Node(
        objects.Metadata(name=node.name, uid=node.name, labels=dict(node.labels)),
        objects.NodeSpec([objects.Taint(taint.key, taint.value, taint.effect) for taint in node.taints]),
        objects.NodeStatus(amounts, amounts, [objects.Condition(type="Ready", status="True")]),
    )


def _queue(queue: Queue) -> objects.Queue:
    spec: dict[str, Any] = {"weight": queue.weight} | ({"parent": queue.parent} if queue.parent else {})
    if queue.cells:
        cells = [(resource, said) for (_, resource), said in queue.cells.items()]
        amounts = {
            "guaranteed": {resource: _quantity(resource, said.guaranteed) for resource, said in cells},
            "soft": {resource: _quantity(resource, said.nominal or 0) for resource, said in cells},
            "hard": {resource: _quantity(resource, said.maximum or 0) for resource, said in cells},
        }
        spec["quota"] = {word: {"resources": of} for word, of in amounts.items()}
    return objects.Queue(objects.Metadata(name=queue.name, uid=queue.name), spec)


def _quantities(amounts: ResourceVector) -> dict[str, Any]:
    return {name: _quantity(name, amount) for name, amount in amounts.amounts.items()}


def _quantity(resource: str, amount: int) -> str:
    return f"{amount}m" if resource == CPU else str(amount)
