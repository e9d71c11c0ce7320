"""Work of jobs that is saved in checkpoints, as agents tell, and work that was lost."""

from __future__ import annotations

from model.job.labels import JOB_UID
from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.core.preemption.lost_work import saved_by_all

_MOST_JOBS = 4096
"""Jobs of which it is known how much they lost; the oldest losses are forgotten first."""


class SavedWork:
    """`saved` is the moment (Unix seconds) of each pod's newest state that is saved, by uid."""

    def __init__(self) -> None:
        self.saved: dict[str, float] = {}
        self._reported: dict[str, float] = {}
        self._lost: dict[str, float] = {}

    def report(self, uid: str, state_seconds: float) -> bool:
        """A pod saved its state; false where that, or a newer one, is known. `share` tells what it is worth."""
        if state_seconds <= self._reported.get(uid, 0.0):
            return False
        self._reported[uid] = state_seconds
        return True

    def share(self, members: frozenset[str]) -> None:
        """What is reported of these, all the members (uids) of a job, counts for each of them."""
        self.saved.update(saved_by_all(self._reported, members))

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self.saved.pop(uid, None)
        self._reported.pop(uid, None)

    def lose(self, job: str, seconds: float) -> None:
        """A pod of the job was evicted."""
        self._lost[job] = self._lost.pop(job, 0.0) + seconds
        if len(self._lost) > _MOST_JOBS:
            del self._lost[next(iter(self._lost))]

    def lost_seconds(self, job: str) -> float:
        """Work that the job's pods lost by evictions since this process leads."""
        return self._lost.get(job, 0.0)


def job_of(pod: Pod, subject: WorkloadId) -> str:
    """`namespace/name` of the job that a pod is of; of one without a controller of ours its gang, or the pod."""
    return pod.owner if pod.owner and JOB_UID in pod.labels else subject.name
