"""The trace of a ceiling, and what counts as faster."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from bench.figures import ClaimVerdict
from bench.machine import Machine
from bench.plot import available, plot_reaction
from bench.react.benchmark import WITH, WITHOUT, React, Reactions
from bench.react.report import delay, save, show, targets
from bench.react.restart import BEFORE, OURS, Restarts
from bench.react.trace import CeilingTrace, quota_of

MACHINE = Machine(2, "some CPU", "6.1", "3.11.7", 0.1, {})


class Lines:
    """Says the given lines, then nothing more."""

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)

    def line(self) -> str:
        return self._lines.pop(0)

    def line_within(self, seconds: float) -> str | None:
        return self._lines.pop(0) if self._lines else None


def measured(ours: Sequence[float | None], other: Sequence[float | None], cpu_pct: float = 0.5) -> React:
    return React(MACHINE, (Reactions(WITH, tuple(ours), cpu_pct), Reactions(WITHOUT, tuple(other), 0.3)))


@pytest.mark.parametrize(
    ("text", "quota"),
    [("-1", None), ("max 100000", None), ("190000", 190_000), ("190000 100000", 190_000)],
    ids=["v1 unlimited", "v2 unlimited", "v1", "v2"],
)
def test_both_versions_are_read(text: str, quota: int | None) -> None:
    """Microseconds in a period of 100 ms."""
    assert quota_of(text) == quota


def test_a_small_step_is_no_reaction() -> None:
    """The ceiling follows other work too: the time is that of the first change down to the wanted share."""
    trace = CeilingTrace(Lines("10 -1", "20 190000", "30 186000", "40 120000", "50 2000"), 2)  # type: ignore[arg-type]
    assert trace.unlimited and trace.share == 1.0
    assert trace.below(0.9, 1.0) == 40 and trace.share == 0.6
    trace.follow(0)
    assert trace.share == 0.01 and trace.below(0.001, 0.0) is None


@pytest.mark.parametrize(
    ("delays", "pct", "expected"),
    [
        ([0.1, 0.2, 0.3], 50, 0.2),
        ([0.1, 0.2, None], 50, 0.2),
        ([0.1, 0.2, None], 99, None),
        ([], 50, None),
    ],
    ids=["median", "one unanswered", "it is the slowest", "none at all"],
)
def test_a_surge_without_an_answer_is_the_slowest(
    delays: list[float | None], pct: float, expected: float | None
) -> None:
    """It is not left out."""
    assert delay(Reactions("x", tuple(delays), 0.0), pct) == expected


@pytest.mark.parametrize(
    ("result", "missed"),
    [
        (measured([0.1, 0.2], [0.5, 1.0]), []),
        (measured([0.1, 0.26], [0.5, 1.1]), ["p99 from surge to cut, s"]),
        (measured([0.2, 0.2], [0.7, 1.0]), ["times faster than tick only, p50"]),
        (measured([0.1, 0.2], [0.5, 1.0], cpu_pct=1.4), ["the brake's CPU time, % of a core"]),
        (
            measured([None, None], [0.5, 1.0]),
            ["p99 from surge to cut, s", "times faster than tick only, p50", "times faster than tick only, p99"],
        ),
        (measured([0.1, 0.1], [None, None]), []),
    ],
    ids=["all met", "slow", "not faster", "dear", "never", "the other never"],
)
def test_targets(result: React, missed: list[str]) -> None:
    """250 ms, four times faster, one percent of a core."""
    assert [target.name for target in targets(result) if target.verdict is ClaimVerdict.MISSED] == missed


def test_an_emulated_machine_is_asked_for_ratios_only() -> None:
    """Its own times say nothing."""
    found = targets(measured([1.0], [9.0]), ratios_only=True)
    assert [target.verdict for target in found] == [ClaimVerdict.MET, ClaimVerdict.MET]


def restarted(ours: float | None, before: float | None, cpu_seconds: float) -> React:
    sides = (Restarts(OURS, (ours,), (cpu_seconds,)), Restarts(BEFORE, (before,), (2.0,)))
    return msgspec.structs.replace(measured([0.1], [0.9]), restarts=sides)


FASTER, FIRST_TICK = f"times faster restarted than {BEFORE}, p50", "CPU-seconds to the first tick"


@pytest.mark.parametrize(
    ("result", "missed"),
    [
        (restarted(1.0, 30.0, 0.4), []),
        (restarted(10.0, 30.0, 0.4), [FASTER]),
        (restarted(None, 30.0, 0.4), [FASTER]),
        (restarted(1.0, None, 1.4), [FIRST_TICK]),
    ],
    ids=["all met", "not faster", "never", "dear"],
)
def test_targets_of_restarts(result: React, missed: list[str]) -> None:
    """Four times faster than an agent that loads everything first, below a CPU-second."""
    assert [target.name for target in targets(result) if target.verdict is ClaimVerdict.MISSED] == missed


def test_restarts_are_shown() -> None:
    """Each side with its times and the CPU time of its start."""
    text = io.StringIO()
    show(restarted(1.0, None, 0.4), Console(file=text, width=120))
    lines = text.getvalue().splitlines()
    assert any(line.split()[-5:] == ["1", "0", "1000", "1000", "0.40"] for line in lines)
    assert any(line.split()[-5:] == ["1", "1", "-", "-", "2.00"] for line in lines)


def test_tables_and_files(tmp_path: Path) -> None:
    """Both sides, with what they did not see."""
    result, text = measured([0.1, None], [0.5, 1.0]), io.StringIO()
    show(result, Console(file=text, width=100))
    lines = [line.split() for line in text.getvalue().splitlines()]
    assert ["brake", "2", "1", "100", "-", "-", "0.50"] in lines
    save(result, tmp_path / "react.json")
    assert '"delays"' in (tmp_path / "react.json").read_text()
    if available():
        plot_reaction(result, tmp_path / "react.svg")
        assert (tmp_path / "react.svg").exists()
