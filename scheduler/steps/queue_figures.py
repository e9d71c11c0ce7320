"""Figures of queues and jobs for metrics: how many wait, what queues have of the cluster, and how far that is fair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

from model.metrics import QUEUE_ROWS, MetricSample
from model.placement import EvictionPlan
from model.pod.pod import Pod
from model.queue import DEFAULT_QUEUE, ROOT_QUEUE, Cell
from model.reason import Reason
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queues.headroom import Quota
from scheduler.steps.turn import EndedWait

_LENGTH, _UTILISATION, _DEVIATION = QUEUE_ROWS
_NO_OWNER = "Pod"
_OTHER = "other"
"""What pods may say as they like is no label: each would stay in the metrics for good."""
_JOB_TYPES = frozenset(
    (
        *("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"),
        *("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "TrainJob", "TrainingJob", "XGBoostJob"),
        *(
            "AppWrapper",
            "CloneSet",
            "JobSet",
            "LeaderWorkerSet",
            "RayCluster",
            "RayJob",
            "SparkApplication",
            "Workflow",
        ),
    )
)


def queue_figures(quota: Quota, waiting: Iterable[Candidate]) -> Mapping[str, Sequence[MetricSample]]:
    """Every series, by row."""
    queues = quota.tree.queues
    lengths = Counter((_known(each.workload.queue, queues), each.workload.priority) for each in waiting)
    return {
        _LENGTH: [
            MetricSample(number, (queue, str(priority))) for (queue, priority), number in sorted(lengths.items())
        ],
        _UTILISATION: [*_utilisation(quota)],
        _DEVIATION: [*_deviations(quota)],
    }


def ended(candidate: Candidate, pod: Pod | None, result: str, now: float) -> EndedWait:
    """`pod` is one of the job's, whose owner is its type."""
    workload = candidate.workload
    kind = pod.owner_kind if pod is not None and pod.owner_kind else _NO_OWNER
    job_type = kind if kind == _NO_OWNER else _known(kind, _JOB_TYPES)
    return EndedWait(workload.queue, job_type, result, now - workload.created_seconds, workload.gang is not None)


def known_queues(quota: Quota | None) -> Callable[[str], str]:
    """What a queue is called in metrics: those that nobody wrote have one name together."""
    queues = quota.tree.queues if quota is not None else {DEFAULT_QUEUE: None}
    return lambda queue: queue if queue == ROOT_QUEUE else _known(queue, queues)


def losses(plan: EvictionPlan) -> Iterator[tuple[str, Reason]]:
    """The queue of each job that loses pods by a plan, and why."""
    jobs = {victim.subject: victim for victim in plan.victims}
    for victim in jobs.values():
        yield victim.queue, Reason.RECLAIMING if victim.reclaimed else Reason.PREEMPTING


def _known(name: str, names: Container[str]) -> str:
    return name if name in names else _OTHER


def _utilisation(quota: Quota) -> Iterator[MetricSample]:
    """Where a queue uses something, or its quota names the resource: others would be one series a queue for nothing."""
    for (_, resource), cells in _by_resource(quota.capacity).items():
        total = sum(quota.capacity[cell] for cell in cells)
        for name in quota.tree.top_down:
            if quota.tree.leaf(name) and total > 0:
                used = sum(quota.used(name, cell) for cell in cells)
                if used or not quota.tree.queues[name].cells.keys().isdisjoint(cells):
                    yield MetricSample(used / total, (resource, name))


def _by_resource(capacity: Mapping[Cell, int]) -> dict[Cell, list[Cell]]:
    """Flavours of a resource count together."""
    found: dict[Cell, list[Cell]] = {}
    for cell in sorted(capacity):
        found.setdefault(("", cell[1]), []).append(cell)
    return found


def _deviations(quota: Quota) -> Iterator[MetricSample]:
    """Of a queue that has nothing, of the resource of which its share is the largest part."""
    for name in quota.tree.top_down:
        dominant = quota.dominant_share(name).resource or _largest_share(quota, name)
        cells = [cell for cell in quota.capacity if cell[1] == dominant]
        total = sum(quota.capacity[cell] for cell in cells)
        if total > 0:
            used = sum(quota.used(name, cell) for cell in cells)
            fair = sum(quota.share(name, cell) or 0 for cell in cells)
            yield MetricSample((used - fair) / total, (name,))


def _largest_share(quota: Quota, name: str) -> str:
    shares = {
        cell[1]: (quota.share(name, cell) or 0) / total for cell, total in sorted(quota.capacity.items()) if total > 0
    }
    return max(shares, key=lambda resource: shares[resource], default="") if name != ROOT_QUEUE else ""
