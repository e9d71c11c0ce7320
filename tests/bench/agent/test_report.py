"""A missed target is called missed."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from bench.agent.observe import Cost, ReadingResult
from bench.agent.process import AgentResult
from bench.agent.report import Results, Target, save, show, targets
from bench.machine import Machine

MACHINE = Machine(2, "some CPU", "6.1", "3.11.7", 0.1, {"go": "go version go1.26"})


def reading(**costs: Cost) -> ReadingResult:
    found = {"ours": Cost(2.0, 3.0), "floor": Cost(1.6, 2.0), "go": Cost(8.0, 10.0), **costs}
    return ReadingResult(110, 1000, {"memory.stat": 1000}, found, {"plain": "left out"})


def agent(cpu_pct: float = 3.0, rss_mib: float = 80.0, late_ticks: int | None = 0) -> AgentResult:
    return AgentResult(250, 60.0, cpu_pct, rss_mib, 60, late_ticks, 0)


@pytest.mark.parametrize(
    ("measured", "limit", "met"),
    [(0.24, 0.25, True), (0.25, 0.25, True), (0.2501, 0.25, False)],
    ids=["below", "exactly", "just above"],
)
def test_a_target_is_met_up_to_its_limit(measured: float, limit: float, met: bool) -> None:
    """The limit itself still counts."""
    assert Target("x", measured, limit).met is met


def test_reading_targets_are_ratios_to_the_readers_that_ran() -> None:
    """2/8 and 3/10 of Go, 2/1.6 and 3/2 of the floor; plain Python did not run."""
    found = {
        target.name: (target.measured, target.limit, target.met) for target in targets(Results(MACHINE, (reading(),)))
    }
    assert found == {
        "110 pods, hot: ours / Go ReadFile": (0.25, 0.25, True),
        "110 pods, 1 Hz: ours / Go ReadFile": (0.3, 0.25, False),
        "110 pods, hot: ours / C floor": (1.25, 1.5, True),
        "110 pods, 1 Hz: ours / C floor": (1.5, 1.5, True),
    }


@pytest.mark.parametrize(
    ("result", "missed"),
    [
        (agent(), 0),
        (agent(cpu_pct=4.01), 1),
        (agent(rss_mib=85.1), 1),
        (agent(late_ticks=1), 1),
        (agent(late_ticks=None), 0),
    ],
    ids=["all met", "CPU", "memory", "late", "lateness unknown"],
)
def test_agent_targets(result: AgentResult, missed: int) -> None:
    """At most 4 % of a core, 85 MiB and no late tick."""
    assert sum(not target.met for target in targets(Results(MACHINE, agent=(result,)))) == missed


def test_the_tables_name_every_reader_and_say_missed(tmp_path: Path) -> None:
    """A reader that could not run is listed with its reason; the file reads back as it was."""
    results, text = Results(MACHINE, (reading(),), (agent(cpu_pct=5.0),)), io.StringIO()
    show(results, Console(file=text, width=100))
    shown = text.getvalue()
    assert "plain Python skipped: left out" in shown and "Go ReadFile" in shown
    assert [line.split()[-1] for line in shown.splitlines() if "% of a core" in line][-1] == "MISSED"
    save(results, tmp_path / "made" / "latest.json")
    assert msgspec.json.decode((tmp_path / "made" / "latest.json").read_bytes(), type=Results) == results
