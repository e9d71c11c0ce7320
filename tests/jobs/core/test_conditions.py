"""Conditions keep their time while they stay; events are told once."""

from __future__ import annotations

import msgspec
from job_cases import NOW, job, running

from jobs.core.conditions import conditions, events, remembered, waited_too_long
from model.condition import ConditionStatus
from model.job.actions import TellEvent
from model.job.job import GroupTerms
from model.job.status import JobPhase, JobStatus


def test_times_stay_while_the_status_does() -> None:
    first = msgspec.structs.replace(running(), conditions=conditions(job(), running(), "", NOW))
    again = conditions(job(), first, "", NOW + 5)
    assert again == first.conditions
    broken = {each.type: each for each in conditions(job(), first, "no", NOW + 5)}
    assert (broken["Accepted"].status, broken["Accepted"].since_seconds) == (ConditionStatus.FALSE, NOW + 5)
    assert broken["Running"].since_seconds == NOW


def test_what_each_phase_says() -> None:
    done = JobStatus(phase=JobPhase.SUCCEEDED, reason="Succeeded")
    told = {each.type: (each.status.value, each.reason) for each in conditions(job(unmet=("a: b",)), done, "", NOW)}
    assert told == {
        "Accepted": ("True", "Valid"),
        "NotActedOn": ("True", "NotActedOn"),
        "Running": ("False", "Succeeded"),
        "Finished": ("True", "Succeeded"),
    }


def test_a_wait_is_over_when_it_runs() -> None:
    patient = job(group=GroupTerms(minimum=2, wait_seconds=5.0))
    queued = JobStatus(phase=JobPhase.QUEUED, queued_seconds=NOW - 5)
    assert waited_too_long(patient, queued, NOW) and not waited_too_long(patient, queued, NOW - 1)
    told = msgspec.structs.replace(queued, conditions=conditions(patient, queued, "", NOW))
    assert "WaitTimeExceeded" in [each.type for each in told.conditions]
    after = msgspec.structs.replace(told, phase=JobPhase.RUNNING, queued_seconds=0.0)
    assert "WaitTimeExceeded" not in [each.type for each in conditions(patient, after, "", NOW)]


def test_events_of_a_change() -> None:
    before = JobStatus(phase=JobPhase.QUEUED)
    after = msgspec.structs.replace(before, phase=JobPhase.FAILED, reason="PodsFailed", message="failed: a")
    assert list(events(job(), before, after)) == [TellEvent("PodsFailed", "failed: a", True)]
    assert list(events(job(), after, after)) == []


def test_events_are_bounded() -> None:
    status = JobStatus(events=remembered(JobStatus(), [TellEvent(str(number), "") for number in range(5)], 3, NOW))
    assert [each.reason for each in status.events] == ["2", "3", "4"]
    assert [each.reason for each in remembered(status, [TellEvent("5", "")], 3, NOW)] == ["3", "4", "5"]
    assert remembered(status, [TellEvent("5", "")], 0, NOW) == ()
