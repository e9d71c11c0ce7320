"""Table and targets of bench/preemption, and its JSON file."""

from __future__ import annotations

from pathlib import Path

import msgspec
from rich.console import Console

from bench.figures import ColocationTarget, Interval, interval
from bench.preemption.benchmark import Preemptions
from bench.tables import block
from local.demo.load import percentile

LOST_SECONDS, ON_NOTICE_PCT = 5.0, 99.0
"""What is wanted: training lost by one of a hundred, and how many go on from what was saved for the notice."""


class PreemptionResults(msgspec.Struct, frozen=True):
    """What is written: every preemption, and what follows from them."""

    measured: Preemptions
    targets: tuple[tuple[str, float, float | None, str], ...]


def targets(measured: Preemptions) -> list[ColocationTarget]:
    """Both of the issue's goals."""
    lost = percentile((each.lost for each in measured.found), 99)
    share = 100.0 * sum(each.on_notice for each in measured.found) / len(measured.found) if measured.found else None
    return [
        ColocationTarget("training lost by a preemption, p99, s", _alone(lost), LOST_SECONDS),
        ColocationTarget("go on from a checkpoint of the notice, %", _alone(share), ON_NOTICE_PCT, at_most=False),
    ]


def show(measured: Preemptions, console: Console) -> None:
    """To a person."""
    machine = measured.machine
    console.print(f"{machine.cpus} CPUs {machine.cpu}, kernel {machine.kernel}, load {machine.load_1m:.2f} before")
    columns = ("", "preemptions", "p50 s", "p99 s", "max s")
    sides = {"training lost": [each.lost for each in measured.found], "until it ran again": _down(measured)}
    block(console, "a job of two workers that saves on notice alone", columns, [_row(*side) for side in sides.items()])
    listed = [
        [each.name, _told(each), f"{'<=' if each.at_most else '>='} {each.limit:g}", each.verdict.value]
        for each in targets(measured)
    ]
    block(console, "targets", ("", "measured", "", ""), listed)


def save(measured: Preemptions, path: Path) -> None:
    """As JSON."""
    told = tuple(
        (each.name, each.limit, each.measured.middle if each.measured else None, each.verdict.value)
        for each in targets(measured)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(PreemptionResults(measured, told)), indent=2) + b"\n")


def _down(measured: Preemptions) -> list[float]:
    return [each.down for each in measured.found]


def _row(name: str, seconds: list[float]) -> list[str]:
    figures = (percentile(seconds, pct) for pct in (50, 99, 100))
    return [name, str(len(seconds)), *("-" if each is None else f"{each:.2f}" for each in figures)]


def _alone(value: float | None) -> Interval | None:
    return None if value is None else interval([value])


def _told(target: ColocationTarget) -> str:
    return "-" if target.measured is None or target.measured.middle is None else f"{target.measured.middle:.2f}"
