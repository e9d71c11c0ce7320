"""Troubles of jobs are told once each, and again after they were over."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from jobs.controllers.troubles import Troubles
from kube.events import ObjectRef
from model.fault import KubernetesFault

ABOUT = ObjectRef("Job", "j", "ns", "u")
REFUSED = KubernetesFault("pods", "is forbidden", status=403)


class Recorder:
    """What was recorded: reasons and messages, with whether it was a warning."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, bool]] = []

    def record(self, about: ObjectRef, reason: str, message: str, *, warning: bool = False) -> None:
        assert about is ABOUT
        self.told.append((reason, message, warning))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def test_each_is_told_once_until_it_is_over(recorder: Recorder) -> None:
    troubles = Troubles(recorder)  # type: ignore[arg-type]
    with capture_logs() as logs:
        for _ in range(2):
            troubles.failed("a", ABOUT, REFUSED, 5.0)
    assert recorder.told == [("WriteFailed", str(REFUSED), True)]
    assert [(each["event"], each["retry_seconds"]) for each in logs] == [("job not brought on", 5.0)]
    troubles.forget("a")
    troubles.failed("a", ABOUT, REFUSED, 5.0)
    assert len(recorder.told) == 2


def test_an_error_of_our_own_is_logged_and_told(recorder: Recorder) -> None:
    """Its text is for the log alone."""
    troubles = Troubles(recorder)  # type: ignore[arg-type]
    with capture_logs() as logs:
        for _ in range(2):
            troubles.set_aside("a", ABOUT, ValueError("inside"))
    assert [(reason, "inside" in message) for reason, message, _ in recorder.told] == [("ControllerError", False)]
    assert [(each["log_level"], repr(each["exc_info"])) for each in logs] == [("error", "ValueError('inside')")]


def test_a_job_that_is_gone_gets_no_event(recorder: Recorder) -> None:
    """The log has it all the same."""
    troubles = Troubles(recorder)  # type: ignore[arg-type]
    with capture_logs() as logs:
        troubles.failed("a", None, REFUSED, 5.0)
    assert (recorder.told, len(logs)) == ([], 1)


def test_another_trouble_is_told(recorder: Recorder) -> None:
    troubles = Troubles(recorder)  # type: ignore[arg-type]
    assert [troubles.tell("a", ABOUT, "R", text) for text in ("one", "one", "two", "one")] == [True, False, True, True]
