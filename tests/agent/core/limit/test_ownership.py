"""Foreign writers are told apart: looser is undone, tighter respected until it is taken back."""

from __future__ import annotations

import pytest

from agent.core.limit.ownership import Ownership, QuotaCap, gives_more, left_to_us, looser, ownership
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import RootKnobs
from agent.core.observe.layout import CgroupDriver, Layout
from agent.core.observe.observation import Absence, Knob, KnobReading, Missing, Value
from model.decision import Decision, Term, Unit
from model.reason import Reason
from model.topology import parse_cpus

V1 = RootKnobs.of(Layout("/kubepods"))
V2 = RootKnobs.of(Layout("/kubepods.slice", 2, CgroupDriver.SYSTEMD))
MEMORY = Knob("/kubepods/besteffort/podx", "memory", "memory.limit_in_bytes")
BATCH_IDENTITY = Knob("/kubepods/besteffort/podx", "cpu", "cpu.bvt_warp_ns")
ONLINE_IDENTITY = Knob("/kubepods/burstable/podx", "cpu", "cpu.bvt_warp_ns")
BATCH_SCORE = Knob("/kubepods/besteffort/podx/c", "memory", "oom_score_adj")
ONLINE_SCORE = Knob("/kubepods/burstable/podx/c", "memory", "oom_score_adj")
GONE = Missing("/kubepods/besteffort/podx", Absence.GONE, "no such file")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (-1, 5, True),
        (5, -1, False),
        (6, 5, True),
        (5, 6, False),
        (5, 5, False),
        (-1, -1, False),
        ("0-1", "0", True),
        ("0", "0-1", False),
        ("0", "1", True),
        ("1", "0", True),
        ("0-1", "0-1", False),
        ("", "0", False),
    ],
)
def test_looser(one: Value, other: Value, expected: bool) -> None:
    """-1 is no limit at all; one CPU more is more, whatever is missing beside it."""
    assert looser(one, other) is expected


@pytest.mark.parametrize(
    ("knob", "one", "other", "expected"),
    [
        (V1.quota, 6, 5, True),
        (V1.idle, 0, 1, True),
        (V1.idle, 1, 0, False),
        (V1.cpuset, "", "0", False),
        (V2.cpuset, "", "0", True),
        (V2.cpuset, "0", "", False),
        (V2.cpuset, "", "", False),
        (BATCH_IDENTITY, 0, -1, True),
        (BATCH_IDENTITY, -1, 0, False),
        (ONLINE_IDENTITY, 2, 0, False),
        (ONLINE_IDENTITY, -1, 0, True),
        (ONLINE_IDENTITY, 2, 2, False),
        (BATCH_SCORE, 999, 1000, True),
        (BATCH_SCORE, 1000, 999, False),
        (ONLINE_SCORE, 200, -997, True),
        (ONLINE_SCORE, -1, 0, False),
    ],
)
def test_gives_more(knob: Knob, one: Value, other: Value, expected: bool) -> None:
    """Not idle is more than idle; a lower score is safer; a lower identity gives an online pod less, a higher one best effort more; a v2 cgroup without CPUs of its own has its parent's, a v1 one has none."""
    assert gives_more(knob, one, other) is expected


STANDINGS: dict[str, tuple[KnobReading, QuotaCap, QuotaCap, Ownership]] = {
    "first tick adopts the kernel's value": (KnobReading(80), QuotaCap(), QuotaCap(), Ownership(80)),
    "ours is still there": (KnobReading(80, 80), QuotaCap(), QuotaCap(), Ownership(80, ours=True)),
    "loosened beyond the cap: nobody holds it any more": (
        KnobReading(-1, 80),
        QuotaCap(70),
        QuotaCap(),
        Ownership(80, None, loosened=True, ours=True),
    ),
    "loosened within the cap: that is the cap now": (
        KnobReading(60, 50),
        QuotaCap(70),
        QuotaCap(60),
        Ownership(50, 60, loosened=True, ours=True),
    ),
    "somebody tightened it": (KnobReading(60, 80), QuotaCap(), QuotaCap(60), Ownership(60, 60)),
    "a foreign cap stays in force": (
        KnobReading(50, 50),
        QuotaCap(60),
        QuotaCap(60),
        Ownership(50, 60, ours=True),
    ),
    "our old value again is looser than the cap": (
        KnobReading(80, 80),
        QuotaCap(60),
        QuotaCap(),
        Ownership(80, ours=True),
    ),
    "unreadable remembers": (KnobReading(GONE, 80), QuotaCap(60), QuotaCap(60), Ownership(GONE, 60, ours=True)),
}


@pytest.mark.parametrize(("reading", "before", "after", "expected"), STANDINGS.values(), ids=STANDINGS.keys())
def test_standing(reading: KnobReading, before: QuotaCap, after: QuotaCap, expected: Ownership) -> None:
    """Looser than ours is undone, tighter is respected from then on."""
    assert ownership(reading, before) == (after, expected)


def limit(knob: Knob, value: Value, reason: Reason = Reason.BATCH_RESOURCES) -> Limit:
    number = len(parse_cpus(value)) if isinstance(value, str) else value
    decision = Decision(knob.subject, knob.file, number, Unit.SHARES, reason, (Term("wish", number),))
    return Limit(knob, value, decision)


