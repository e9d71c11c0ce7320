"""Which changes of a limit are news, and how often."""

from __future__ import annotations

import pytest

from agent.core.limit.limit_news import REST_SECONDS, NewsMemory, limit_news
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import UNLIMITED
from agent.core.observe.observation import Knob, KnobReading, Value
from model.decision import Decision, Term, Unit
from model.reason import Reason

QUOTA = Knob("/be", "", "cpu.max")
HIGH = Knob("/be", "", "memory.high")
CPUS = Knob("/be", "", "cpuset.cpus")
WEIGHT = Knob("/be", "", "cpu.weight")
PIDS = Knob("/be", "", "pids.max")

Step = tuple[Value, Reason]
OPEN: Step = (UNLIMITED, Reason.NODE_METRICS_MISSING)
CUT: Step = (400, Reason.QUOTA_LOWERED)
MOVED: Step = (500, Reason.QUOTA_RAISED)
RELIEF: Step = (100, Reason.ONLINE_SUFFERING)
RECOVERING: Step = (100, Reason.ONLINE_RECOVERING)
FOREIGN: Step = (50, Reason.FOREIGN_WRITER_TIGHTER)
UNREADABLE: Step = (UNLIMITED, Reason.KNOB_UNREADABLE)
OFF: Step = (UNLIMITED, Reason.SUPPRESSION_DISABLED)
HELD: Step = (1, Reason.WEIGHT_HELD)


def limit(knob: Knob, step: Step) -> Limit:
    value, reason = step
    number = value if isinstance(value, int) else 1
    return Limit(knob, value, Decision("cgroup/be", knob.file, number, Unit.WEIGHT, reason, (Term("x", number),)))


def news_of(
    knob: Knob, steps: tuple[Step, ...], apart_seconds: float = 1.0, reading: KnobReading | None = None
) -> list[str]:
    """The reasons that were told, one tick after the other."""
    memory, told = NewsMemory(), []
    for number, step in enumerate(steps):
        readings = {knob: reading} if reading else {}
        memory, news = limit_news(memory, [limit(knob, step)], readings, (), number * apart_seconds)
        told += [each.decision.reason.value for each in news]
    return told


CASES: dict[str, tuple[Knob, tuple[Step, ...], list[str]]] = {
    "nothing holds": (QUOTA, (OPEN, OPEN), []),
    "the first cut, and no move after it": (QUOTA, (OPEN, CUT, MOVED, CUT, MOVED), ["QuotaLowered"]),
    "relief as it begins": (QUOTA, (CUT, RELIEF, RELIEF, RECOVERING, MOVED), ["QuotaLowered", "OnlineSuffering"]),
    "another program": (QUOTA, (CUT, FOREIGN, FOREIGN, MOVED), ["QuotaLowered", "ForeignWriterTighter"]),
    "the end": (QUOTA, (CUT, OFF, OFF), ["QuotaLowered", "SuppressionDisabled"]),
    "the end of another program's": (QUOTA, (FOREIGN, OFF), ["ForeignWriterTighter", "SuppressionDisabled"]),
    "off from the start": (QUOTA, (OFF, OFF), []),
    "unreadable is told elsewhere": (QUOTA, (CUT, UNREADABLE, CUT), ["QuotaLowered"]),
    "a file found again where another program was": (
        QUOTA,
        (FOREIGN, UNREADABLE, FOREIGN),
        ["ForeignWriterTighter"],
    ),
    "memory": (HIGH, (OPEN, (9, Reason.MEMORY_ROOM), (8, Reason.MEMORY_ROOM)), ["MemoryRoom"]),
    "processes": (PIDS, (OPEN, (9, Reason.PIDS_SHARE), (8, Reason.PIDS_SHARE)), ["PidsShare"]),
    "CPUs": (CPUS, (("0-3", Reason.CPUS_NARROWED), ("0-4", Reason.CPUS_WIDENED)), ["CpusNarrowed"]),
    "the weight always holds": (WEIGHT, (HELD, HELD), []),
    "and may be another program's": (WEIGHT, (HELD, FOREIGN, HELD), ["ForeignWriterTighter"]),
}


@pytest.mark.parametrize(("knob", "steps", "expected"), CASES.values(), ids=CASES.keys())
def test_what_is_news(knob: Knob, steps: tuple[Step, ...], expected: list[str]) -> None:
    """A limit that begins, relieves, is another program's or ends."""
    assert news_of(knob, steps) == expected


@pytest.mark.parametrize(("apart", "expected"), [(REST_SECONDS / 4 - 0.1, 1), (REST_SECONDS / 4, 2)])
def test_the_same_news_rests(apart: float, expected: int) -> None:
    """A program that tightens again and again is told of once in ten minutes; what else happens is told all the same."""
    steps = (CUT, FOREIGN, MOVED, FOREIGN, MOVED, FOREIGN)
    told = news_of(QUOTA, steps, apart)
    assert told.count("ForeignWriterTighter") == expected and told.count("QuotaLowered") == 1


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        (KnobReading(400, None, None), ["QuotaLowered"]),
        (KnobReading(400, 400, UNLIMITED), []),
        # the machine was started again: the file says again what it said before us
        (KnobReading(UNLIMITED, None, UNLIMITED), ["QuotaLowered"]),
        (KnobReading(700, None, 700), ["QuotaLowered"]),
    ],
)
def test_a_limit_of_an_agent_before_this_one_is_none(reading: KnobReading, expected: list[str]) -> None:
    """A rolling update is no first cut on every node."""
    assert news_of(QUOTA, (CUT,), reading=reading) == expected


def test_a_write_that_failed_is_told_once_it_succeeds() -> None:
    """Until then the limit is not in force, which is said by another Event."""
    memory, first = limit_news(NewsMemory(), [limit(QUOTA, CUT)], {}, {QUOTA}, 0.0)
    _, second = limit_news(memory, [limit(QUOTA, MOVED)], {}, (), 1.0)
    assert first == () and [each.decision.reason for each in second] == [Reason.QUOTA_RAISED]


def test_only_another_program_is_a_warning() -> None:
    """That the agent does its work is none."""
    memory, first = limit_news(NewsMemory(), [limit(QUOTA, CUT)], {}, (), 0.0)
    _, second = limit_news(memory, [limit(QUOTA, FOREIGN)], {}, (), 1.0)
    assert [each.warning for each in (*first, *second)] == [False, True]
