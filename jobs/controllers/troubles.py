"""What the controllers of jobs could not do, told once for each trouble: in the log, and as a warning on the job."""

from __future__ import annotations

import structlog

from kube.events import EventRecorder, ObjectRef
from model.fault import KubernetesFault

log = structlog.get_logger()


class Troubles:
    """By the key of the job. One that is told again counts as new where another, or an end, came between."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._told: dict[str, str] = {}

    def tell(self, key: str, about: ObjectRef | None, reason: str, message: str) -> bool:
        """A warning; False where it was the last thing told. A job that is gone gets none."""
        return self._tell(key, message, about, reason, message)

    def set_aside(self, key: str, about: ObjectRef, error: Exception) -> None:
        """An error of our own about a job: its traceback is for the log."""
        told = "an error of the controller itself about this job; it is tried again when it changes"
        if self._tell(key, repr(error), about, "ControllerError", told):
            log.error("job set aside", job=key, exc_info=error)

    def failed(self, key: str, about: ObjectRef | None, fault: KubernetesFault, seconds: float) -> None:
        """A write: its writer is who can mend a refusal."""
        if self.tell(key, about, "WriteFailed", str(fault)):
            log.warning("job not brought on", job=key, error=str(fault), retry_seconds=seconds)

    def forget(self, key: str) -> None:
        """They are over, or the job is gone."""
        self._told.pop(key, None)

    def _tell(self, key: str, known: str, about: ObjectRef | None, reason: str, message: str) -> bool:
        if self._told.get(key) == known:
            return False
        self._told[key] = known
        if about is not None:
            self._recorder.record(about, reason, message, warning=True)
        return True
