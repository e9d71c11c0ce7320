"""Kueue's published performance scenario, and one cohort of many queues, as Kueue's own objects.

Source: kubernetes-sigs/kueue test/performance/scheduler/configs/baseline (generator.yaml, rangespec.yaml of 2026):
5 cohorts of 6 ClusterQueues with a nominal quota of 20 and a borrowing limit of 100; 500 workloads a queue in three
sizes, each of one pod. Kueue has no nodes there, so that one node here has room for everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from bench.simulated.job import SimulatedJob
from kube import objects

_FLAVOR = "rf"
PUBLISHED_SECONDS = 351.1
"""Their wall time, mean of five runs, with a client of 50 writes a second."""


class WorkloadSet(msgspec.Struct, frozen=True):
    """`count` workloads of one size of a queue, one each `interval_seconds`."""

    name: str
    count: int
    interval_seconds: float
    run_seconds: float
    priority: int
    cpus: int


BASELINE = (
    WorkloadSet("small", 350, 0.1, 0.2, 50, 1),
    WorkloadSet("medium", 100, 0.5, 0.5, 100, 5),
    WorkloadSet("large", 50, 1.2, 1.0, 200, 20),
)


class Scenario(msgspec.Struct, frozen=True):
    """So many cohorts of so many queues, each with the same workloads; amounts in CPUs. `preempts` as published."""

    name: str
    cohorts: int
    queues: int
    sets: tuple[WorkloadSet, ...]
    nominal: int = 20
    borrowing: int = 100
    preempts: bool = True

    @property
    def bound_seconds(self) -> float:
        """No schedule is shorter: all CPU seconds of a cohort by its quota, or the last to come and its time."""
        work = self.queues * sum(each.count * each.cpus * each.run_seconds for each in self.sets)
        last = max((each.count - 1) * each.interval_seconds + each.run_seconds for each in self.sets)
        return max(work / (self.nominal * self.queues), last)

    @property
    def workloads(self) -> int:
        return self.cohorts * self.queues * sum(each.count for each in self.sets)

    def objects(self) -> Iterator[Any]:
        """The queues, as manifests have them."""
        yield objects.Namespace(_named("default"))
        yield objects.ResourceFlavor(_named(_FLAVOR), {})
        for cohort, queue in self._queues():
            quota = {"name": "cpu", "nominalQuota": self.nominal, "borrowingLimit": self.borrowing}
            flavors = [{"name": _FLAVOR, "resources": [quota]}]
            within, reclaim = ("LowerPriority", "Any") if self.preempts else ("Never", "Never")
            spec = {
                "cohort": cohort,
                "namespaceSelector": {},
                "preemption": {"reclaimWithinCohort": reclaim, "withinClusterQueue": within},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
            }
            yield objects.ClusterQueue(_named(queue), spec)
            yield objects.LocalQueue(_named(queue, "default"), {"clusterQueue": queue})

    def jobs(self) -> Iterable[SimulatedJob]:
        """The workloads, in order of their coming."""
        found = [
            SimulatedJob(
                f"{queue}-{each.name}-{number}",
                number * each.interval_seconds,
                each.run_seconds,
                (("cpu", each.cpus),),
                priority=each.priority,
                labels=(("kueue.x-k8s.io/queue-name", queue),),
            )
            for _, queue in self._queues()
            for each in self.sets
            for number in range(each.count)
        ]
        return sorted(found, key=lambda job: (job.submit_seconds, job.name))

    def _queues(self) -> Iterator[tuple[str, str]]:
        for cohort in range(self.cohorts):
            for queue in range(self.queues):
                yield f"cohort-{cohort}", f"cq-{cohort}-{queue}"


def node() -> objects.Node:
    """Room for everything, so that quota alone decides."""
    amounts: dict[str, Any] = {"cpu": 1_000_000, "memory": "1Ti", "pods": 1_000_000}
    metadata = objects.Metadata(name="everything", uid="node", labels={"kubernetes.io/hostname": "everything"})
    return objects.Node(metadata, objects.NodeSpec(), objects.NodeStatus(amounts, amounts))


def _named(name: str, namespace: str = "") -> objects.Metadata:
    return objects.Metadata(name=name, namespace=namespace, uid=f"uid-{namespace}-{name}")
