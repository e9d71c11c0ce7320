"""Queue book: what the work of each queue takes, told to the quota along its path, and how many jobs of it run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from model.queue import NO_FLAVOR, ROOT_QUEUE, Cell
from model.workload import WorkloadId
from scheduler.core.ledger.charge import Charge
from scheduler.core.queues.turn_quota import TurnQuota
from scheduler.core.snapshot.podclass import PodClass


def cells_of(pod_class: PodClass, number: int = 1) -> Mapping[Cell, int]:
    """What so many pods of a class take."""
    return pod_class.cells(number)


def cells(amounts: Mapping[str, int]) -> dict[Cell, int]:
    """Amounts by resource, in a cluster without flavours."""
    return {(NO_FLAVOR, resource): amount for resource, amount in amounts.items()}


def add(total: dict[Cell, int], amounts: Mapping[Cell, int]) -> None:
    """Count these to the total."""
    for cell, amount in amounts.items():
        total[cell] = total.get(cell, 0) + amount


class QueueBook:
    """Kept while there is more than the default queue; `quota` has what is used and nominated.

    A pod counts until it is gone, whoever asked for its deletion.
    """

    def __init__(self, quota: TurnQuota) -> None:
        self.quota = quota
        self._jobs: dict[str, dict[WorkloadId, int]] = {}

    def running(self, queue: str) -> int:
        """How many jobs of the queue itself have a pod on a node."""
        return len(self._jobs.get(queue, ()))

    def jobs(self, queue: str) -> Iterable[WorkloadId]:
        """Those jobs."""
        return self._jobs.get(queue, {}).keys()

    def begin(self, used: Mapping[str, Mapping[Cell, int]]) -> None:
        """What is used and nominated by now, by queue."""
        for queue, amounts in used.items():
            if queue != ROOT_QUEUE:
                self.quota.charge(queue, amounts)

    def count(self, queue: str, pod_class: PodClass, number: int) -> None:
        """So many pods more, or fewer where it is negative."""
        if queue != ROOT_QUEUE:
            self.quota.charge(queue, pod_class.cells(number))

    def came(self, queue: str, charges: Sequence[Charge]) -> None:
        """These take something of the cluster from now on, in the name of the queue."""
        jobs = self._jobs.get(queue)
        if jobs is None:
            self._jobs[queue] = jobs = {}
        subject = charges[0].subject
        for charge in charges:
            if charge.subject is not subject:
                subject = None
                break
        if subject is not None:
            jobs[subject] = jobs.get(subject, 0) + len(charges)
            return
        for charge in charges:
            job = charge.job
            jobs[job] = jobs.get(job, 0) + 1

    def went(self, charge: Charge) -> None:
        """It is charged no more."""
        if not charge.counts:
            return
        queue, job = charge.governed_by, charge.job
        jobs = self._jobs[queue]
        jobs[job] -= 1
        if not jobs[job]:
            del jobs[job]
        if not jobs:
            del self._jobs[queue]
