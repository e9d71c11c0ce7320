"""Who is told of limits that are not in force: once as one begins, once as the last has ended."""

from __future__ import annotations

from typing import Any

from structlog.testing import capture_logs

from agent.core.lend.unenforced import UnenforcedLimit
from agent.run.limit_events import LimitEvents
from model.reason import Reason, words

QUOTA = UnenforcedLimit("cpu.max", Reason.LIMIT_NOT_WRITTEN, "/cpu.max: Read-only file system")
STATE = UnenforcedLimit("state file", Reason.STATE_NOT_SAVED, "/state: No space left on device")


def test_each_lapse_is_told_once(build: Any) -> None:
    """Warnings with the code and the place; words that change meanwhile are no news; the end is told when all is well."""
    told: list[tuple[str, str, bool]] = []
    teller = LimitEvents(lambda reason, message, *, warning: told.append((reason, message, warning)))
    with capture_logs() as logs:
        for lapses in ((), (QUOTA,), (QUOTA, STATE), (QUOTA, STATE), (STATE,), (), ()):
            teller.take(build.result(unenforced=lapses))
    assert told == [
        ("LimitNotWritten", QUOTA.text, True),
        ("StateNotSaved", STATE.text, True),
        ("LimitsInForce", words(Reason.LIMITS_IN_FORCE), False),
    ]
    assert [line["log_level"] for line in logs] == ["error", "error", "info"]
