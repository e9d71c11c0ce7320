"""How far a Job has come, counted from its pods and from what is remembered of those that are gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.jobs.job_pods import JobPod
from embedded.apiserver.jobs.job_policies import judge
from embedded.apiserver.validation.completion_indexes import parse_indexes


@dataclass(slots=True)
class EndedPods:
    """Pods of a job that ended and are no longer there to be counted.

    `dismissed` are the uids of pods the controller itself sent away: their end is nobody's failure.
    """

    succeeded: int = 0
    failed: int = 0
    done_indexes: set[int] = field(default_factory=set)
    index_failures: Counter[int] = field(default_factory=Counter)
    failed_indexes: set[int] = field(default_factory=set)
    last_failure: float = 0.0
    last_success: float = 0.0
    dismissed: set[str] = field(default_factory=set)

    def add(self, job: Object, pod: JobPod, now: float) -> None:
        """A pod is gone."""
        if pod.uid in self.dismissed:
            self.dismissed.discard(pod.uid)
        elif pod.phase == "Succeeded":
            self.succeeded += 1
            self.last_success = now
            if pod.index is not None:
                self.done_indexes.add(pod.index)
        else:
            self._add_failure(job, pod, now)

    def _add_failure(self, job: Object, pod: JobPod, now: float) -> None:
        verdict = judge(job["spec"], job["metadata"]["namespace"], pod)
        if not verdict.counted:
            return
        self.failed += 1
        self.last_failure = now
        if pod.index is not None:
            self.index_failures[pod.index] += 1
            if verdict.fails_index:
                self.failed_indexes.add(pod.index)


def remembered(job: Object, pods: Iterable[JobPod]) -> EndedPods:
    """The tally of a job seen for the first time by this process: what its status counts and its pods do not show."""
    status, seen = job.get("status") or {}, count(job, list(pods), EndedPods())
    done = parse_indexes(status.get("completedIndexes"))
    return EndedPods(
        succeeded=max(0, (status.get("succeeded") or 0) - seen.succeeded),
        failed=max(0, (status.get("failed") or 0) - seen.failed),
        done_indexes=set(done),
        failed_indexes=set(parse_indexes(status.get("failedIndexes"))),
    )


@dataclass(slots=True)
class Count:
    """A job's pods in numbers; times in seconds."""

    active: list[JobPod]
    terminating: int
    done_indexes: frozenset[int]
    failed_indexes: frozenset[int]
    index_failures: Counter[int]
    index_last_failure: dict[int, float]
    succeeded: int
    failed: int
    failed_if_ended: int  # were every unfinished pod to fail
    failures_in_a_row: int
    last_failure: float
    fails_job: str

    @property
    def ready(self) -> int:
        return sum(pod.ready for pod in self.active)

    @property
    def restarts(self) -> int:
        return sum(pod.restarts for pod in self.active)

    @property
    def taken_indexes(self) -> set[int]:
        return {pod.index for pod in self.active if pod.index is not None}


def count(job: Object, pods: list[JobPod], tally: EndedPods) -> Count:
    """Pods of an Indexed job without an index that its completions cover do not count."""
    spec, indexed = job["spec"], is_indexed(job)
    if indexed:
        pods = [pod for pod in pods if pod.index is not None and pod.index < spec["completions"]]
    ours = [pod for pod in pods if pod.uid not in tally.dismissed]
    succeeded = [pod for pod in ours if pod.phase == "Succeeded"]
    failures = _Failures(job, tally, max((pod.ended_at for pod in succeeded), default=0.0))
    for pod in ours:
        if _failed(spec, pod):
            failures.add(pod)
    done = {pod.index for pod in succeeded if pod.index is not None} | tally.done_indexes
    unfinished = [pod for pod in pods if not pod.finished]
    loose = sum(not _failed(spec, pod) for pod in ours if not pod.finished)
    return Count(
        active=[pod for pod in unfinished if pod.active],
        terminating=sum(pod.deleting for pod in unfinished),
        done_indexes=frozenset(done),
        failed_indexes=frozenset(failures.ended_indexes() - done),
        index_failures=failures.by_index,
        index_last_failure=failures.last_by_index,
        succeeded=len(done) if indexed else len(succeeded) + tally.succeeded,
        failed=failures.number,
        failed_if_ended=failures.number + loose,
        failures_in_a_row=failures.in_a_row,
        last_failure=failures.last,
        fails_job=failures.fails_job,
    )


def is_indexed(job: Object) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def _failed(spec: Object, pod: JobPod) -> bool:
    """Unless the job asks to wait for the end, a pod that is being deleted has failed already."""
    if pod.phase == "Failed":
        return True
    waits = spec.get("podReplacementPolicy") == "Failed"
    return pod.deleting and pod.phase != "Succeeded" and not waits


class _Failures:
    """Failed pods, added up."""

    def __init__(self, job: Object, tally: EndedPods, last_success: float) -> None:
        self._spec, self._namespace = job["spec"], job["metadata"]["namespace"]
        self._last_success = max(last_success, tally.last_success)
        self.number = tally.failed
        self.in_a_row = tally.failed if tally.last_failure > self._last_success else 0
        self.last = tally.last_failure if self.in_a_row else 0.0
        self.by_index = Counter(tally.index_failures)
        self.last_by_index = dict.fromkeys(tally.index_failures, tally.last_failure)
        self.fails_job = ""
        self._ended = set(tally.failed_indexes)

    def add(self, pod: JobPod) -> None:
        verdict, ended_at = judge(self._spec, self._namespace, pod), pod.ended_at
        self.fails_job = self.fails_job or verdict.fails_job
        if not verdict.counted:
            return
        self.number += 1
        if ended_at > self._last_success:
            self.in_a_row += 1
            self.last = max(self.last, ended_at)
        if pod.index is not None:
            self.by_index[pod.index] += 1
            self.last_by_index[pod.index] = max(self.last_by_index.get(pod.index, 0.0), ended_at)
            if verdict.fails_index:
                self._ended.add(pod.index)

    def ended_indexes(self) -> set[int]:
        """Indexes that get no further try."""
        limit = self._spec.get("backoffLimitPerIndex")
        if limit is None:
            return set()
        return self._ended | {index for index, failures in self.by_index.items() if failures > limit}
