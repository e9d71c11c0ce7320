"""Tables of bench/simulated, and its JSON file."""

from __future__ import annotations

from pathlib import Path

import msgspec
from rich.console import Console

from bench.simulated.benchmark import Simulated
from bench.simulated.kueue_scenarios import PUBLISHED_SECONDS
from bench.simulated.philly_estimates import Errors
from bench.tables import block

WIDTH = 132
RATIO, ERROR = 1.1, 0.3
"""Targets: a scenario without a cap, by its bound; the middle error of estimates, as a part of the wait."""


def show(measured: Simulated, console: Console) -> None:
    """What was measured, with `met` or `MISSED` beside a target."""
    block(
        console,
        f"workloads in simulated time (Kueue's own: {PUBLISHED_SECONDS:g} s at 50 writes a second)",
        (
            "scenario",
            "workloads",
            "cap",
            "bound s",
            "took s",
            "x bound",
            "evictions",
            "lost CPU s",
            "turn ms",
            "longest",
        ),
        [
            (
                each.name,
                f"{each.workloads:,}",
                "none" if each.writes_per_second is None else f"{each.writes_per_second:g}/s",
                f"{each.bound_seconds:.1f}",
                f"{each.seconds:.1f}",
                f"{each.ratio:.2f}{_verdict(each.ratio, RATIO) if each.writes_per_second is None else ''}",
                f"{each.evictions:,}",
                f"{each.lost_seconds:.0f}",
                f"{each.turn_ms:.1f}",
                f"{each.longest_turn_ms:.0f}",
            )
            for each in measured.scenarios
        ],
    )
    block(
        console,
        "error of expected starts, as a part of the whole wait: quartiles",
        ("trace", "jobs", "waited", "answers", "unknown", "25 %", "50 %", "75 %", "within 30 %"),
        [
            (f"{each.name}, {label}", f"{each.jobs:,}", f"{each.waited:,}", *_errors(errors, first=label != "constant"))
            for each in measured.estimates
            for label, errors in (("each round", each.all), ("first answer", each.first), ("constant", each.constant))
        ],
    )
    for line in measured.skipped:
        console.print(f"skipped: {line}")


def save(measured: Simulated, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(measured), indent=2) + b"\n")


def _errors(found: Errors, *, first: bool) -> tuple[str, ...]:
    told = f"{found.median:.0%}{_verdict(found.median, ERROR) if first else ''}"
    return (
        f"{found.answers:,}",
        f"{found.unknown:,}",
        f"{found.lower:.0%}",
        told,
        f"{found.upper:.0%}",
        f"{found.within:.0%}",
    )


def _verdict(measured: float, limit: float) -> str:
    return " met" if measured <= limit else " MISSED"
