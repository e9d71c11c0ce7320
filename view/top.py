"""Rows of `sublet top`: a row a node or pod, and the sum of all nodes.

CPU in milli-CPU, memory in bytes; None is what nobody has measured. *Lent* is what the node offers batch pods
(`kubernetes.io/batch-cpu`, `batch-memory`), *online* everything that does not live on lent resources.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

import msgspec

from model.condition import ConditionStatus, ConditionType
from model.nodemetric import NodeMetric
from model.pod.pod import Pod
from model.qos import PriorityBand
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, ResourceVector

_LENT_BANDS = (PriorityBand.BATCH, PriorityBand.FREE)
_DIGITS = re.compile(r"(\d+)")
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


class Sort(StrEnum):
    """By what rows are ordered; all but names with the most first."""

    NAME = "name"
    CPU = "cpu"
    MEMORY = "memory"
    LENT = "lent"
    PODS = "pods"


class Amounts(msgspec.Struct, frozen=True):
    """One resource of a node."""

    allocatable: int = 0
    online_requested: int = 0
    used: int | None = None
    lent: int = 0
    lent_requested: int = 0
    lent_used: int | None = None


class NodeRow(msgspec.Struct, frozen=True):
    """`best_effort_pods` live on lent resources; `limit_millis` is the CPU they may use now, where an agent tells."""

    name: str
    state: str
    cpu: Amounts = Amounts()
    memory: Amounts = Amounts()
    best_effort_pods: int = 0
    limit_millis: int | None = None
    measured_seconds: float | None = None


class PodRow(msgspec.Struct, frozen=True):
    """One pod on lent resources."""

    namespace: str
    name: str
    node: str
    phase: str
    requested: Usage
    used: Usage | None = None
    gang: str = ""


class ConditionState(msgspec.Struct, frozen=True):
    """A condition of a Node: `status` is True, False or Unknown."""

    status: str
    reason: str = ""


class NodeState(msgspec.Struct, frozen=True):
    """A Node's status; `conditions` by type."""

    allocatable: ResourceVector = ResourceVector()
    conditions: Mapping[str, ConditionState] = {}
    unschedulable: bool = False


class Facts(msgspec.Struct, frozen=True):
    """What is known of the cluster. `used_nodes` is metrics.k8s.io's word for nodes without a NodeMetric.

    `limits_millis` are agents' answers, by node.
    """

    nodes: Mapping[str, NodeState]
    pods: Iterable[Pod]
    metrics: Mapping[str, NodeMetric]
    used_nodes: Mapping[str, Usage] = {}
    limits_millis: Mapping[str, int] = {}


def node_rows(facts: Facts) -> list[NodeRow]:
    """One row a node."""
    by_node: dict[str, list[Pod]] = defaultdict(list)
    for pod in facts.pods:
        if not pod.terminal:
            by_node[pod.spec.node_name].append(pod)
    return [_node_row(name, node, by_node.get(name, []), facts) for name, node in facts.nodes.items()]


def pod_rows(facts: Facts) -> list[PodRow]:
    """One row a pod on lent resources that has a node."""
    used = {(name, pod.key): pod.usage for name, metric in facts.metrics.items() for pod in metric.pods}
    return [
        PodRow(
            pod.namespace,
            pod.name,
            pod.spec.node_name,
            pod.status.phase.value,
            _asked(pod),
            used.get((pod.spec.node_name, pod.key)),
            pod.spec.gang.key if pod.spec.gang else "",
        )
        for pod in facts.pods
        if pod.spec.node_name in facts.nodes and lives_on_lent(pod) and not pod.terminal
    ]


def lives_on_lent(pod: Pod) -> bool:
    return pod.colocation.band in _LENT_BANDS


def total(rows: Iterable[NodeRow]) -> NodeRow:
    """The sum of all rows; of what is measured on none of them it stays unknown."""
    rows = tuple(rows)
    limits = [row.limit_millis for row in rows if row.limit_millis is not None]
    return NodeRow(
        name=f"{len(rows)} {'node' if len(rows) == 1 else 'nodes'}",
        state=f"{sum(row.state == 'Ready' for row in rows)} Ready",
        cpu=_sum(row.cpu for row in rows),
        memory=_sum(row.memory for row in rows),
        best_effort_pods=sum(row.best_effort_pods for row in rows),
        limit_millis=sum(limits) if limits else None,
    )


