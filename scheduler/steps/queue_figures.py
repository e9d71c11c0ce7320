"""Figures of queues and jobs for metrics: how many wait, what queues have of the cluster, and how far that is fair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from model.job.labels import JOB_TYPE
from model.metrics import QUEUE_ROWS, MetricSample
from model.placement import EvictionPlan
from model.pod.pod import Pod
from model.queue import ROOT_QUEUE, Cell
from model.reason import Reason
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queues.headroom import Quota
from scheduler.steps.turn import EndedWait

_LENGTH, _UTILISATION, _DEVIATION = QUEUE_ROWS
_NO_OWNER = "Pod"
_OTHER = "other"
_TRAINING = "TrainingJob"
_JOB_TYPES = frozenset(
    {
        *("DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "ReplicationController", "StatefulSet"),
        *(
            "AppWrapper",
            "CloneSet",
            "JobSet",
            "LeaderWorkerSet",
            "Notebook",
            "PodClique",
            "SparkApplication",
            "Workflow",
        ),
        *("JAXJob", "MPIJob", "MXJob", "PaddleJob", "PyTorchJob", "TFJob", "TrainJob", "TrainingJob", "XGBoostJob"),
        *("FlinkDeployment", "RayCluster", "RayJob", "RayService"),
    }
)
"""Kinds of controllers that make pods; whoever makes a pod may write any text as its owner's kind."""
NO_QUEUE = "(none)"
"""Label of work whose queue does not exist, whatever text names it; no object can have this name."""


def queue_label(queue: str, queues: Container[str]) -> str:
    """As a label of a metric: pods name any queue, and only those that exist have series."""
    return queue if queue in queues or queue == ROOT_QUEUE else NO_QUEUE


def queue_figures(quota: Quota, waiting: Iterable[Candidate]) -> Mapping[str, Sequence[MetricSample]]:
    """Every series, by row."""
    queues = quota.tree.queues
    lengths = Counter((queue_label(each.workload.queue, queues), each.workload.priority) for each in waiting)
    return {
        _LENGTH: [
            MetricSample(number, (queue, str(priority))) for (queue, priority), number in sorted(lengths.items())
        ],
        _UTILISATION: [*_utilisation(quota)],
        _DEVIATION: [*_deviations(quota)],
    }


def ended(candidate: Candidate, pod: Pod | None, result: str, now: float) -> EndedWait:
    """`pod` is one of the job's."""
    workload = candidate.workload
    return EndedWait(workload.queue, _job_type(pod), result, now - workload.created_seconds, workload.gang is not None)


def _job_type(pod: Pod | None) -> str:
    """Its owner's kind, of a TrainingJob its framework; `other` where that is none of those known."""
    owner = pod.owner_kind if pod is not None and pod.owner_kind else _NO_OWNER
    told = pod.labels.get(JOB_TYPE, owner) if pod is not None and owner == _TRAINING else owner
    return told if told in _JOB_TYPES else _OTHER


def losses(plan: EvictionPlan) -> Iterator[tuple[str, Reason]]:
    """The queue of each job that loses pods by a plan, and why."""
    jobs = {victim.subject: victim for victim in plan.going}
    for victim in jobs.values():
        yield victim.queue, Reason.RECLAIMING if victim.reclaimed else Reason.PREEMPTING


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
