"""Phases, counts, and which pods count."""

from __future__ import annotations

import pytest

from model.job.job import Member
from model.job.status import JobPhase, JobPod, JobStatus, PodPhase, TaskCounts


def test_phases_are_active_on_their_way_or_ended() -> None:
    active = {JobPhase.PENDING, JobPhase.QUEUED, JobPhase.RUNNING}
    ended = {JobPhase.SUCCEEDED, JobPhase.TERMINATED, JobPhase.FAILED}
    assert {phase for phase in JobPhase if phase.active} == active
    assert {phase for phase in JobPhase if phase.ended} == ended


def test_counts_add_up() -> None:
    total = JobStatus(tasks={"a": TaskCounts(running=1, failed=2), "b": TaskCounts(pending=1, terminating=1)}).counts
    assert total == TaskCounts(pending=1, running=1, failed=2, terminating=1)
    assert (total.begun, total.staying) == (3, 4)


@pytest.mark.parametrize(
    ("floors", "stale"),
    [
        ({}, False),
        ({"": 2}, True),
        ({"": 1}, False),
        ({"worker": 2}, True),
        ({"worker-0": 2}, True),
        ({"ps": 2}, False),
    ],
)
def test_pods_of_an_earlier_run(floors: dict[str, int], stale: bool) -> None:
    assert JobStatus(run=2, floors=floors).stale(JobPod(Member("worker", 0), "p", run=1)) is stale


def test_a_pod_that_is_done() -> None:
    done = {phase: JobPod(Member("worker", 0), "p", phase=phase).done for phase in PodPhase}
    assert [phase for phase, over in done.items() if over] == [PodPhase.SUCCEEDED, PodPhase.FAILED]
