"""The table of phases, row by row, as its module documents it."""

from __future__ import annotations

import pytest

from jobs.core.transitions import TRANSITIONS, Cause, following
from model.job.status import JobPhase

P = JobPhase
ROWS = [
    *((phase, Cause.WAITING_FOR_NODES, P.QUEUED) for phase in (P.PENDING, P.QUEUED, P.RUNNING)),
    *((phase, Cause.RUNNING, P.RUNNING) for phase in (P.PENDING, P.QUEUED, P.RUNNING)),
    *((phase, Cause.MAKING_PODS, P.PENDING) for phase in (P.PENDING, P.QUEUED, P.RUNNING)),
    *((phase, Cause.RESTARTED, P.RESTARTING) for phase in (P.PENDING, P.QUEUED, P.RUNNING)),
    *((phase, Cause.SUSPENDED, P.SUSPENDING) for phase in (P.PENDING, P.QUEUED, P.RUNNING)),
    *((phase, Cause.ABORTED, P.SUSPENDING) for phase in (P.PENDING, P.QUEUED, P.RUNNING)),
    *((phase, Cause.COMPLETED, P.COMPLETING) for phase in (P.PENDING, P.QUEUED, P.RUNNING)),
    *((phase, Cause.TERMINATED, P.TERMINATING) for phase in (P.PENDING, P.QUEUED, P.RUNNING)),
    *((phase, Cause.SUCCEEDED, P.SUCCEEDED) for phase in (P.PENDING, P.QUEUED, P.RUNNING)),
    *((phase, Cause.PODS_FAILED, P.FAILED) for phase in (P.PENDING, P.QUEUED, P.RUNNING)),
    *((phase, Cause.TOO_MANY_FAILURES, P.FAILED) for phase in (P.PENDING, P.QUEUED, P.RUNNING)),
    (P.RESTARTING, Cause.PODS_GONE, P.PENDING),
    (P.RESTARTING, Cause.SUSPENDED, P.SUSPENDING),
    (P.RESTARTING, Cause.ABORTED, P.SUSPENDING),
    (P.SUSPENDING, Cause.PODS_GONE, P.SUSPENDED),
    (P.SUSPENDED, Cause.RESUMED, P.PENDING),
    (P.COMPLETING, Cause.PODS_GONE, P.SUCCEEDED),
    (P.TERMINATING, Cause.PODS_GONE, P.TERMINATED),
]


@pytest.mark.parametrize(("phase", "cause", "next_phase"), ROWS)
def test_a_row(phase: JobPhase, cause: Cause, next_phase: JobPhase) -> None:
    assert following(phase, cause) is next_phase


def test_there_are_no_other_rows() -> None:
    """And whatever a phase does not name changes nothing."""
    found = {(phase, cause, to) for phase, causes in TRANSITIONS.items() for cause, to in causes.items()}
    assert found == set(ROWS) and set(TRANSITIONS) == set(JobPhase)
    named = {(phase, cause) for phase, cause, _ in ROWS}
    others = [(phase, cause) for phase in JobPhase for cause in Cause if (phase, cause) not in named]
    assert all(following(phase, cause) is phase for phase, cause in others)


def test_what_has_ended_stays_so() -> None:
    assert all(TRANSITIONS[phase] == {} for phase in JobPhase if phase.ended)
