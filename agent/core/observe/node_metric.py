"""NodeMetric of this node's own use: the cautious one it lends by, and the one it reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from agent.core.observe.prediction import Prediction
from agent.core.observe.usage import Averages, NodeUsage, Statistics
from model.nodemetric import HostApplicationMetric, NodeMetric, NumaUsage, PodMetric
from model.pod.pod import Pod
from model.qos import PriorityBand, QoSClass
from model.report import Usage
from model.strategy import HostApplication


def live_metric(
    usage: NodeUsage | None,
    pods: Iterable[Pod],
    host_applications: Iterable[HostApplication],
    foreseen: Prediction | None,
) -> NodeMetric | None:
    """The larger of live and aggregate average of everything; None before the node was measured."""
    if usage is None:
        return None
    return _metric(usage, pods, host_applications, foreseen, lambda averages: averages.cautious)


def reported_metric(
    usage: NodeUsage | None,
    statistics: Statistics,
    pods: Iterable[Pod],
    host_applications: Iterable[HostApplication],
    foreseen: Prediction | None,
) -> NodeMetric | None:
    """Averages over the aggregate window, as koordlet reports them; None before the node was measured."""
    if usage is None:
        return None
    numa = {id_: averages.aggregate for id_, averages in usage.numa.items()}
    return msgspec.structs.replace(
        _metric(usage, pods, host_applications, foreseen, lambda averages: averages.aggregate),
        node_aggregates=statistics.node,
        system_aggregates=statistics.system,
        numa=tuple(_numa(numa, usage.node.aggregate, usage.unlisted_system.aggregate)),
    )


def _metric(
    usage: NodeUsage,
    pods: Iterable[Pod],
    host_applications: Iterable[HostApplication],
    foreseen: Prediction | None,
    figure: Callable[[Averages], Usage],
) -> NodeMetric:
    """What both say; `figure` picks which average."""
    return NodeMetric(
        updated_seconds=usage.at_seconds,
        node=figure(usage.node),
        system=figure(usage.unlisted_system),
        pods=tuple(_pods(usage.pods, pods, figure)),
        host_applications=tuple(_applications(usage.host_applications, host_applications, figure)),
        prod_reclaimable=foreseen.prod_reclaimable if foreseen else None,
        prod_peak=foreseen.prod_peak if foreseen else None,
    )


def _pods(
    measured: Mapping[str, Averages], pods: Iterable[Pod], figure: Callable[[Averages], Usage]
) -> Iterator[PodMetric]:
    for pod in pods:
        if (averages := measured.get(pod.uid)) is not None:
            yield PodMetric(pod.namespace, pod.name, figure(averages), pod.colocation.band, pod.colocation.qos)


def _applications(
    measured: Mapping[str, Averages],
    host_applications: Iterable[HostApplication],
    figure: Callable[[Averages], Usage],
) -> Iterator[HostApplicationMetric]:
    for application in host_applications:
        if (averages := measured.get(application.name)) is not None:
            band, qos = PriorityBand.of(application.priority), QoSClass.of(application.qos)
            yield HostApplicationMetric(application.name, figure(averages), band, qos)


def _numa(nodes: Mapping[int, Usage], node: Usage, system: Usage) -> Iterator[NumaUsage]:
    """Parts of the node's use, which they never exceed together.

    Theirs is measured by other files and formulas at another moment (memory that can be dropped is counted kind by
    kind, and where the agent's node is a part of a machine it is the whole machine's), so what comes to more is scaled
    down. No counter tells where the system's use lies, so it is shared out by each node's own, as koordlet does.
    """
    ids = sorted(nodes)
    cpu = _parts([nodes[id_].cpu_millis for id_ in ids], node.cpu_millis, system.cpu_millis)
    memory = _parts([nodes[id_].memory_bytes for id_ in ids], node.memory_bytes, system.memory_bytes)
    for id_, (own_cpu, system_cpu), (own_memory, system_memory) in zip(ids, cpu, memory, strict=True):
        yield NumaUsage(id_, Usage(own_cpu, own_memory), Usage(system_cpu, system_memory))


def _parts(measured: list[int], node: int, system: int) -> list[tuple[int, int]]:
    """(own, system's) of each; neither sums to more than the whole, nor is a system's part more than its own."""
    total = sum(measured)
    owns = [own if total <= node else node * own // total for own in measured]
    return [(own, min(system * part // total, own) if total else 0) for own, part in zip(owns, measured, strict=True)]