SETTLED: dict[str, tuple[Limit, KnobReading, Value | None, Value | None, Value, Reason]] = {
    "never written by us: ours wins": (limit(MEMORY, 9), KnobReading(5), None, None, 9, Reason.BATCH_RESOURCES),
    "ours is still there": (limit(MEMORY, 9), KnobReading(9, 9), None, None, 9, Reason.BATCH_RESOURCES),
    "our wish changed": (limit(MEMORY, 7), KnobReading(9, 9), None, None, 7, Reason.BATCH_RESOURCES),
    "somebody loosened it": (
        limit(MEMORY, 9),
        KnobReading(-1, 9),
        None,
        None,
        9,
        Reason.FOREIGN_WRITER_LOOSENED,
    ),
    "somebody tightened it": (limit(MEMORY, 9), KnobReading(5, 9), None, 5, 5, Reason.FOREIGN_WRITER_TIGHTER),
    "to another value than before us": (
        limit(MEMORY, 9),
        KnobReading(5, 9, 4),
        None,
        5,
        5,
        Reason.FOREIGN_WRITER_TIGHTER,
    ),
    "something reset it to what it was before us": (
        limit(MEMORY, 9),
        KnobReading(5, 9, 5),
        None,
        None,
        9,
        Reason.BATCH_RESOURCES,
    ),
    "a reset does not end a cap that is looser": (
        limit(MEMORY, 9),
        KnobReading(2, 5, 2),
        5,
        5,
        5,
        Reason.FOREIGN_WRITER_TIGHTER,
    ),
    "we may go below the cap": (limit(MEMORY, 4), KnobReading(5, 5), 5, 5, 4, Reason.BATCH_RESOURCES),
    "the cap holds when we wish more again": (
        limit(MEMORY, 9),
        KnobReading(4, 4),
        5,
        5,
        5,
        Reason.FOREIGN_WRITER_TIGHTER,
    ),
    "the cap was taken back": (limit(MEMORY, 9), KnobReading(8, 4), 5, None, 9, Reason.FOREIGN_WRITER_LOOSENED),
    "no limit is capped too": (limit(MEMORY, -1), KnobReading(5, -1), None, 5, 5, Reason.FOREIGN_WRITER_TIGHTER),
    "CPUs both name": (
        limit(V1.cpuset, "0-3"),
        KnobReading("2-3", "0-3"),
        None,
        "2-3",
        "2-3",
        Reason.FOREIGN_WRITER_TIGHTER,
    ),
    "CPUs of the cap among others": (
        limit(V1.cpuset, "3-5"),
        KnobReading("2-3", "2-3"),
        "2-3",
        "2-3",
        "3",
        Reason.FOREIGN_WRITER_TIGHTER,
    ),
    "nothing in common with the cap: ours, which keeps clear of online CPUs": (
        limit(V1.cpuset, "4-5"),
        KnobReading("2-3", "2-3"),
        "2-3",
        "2-3",
        "4-5",
        Reason.BATCH_RESOURCES,
    ),
    "a foreign CPU is undone": (
        limit(V1.cpuset, "0-1"),
        KnobReading("2", "0-1"),
        None,
        None,
        "0-1",
        Reason.FOREIGN_WRITER_LOOSENED,
    ),
    "a v2 list that was emptied is all CPUs": (
        limit(V2.cpuset, "0-1"),
        KnobReading("", "0-1"),
        None,
        None,
        "0-1",
        Reason.FOREIGN_WRITER_LOOSENED,
    ),
    "what is in use already comes down": (
        limit(MEMORY, 7, Reason.IN_USE_ALREADY),
        KnobReading(9, 9),
        None,
        None,
        7,
        Reason.IN_USE_ALREADY,
    ),
    "what is in use already never goes up": (
        limit(MEMORY, 12, Reason.IN_USE_ALREADY),
        KnobReading(9, 9),
        None,
        None,
        9,
        Reason.IN_USE_ALREADY,
    ),
    "unreadable": (limit(MEMORY, 9), KnobReading(GONE, 9), 5, 5, 9, Reason.KNOB_UNREADABLE),
}


@pytest.mark.parametrize(
    ("wish", "reading", "before", "after", "value", "reason"), SETTLED.values(), ids=SETTLED.keys()
)
def test_settled(
    wish: Limit, reading: KnobReading, before: Value | None, after: Value | None, value: Value, reason: Reason
) -> None:
    """The rule for every knob but the quota; the decision's terms still make its value."""
    cap, found = left_to_us(wish, reading, before)
    assert (cap, found.value, found.decision.reason) == (after, value, reason)
    assert found.decision.value == (len(parse_cpus(found.value)) if isinstance(found.value, str) else found.value)


def test_settled_twice_is_settled() -> None:
    """A cap stays until the kernel holds something looser: yielding does not wear off."""
    cap, found = left_to_us(limit(MEMORY, 9), KnobReading(5, 9), None)
    assert left_to_us(limit(MEMORY, 9), KnobReading(5, 9), cap) == (cap, found)