def sorted_nodes(rows: Iterable[NodeRow], by: Sort) -> list[NodeRow]:
    keys: dict[Sort, Callable[[NodeRow], float]] = {
        Sort.NAME: lambda row: 0,
        Sort.CPU: lambda row: -(row.cpu.used or 0),
        Sort.MEMORY: lambda row: -(row.memory.used or 0),
        Sort.LENT: lambda row: -row.cpu.lent,
        Sort.PODS: lambda row: -row.best_effort_pods,
    }
    return sorted(rows, key=lambda row: (keys[by](row), _natural(row.name)))


def sorted_pods(rows: Iterable[PodRow], by: Sort) -> list[PodRow]:
    """By what they use, or request of what is lent."""
    keys: dict[Sort, Callable[[PodRow], float]] = {
        Sort.NAME: lambda row: 0,
        Sort.PODS: lambda row: 0,
        Sort.CPU: lambda row: -(row.used.cpu_millis if row.used else 0),
        Sort.MEMORY: lambda row: -(row.used.memory_bytes if row.used else 0),
        Sort.LENT: lambda row: -row.requested.cpu_millis,
    }
    return sorted(rows, key=lambda row: (keys[by](row), row.namespace, _natural(row.name)))


def state_of(node: NodeState) -> str:
    """Ready or not, then whatever is wrong."""
    held = node.conditions
    ready = held.get(ConditionType.READY)
    words = ["Ready" if ready and ready.status == ConditionStatus.TRUE else "NotReady"]
    words += [kind for kind in _PRESSURES if kind in held and held[kind].status == ConditionStatus.TRUE]
    lending = held.get(ConditionType.COLOCATION_READY)
    if lending and lending.status != ConditionStatus.TRUE:
        words.append(lending.reason or "NotLending")
    if node.unschedulable:
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_row(name: str, node: NodeState, pods: list[Pod], facts: Facts) -> NodeRow:
    metric = facts.metrics.get(name)
    used = metric.node if metric and metric.node else facts.used_nodes.get(name)
    lent = [pod for pod in pods if lives_on_lent(pod)]
    lent_used = _lent_used(metric, {pod.key for pod in lent})
    online = [pod.spec.requests for pod in pods if not lives_on_lent(pod)]
    asked = [_asked(pod) for pod in lent]
    return NodeRow(
        name=name,
        state=state_of(node),
        cpu=Amounts(
            node.allocatable[CPU],
            _requested(online, CPU),
            used.cpu_millis if used else None,
            node.allocatable[BATCH_CPU],
            sum(each.cpu_millis for each in asked),
            lent_used.cpu_millis if lent_used else None,
        ),
        memory=Amounts(
            node.allocatable[MEMORY],
            _requested(online, MEMORY),
            used.memory_bytes if used else None,
            node.allocatable[BATCH_MEMORY],
            sum(each.memory_bytes for each in asked),
            lent_used.memory_bytes if lent_used else None,
        ),
        best_effort_pods=len(lent),
        limit_millis=facts.limits_millis.get(name),
        measured_seconds=metric.updated_seconds if metric else None,
    )


def _asked(pod: Pod) -> Usage:
    return Usage(pod.spec.requests[BATCH_CPU], pod.spec.requests[BATCH_MEMORY])


def _requested(requests: Iterable[ResourceVector], name: str) -> int:
    return sum(vector[name] for vector in requests)


def _lent_used(metric: NodeMetric | None, keys: set[str]) -> Usage | None:
    if metric is None:
        return None
    rows = [pod.usage for pod in metric.pods if pod.key in keys]
    return Usage(sum(row.cpu_millis for row in rows), sum(row.memory_bytes for row in rows))


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    amounts = tuple(amounts)
    used = [each.used for each in amounts if each.used is not None]
    lent_used = [each.lent_used for each in amounts if each.lent_used is not None]
    return Amounts(
        sum(each.allocatable for each in amounts),
        sum(each.online_requested for each in amounts),
        sum(used) if used else None,
        sum(each.lent for each in amounts),
        sum(each.lent_requested for each in amounts),
        sum(lent_used) if lent_used else None,
    )


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """`sim-2` before `sim-10`."""
    parts = _DIGITS.split(name)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)
