"""Limit events: a sink of the tick that tells the Node's Events what became of best effort's own limits."""

from __future__ import annotations

import structlog

from agent.core.lend.unenforced import UnenforcedLimit
from agent.core.limit.limit_news import REST_SECONDS, NewsMemory, limit_news
from agent.ports import TickResult
from agent.report.sources import NodeEvent
from model.explain import sentence
from model.reason import Reason, words

log = structlog.get_logger()


class LimitEvents:
    """One Event and one line of the log for each limit that is not in force as it begins, one as the last of them ends.

    One names control files that are wanted and absent, one a pod that cannot have its CPUs. And an Event with the terms
    where a limit begins to hold, holds for pods that wait, is another program's, or ends; and where memory of
    best-effort pods is reclaimed, once in ten minutes.
    """

    def __init__(self, record: NodeEvent) -> None:
        self._record = record
        self._told: dict[tuple[str, Reason], UnenforcedLimit] = {}
        self._news = NewsMemory()
        self._shrinking_told: float | None = None
        self._absent: frozenset[str] = frozenset()
        self._not_given: frozenset[str] = frozenset()

    def take(self, result: TickResult) -> None:
        self._tell_news(result)
        self._tell_shrinking(result)
        self._tell_absent(frozenset(result.limits.absent_files))
        self._tell_not_given(result)
        found = {(limit.file, limit.reason): limit for limit in result.unenforced}
        for key, limit in found.items():
            if key not in self._told:
                log.error("a limit is not in force", file=limit.file, reason=limit.reason.value, text=limit.text)
                self._record(limit.reason.value, limit.text, warning=True)
        if self._told and not found:
            log.info("every limit is in force again")
            self._record(Reason.LIMITS_IN_FORCE.value, words(Reason.LIMITS_IN_FORCE), warning=False)
        self._told = found

    def _tell_shrinking(self, result: TickResult) -> None:
        now, told = result.observation.monotonic_seconds, self._shrinking_told
        shortage = next(iter(result.evictions.shrinking), None)
        if shortage is None or shortage.reason is not Reason.SHRINKING:
            return
        if told is None or now - told >= REST_SECONDS:
            self._shrinking_told = now
            self._record(shortage.reason.value, sentence(shortage), warning=False)

    def _tell_absent(self, absent: frozenset[str]) -> None:
        """Files that settings or pods ask for and this kernel does not have, each once."""
        new = sorted(absent - self._absent)
        if new:
            self._absent |= absent
            text = f"{words(Reason.KNOB_ABSENT)}: {', '.join(new)}"
            log.warning("control files are absent", files=new)
            self._record(Reason.KNOB_ABSENT.value, text, warning=True)

    def _tell_news(self, result: TickResult) -> None:
        """The log has every decision."""
        observation = result.observation
        failed = {outcome.write.knob for outcome in result.outcomes if outcome.error or outcome.dropped}
        self._news, news = limit_news(
            self._news, result.limits.of_all, observation.knobs, failed, observation.monotonic_seconds
        )
        for each in news:
            self._record(each.decision.reason.value, sentence(each.decision), warning=each.warning)

    def _tell_not_given(self, result: TickResult) -> None:
        """Once for a pod and what is in the way, however many containers it has."""
        found = frozenset(limit.decision.detail for limit in result.limits.not_given)
        for text in sorted(found - self._not_given):
            log.error("CPUs are not given", text=text)
            self._record(Reason.CPUS_NOT_GIVEN.value, f"{words(Reason.CPUS_NOT_GIVEN)}: {text}", warning=True)
        self._not_given = found
