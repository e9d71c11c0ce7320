"""Limit news: which changes of best effort's own limits a person is told of by an Event.

A limit that follows the load moves all day. What matters is that it begins to hold best effort, that it holds it for
online pods that wait for CPU, that another program holds it, and that it ends; each at most once in ten minutes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

import msgspec

from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import CPUSET_FILE, PIDS_FILE, UNLIMITED, is_memory_limit, is_quota
from agent.core.observe.observation import Knob, KnobReading
from model.decision import Decision
from model.reason import Reason

REST_SECONDS = 600.0
_FREE = (Reason.KNOB_RELEASED, Reason.SUPPRESSION_DISABLED)


class LimitStage(StrEnum):
    """What holds best effort by one control file: nobody, the agent, the agent for pods that wait, another program."""

    FREE = "free"
    LIMITED = "limited"
    RELIEF = "relief"
    FOREIGN = "foreign"


class NewsMemory(msgspec.Struct, frozen=True):
    """What one tick must know of the one before: each limit's stage, and when a stage was told last (monotonic)."""

    stages: Mapping[Knob, LimitStage] = {}
    told: Mapping[tuple[Knob, LimitStage], float] = {}


class LimitNews(msgspec.Struct, frozen=True):
    """The limit's decision with its terms; `warning` where another program holds it."""

    decision: Decision
    warning: bool


def limit_news(
    memory: NewsMemory,
    limits: Iterable[Limit],
    readings: Mapping[Knob, KnobReading],
    failed: Collection[Knob],
    monotonic_seconds: float,
) -> tuple[NewsMemory, tuple[LimitNews, ...]]:
    """News of the best-effort root's `limits`; one that `failed` to be written is in no new stage.

    A limit that was ours before this agent began is none.
    """
    stages, found = dict(memory.stages), []
    told = {key: at for key, at in memory.told.items() if monotonic_seconds - at < REST_SECONDS}
    for limit in limits:
        knob = limit.knob
        before = stages[knob] if knob in stages else _at_first(knob, readings.get(knob))
        now = before if knob in failed else _stage(limit, before)
        stages[knob] = now
        if now is not before and _matters(before, now) and (knob, now) not in told:
            told[knob, now] = monotonic_seconds
            found.append(LimitNews(limit.decision, warning=now is LimitStage.FOREIGN))
    return NewsMemory(stages, told), tuple(found)


def _at_first(knob: Knob, reading: KnobReading | None) -> LimitStage:
    """Where an agent before this one wrote the file, its original is known. Weight, period and idle always hold."""
    if not _is_amount(knob):
        return LimitStage.LIMITED
    if reading is None or reading.original is None or reading.kernel in (UNLIMITED, reading.original):
        return LimitStage.FREE
    return LimitStage.LIMITED


def _stage(limit: Limit, before: LimitStage) -> LimitStage:
    reason = limit.decision.reason
    if reason in _FREE:
        return LimitStage.FREE
    if reason is Reason.FOREIGN_WRITER_TIGHTER:
        return LimitStage.FOREIGN
    if reason is Reason.ONLINE_SUFFERING or (reason is Reason.ONLINE_RECOVERING and before is LimitStage.RELIEF):
        return LimitStage.RELIEF
    if reason is Reason.KNOB_UNREADABLE:
        return before
    return LimitStage.FREE if _is_amount(limit.knob) and limit.value == UNLIMITED else LimitStage.LIMITED


def _is_amount(knob: Knob) -> bool:
    return is_quota(knob) or is_memory_limit(knob) or knob.file in (CPUSET_FILE, PIDS_FILE)


def _matters(before: LimitStage, now: LimitStage) -> bool:
    """That relief or another program ended leaves the agent's own limit, which is no news."""
    return now in (LimitStage.RELIEF, LimitStage.FOREIGN, LimitStage.FREE) or before is LimitStage.FREE
