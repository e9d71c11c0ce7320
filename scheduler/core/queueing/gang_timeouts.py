"""Gang timeouts: how long a gang may be tried in vain before its hold on room is given up.

It is no end (unlike the text this follows, queues.md S87): what was nominated or kept for the gang goes to others, the
gang backs off and starts again. Nothing bounds the timeout from above.

Each end is told to every member, and so is the attempt after it: a gang of thousands that says a second would have all
its pods written again and again. So only its first time is as short as it likes.
"""

from __future__ import annotations

import msgspec

from model.reason import Reason
from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Candidate, Hold

_AGAIN_SECONDS = 60.0
"""The least of every later time."""


class _Trial(msgspec.Struct, frozen=True):
    since_seconds: float
    timeout_seconds: float
    uids: tuple[str, ...]


class GangTimeouts:
    """Gangs that were tried and did not fit, by subject, since their first such attempt; Unix seconds."""

    def __init__(self) -> None:
        self._trials: dict[WorkloadId, _Trial] = {}
        self._ended: set[WorkloadId] = set()

    def failed(self, candidate: Candidate, now: float, until: float = 0.0) -> None:
        """One more attempt in vain; only the first starts the clock, and only for members that must go together.

        It stands still `until` then, as long as victims that were told of their end may take.
        """
        spec = candidate.workload.gang
        if spec is None or candidate.needed == 0:
            self._trials.pop(candidate.subject, None)
            return
        before = self._trials.get(candidate.subject)
        since = max(before.since_seconds if before else now, until)
        least = _AGAIN_SECONDS if candidate.subject in self._ended else 0.0
        self._trials[candidate.subject] = _Trial(since, max(spec.timeout_seconds, least), candidate.uids)

    def forget(self, subject: WorkloadId) -> None:
        """Placed, gone, or no longer complete."""
        self._trials.pop(subject, None)
        self._ended.discard(subject)

    def take_expired(self, now: float) -> list[Hold]:
        """Gangs whose time is over, sorted by subject; their clocks start again with the next attempt."""
        over = sorted(subject for subject, trial in self._trials.items() if _end(trial) <= now)
        self._ended.update(over)
        return [_told(subject, self._trials.pop(subject)) for subject in over]

    def next_due(self) -> float | None:
        """Unix time of the next expiry, None where nothing is tried."""
        return min(map(_end, self._trials.values()), default=None)


def _end(trial: _Trial) -> float:
    return trial.since_seconds + trial.timeout_seconds


def _told(subject: WorkloadId, trial: _Trial) -> Hold:
    detail = (
        f"gang {subject.name}: SchedulingTimeout: not placed within {trial.timeout_seconds:g}s of its first attempt; "
        "room kept for it is given up, it is tried again after its back-off"
    )
    return Hold(subject, Reason.GANG_TIMEOUT, detail, trial.uids)
