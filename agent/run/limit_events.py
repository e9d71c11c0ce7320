"""A sink of the tick that tells when limits of best effort are not in force, and when all of them are again."""

from __future__ import annotations

import structlog

from agent.core.lend.unenforced import UnenforcedLimit
from agent.ports import TickResult
from agent.report.sources import NodeEvent
from model.reason import Reason, words

log = structlog.get_logger()


class LimitEvents:
    """One Event and one line of the log for each such limit as it begins, one as the last of them ends."""

    def __init__(self, record: NodeEvent) -> None:
        self._record = record
        self._told: dict[tuple[str, Reason], UnenforcedLimit] = {}

    def take(self, result: TickResult) -> None:
        found = {(limit.file, limit.reason): limit for limit in result.unenforced}
        for key, limit in found.items():
            if key not in self._told:
                log.error("a limit is not in force", file=limit.file, reason=limit.reason.value, text=limit.text)
                self._record(limit.reason.value, limit.text, warning=True)
        if self._told and not found:
            log.info("every limit is in force again")
            self._record(Reason.LIMITS_IN_FORCE.value, words(Reason.LIMITS_IN_FORCE), warning=False)
        self._told = found
