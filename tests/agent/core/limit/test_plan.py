"""Writes follow from limits and readings: few, explained, and with the original that counts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.core.limit.plan import Write, plan
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import cpu_qos_knob, cpuset_knob, pids_knob, quota_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, Knob, KnobReading, Missing, Value
from model.decision import Decision, Term, Unit
from model.reason import Reason
from model.topology import parse_cpus

LAYOUT = Layout("/kubepods")
ROOT = cpuset_knob(LAYOUT, "/kubepods/besteffort")
POD = cpuset_knob(LAYOUT, "/kubepods/besteffort/podx")


def limit(knob: Knob, value: Value, reason: Reason = Reason.QUOTA_LOWERED, inherits: Knob | None = None) -> Limit:
    number = len(parse_cpus(value)) if isinstance(value, str) else value
    decision = Decision(knob.subject, knob.file, number, Unit.MICROSECONDS, reason, (Term("x", number),))
    return Limit(knob, value, decision, inherits)


def test_a_write_says_what_it_changes_and_why() -> None:
    """What the kernel holds already is not written."""
    first, second = quota_knob(LAYOUT, "/a"), quota_knob(LAYOUT, "/b")
    wanted = {first: limit(first, 5), second: limit(second, 7)}
    writes = plan(wanted, {first: KnobReading(9), second: KnobReading(7)})
    assert writes == (Write(first, 5, 9, wanted[first].decision),) and not writes[0].widens


@pytest.mark.parametrize(
    ("reason", "kernel"),
    [
        (Reason.KNOB_UNREADABLE, 9),
        (Reason.QUOTA_LOWERED, Missing("/a", Absence.GONE)),
        (Reason.QUOTA_LOWERED, None),
    ],
    ids=["not understood", "gone", "not read this time"],
)
def test_what_was_not_read_is_not_written(reason: Reason, kernel: Value | Missing | None) -> None:
    """Nor is what could not be decided."""
    knob = quota_knob(LAYOUT, "/a")
    readings = {} if kernel is None else {knob: KnobReading(kernel)}
    assert plan({knob: limit(knob, 5, reason)}, readings) == ()


def test_what_is_given_back() -> None:
    """With its last write; without one where the file holds the value already, which may be another text."""
    pids, high = pids_knob(LAYOUT, "/a"), pids_knob(LAYOUT, "/b")
    wanted = {knob: replace(limit(knob, -1), gives_back=True) for knob in (pids, high)}
    wanted[ROOT] = replace(limit(ROOT, "2-3"), gives_back=True)
    readings = {pids: KnobReading(9, 9, -1), high: KnobReading(-1, 9, -1), ROOT: KnobReading("0-1", "0-1", "2-3")}
    found = [(write.knob, write.value, write.gives_back) for write in plan(wanted, readings)]
    assert found == [(ROOT, "0-3", False), (ROOT, "2-3", True), (pids, -1, True), (high, -1, True)]
    assert plan(wanted, {}) == (), "what was not read keeps its original"


ORIGINALS: dict[str, tuple[KnobReading, KnobReading, Value | None]] = {
    "born with our list: the parent's original": (KnobReading("0-1", "0-1", "0-3"), KnobReading("0-1"), "0-3"),
    "its own list": (KnobReading("0-1", "0-1", "0-3"), KnobReading("0-2"), None),
    "the parent was never ours": (KnobReading("0-1"), KnobReading("0-1"), None),
    "still empty": (KnobReading("0-1", "0-1", "0-3"), KnobReading(""), "0-3"),
    "still empty, and the parent was never ours": (KnobReading("0-3"), KnobReading(""), "0-3"),
}


@pytest.mark.parametrize(("root", "pod", "original"), ORIGINALS.values(), ids=ORIGINALS.keys())
def test_the_original_of_a_child(root: KnobReading, pod: KnobReading, original: Value | None) -> None:
    """A cgroup that was made while best effort was confined never held anything but our list."""
    wanted = {ROOT: limit(ROOT, "0"), POD: limit(POD, "0", inherits=ROOT)}
    assert {write.original for write in plan(wanted, {ROOT: root, POD: pod}) if write.knob == POD} == {original}


INHERITED: dict[str, tuple[KnobReading, KnobReading, list[tuple[int, int | None]]]] = {
    "born with the value": (KnobReading(2, 2, 0), KnobReading(2), [(2, 0)]),
    "it was written before": (KnobReading(2, 2, 0), KnobReading(2, 2, 0), []),
    "born with another": (KnobReading(2, 2, 0), KnobReading(1), [(2, None)]),
    "nobody knows what its parent was": (KnobReading(2), KnobReading(2), []),
}


@pytest.mark.parametrize(("parent", "own", "expected"), INHERITED.values(), ids=INHERITED)
def test_what_a_cgroup_is_born_with(
    parent: KnobReading, own: KnobReading, expected: list[tuple[int, int | None]]
) -> None:
    """It is written once, with what its parent was before us: nothing else would give it back."""
    above = cpu_qos_knob(LAYOUT, "/kubepods/podx", "cpu.bvt_warp_ns")
    below = cpu_qos_knob(LAYOUT, "/kubepods/podx/c", "cpu.bvt_warp_ns")
    wanted = {above: limit(above, 2), below: limit(below, 2, inherits=above)}
    found = plan(wanted, {above: parent, below: own})
    assert [(write.value, write.original) for write in found if write.knob == below] == expected
