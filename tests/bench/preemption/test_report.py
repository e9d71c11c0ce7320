"""Targets of preemptions."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.machine import Machine
from bench.preemption import report
from bench.preemption.benchmark import Preemption, Preemptions

MACHINE = Machine(2, "cpu", "6.1", "3.11", 0.5, {})


def measured(*found: Preemption) -> Preemptions:
    return Preemptions(MACHINE, found)


@pytest.mark.parametrize(
    ("found", "verdicts"),
    [
        ([Preemption(1.0, 5.0, on_notice=True)] * 50, ["met", "met"]),
        ([Preemption(1.0, 5.0, on_notice=True)] * 49 + [Preemption(6.0, 5.0, on_notice=False)], ["MISSED", "MISSED"]),
        ([], ["not measured", "not measured"]),
    ],
    ids=["all well", "one of fifty", "none"],
)
def test_targets(found: list[Preemption], verdicts: list[str]) -> None:
    assert [each.verdict.value for each in report.targets(measured(*found))] == verdicts


def test_what_is_written(tmp_path: Path) -> None:
    whole = measured(Preemption(1.0, 5.0, on_notice=True))
    report.save(whole, tmp_path / "sub" / "preemption.json")
    found = msgspec.json.decode((tmp_path / "sub" / "preemption.json").read_bytes(), type=report.PreemptionResults)
    assert found.measured == whole and [each[3] for each in found.targets] == ["met", "met"]
