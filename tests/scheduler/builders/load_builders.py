"""Valid by default: a node measured a moment ago to use nothing, with 96 CPUs and 512 GiB."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler_builders import node, pod, snapshot

from model.loadlimits import LoadLimits
from model.nodemetric import AggregatedUsage
from model.pod.pod import Pod
from model.qos import PriorityBand
from model.report import Usage
from model.resources import CPU, MEMORY
from scheduler.core.load.arrays import LoadArrays, load_arrays
from scheduler.core.load.node import Assigned, Measured, NodeLoad, node_load
from scheduler.core.load.policy import LoadPolicy
from scheduler.core.snapshot.podclass import PodClass, class_of
from scheduler.core.snapshot.snapshot import ClusterSnapshot

NOW = 10_000.0
GIB = 1 << 30
POLICY = LoadPolicy()
UNSET = LoadLimits()


def usage(cpus: float = 0, gib: float = 0) -> Usage:
    return Usage(round(cpus * 1000), round(gib * GIB))


def measured(
    cpus: float = 0, gib: float = 0, pods: Mapping[str, Usage] | None = None, *, at: float = NOW - 10, **more: Any
) -> Measured:
    """By a NodeMetric; `prods` names those of `pods` that are reported as prod."""
    prods = frozenset(more.pop("prods", ()))
    return Measured(at, more.pop("interval", 60.0), usage(cpus, gib), pods or {}, prod_pods=prods, **more)


def live(cpus: float = 0, gib: float = 0, pods: Mapping[str, Usage] | None = None, *, at: float = NOW - 1) -> Measured:
    """By an agent's report."""
    return Measured(at, 10.0, usage(cpus, gib), pods or {}, all_pods=False)


def aggregate(seconds: float, **statistics: Usage) -> AggregatedUsage:
    return AggregatedUsage(seconds, statistics)


def assigned(
    name: str = "p1", cpus: float = 13.6, gib: float = 22.4, *, at: float = NOW - 1000, **more: Any
) -> Assigned:
    return Assigned(f"default/{name}", usage(cpus, gib), at, **more)


def load(
    metric: Measured | None = None,
    report: Measured | None = None,
    pods: Iterable[Assigned] = (),
    policy: LoadPolicy = POLICY,
    own: LoadLimits = UNSET,
) -> NodeLoad:
    return node_load(metric, report, pods, policy, own)


def arrays_of(*loads: NodeLoad, policy: LoadPolicy = POLICY, now: float = NOW) -> LoadArrays:
    return load_arrays(loads, policy, now)


def nodes(count: int = 1, *, cpus: int = 96, gib: int = 512) -> ClusterSnapshot:
    return snapshot(*(node(f"n{index}", amounts={CPU: cpus * 1000, MEMORY: gib * GIB}) for index in range(count)))


def prod_pod(cpus: float = 16, gib: float = 32, **more: Any) -> Pod:
    """Koordinator's test pod: 16 CPUs and 32 GiB, estimated at 13.6 and 22.4."""
    asked = {CPU: round(cpus * 1000), MEMORY: round(gib * GIB)}
    return pod(more.pop("name", "p1"), requests=asked, **{"band": PriorityBand.PROD, **more})


def prod_class(cpus: float = 16, gib: float = 32, **more: Any) -> PodClass:
    return class_of(prod_pod(cpus, gib, **more))
