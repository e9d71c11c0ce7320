"""Tables and targets of bench/react, and its JSON file."""

from __future__ import annotations

import os
from math import inf
from pathlib import Path
from statistics import median

import msgspec
from rich.console import Console

from bench.figures import ColocationTarget, Interval, interval
from bench.react.benchmark import MISSED_SECONDS, NOTICED_SHARE, WITH, WITHOUT, React, Reactions
from bench.react.restart import BEFORE, OURS, Restarts
from bench.tables import block
from local.demo.load import percentile

P99_SECONDS, TIMES_FASTER, COST_PCT = 0.25, 4.0, 1.0
"""What is wanted of the brake: the slowest, beside the tick alone, and what it costs of a core."""
START_CPU_SECONDS, START_TIMES_FASTER = 1.0, 4.0
_GUEST = "SUBLET_GUEST"
_RESTART_COLUMNS = ("", "restarts", "not seen", "p50 ms", "max ms", "CPU-s to the first tick")
_COLUMNS = ("", "surges", "not seen", "p50 ms", "p99 ms", "max ms", "agent %")


class ReactionResults(msgspec.Struct, frozen=True):
    """What is written: every delay, and what follows from them."""

    measured: React
    targets: tuple[tuple[str, float, float | None, str], ...]


def targets(measured: React, *, ratios_only: bool = False) -> list[ColocationTarget]:
    """An emulated machine's own times say nothing: there only how much faster is asked."""
    return [*_surge_targets(measured, ratios_only=ratios_only), *_restart_targets(measured, ratios_only=ratios_only)]


def _restart_targets(measured: React, *, ratios_only: bool) -> list[ColocationTarget]:
    sides = {side.name: side for side in measured.restarts}
    if not sides:
        return []
    ours, before = sides[OURS], sides[BEFORE]
    words = f"times faster restarted than {BEFORE}, p50"
    faster = ColocationTarget(words, _times(ours, before, 50), START_TIMES_FASTER, at_most=False)
    cpu = ColocationTarget(
        "CPU-seconds to the first tick", interval([max(ours.cpu_seconds, default=inf)]), START_CPU_SECONDS
    )
    return [faster] if ratios_only else [faster, cpu]


def _surge_targets(measured: React, *, ratios_only: bool) -> list[ColocationTarget]:
    sides = {side.name: side for side in measured.sides}
    ours, other = sides[WITH], sides[WITHOUT]
    found = [
        ColocationTarget(f"times faster than {WITHOUT}, {words}", _times(ours, other, pct), TIMES_FASTER, at_most=False)
        for words, pct in (("p50", 50.0), ("p99", 99.0))
    ]
    if ratios_only:
        return found
    cost = interval([ours.cpu_pct - other.cpu_pct])
    return [
        ColocationTarget("p99 from surge to cut, s", interval([delay(ours, 99)]), P99_SECONDS),
        *found,
        ColocationTarget("the brake's CPU time, % of a core", cost, COST_PCT),
    ]


def delay(side: Reactions | Restarts, pct: float) -> float | None:
    """Nearest-rank percentile in seconds; None where that surge was not answered."""
    found = percentile((inf if each is None else each for each in side.delays), pct)
    return None if found is None or found == inf else found


def _times(ours: Reactions | Restarts, other: Reactions | Restarts, pct: float) -> Interval | None:
    """Never answered is no speed at all on our side, and as slow as we looked on the other."""
    fast, slow = delay(ours, pct), delay(other, pct)
    if fast is None:
        return interval([0.0])
    return interval([(MISSED_SECONDS if slow is None else slow) / fast])


def show(measured: React, console: Console) -> None:
    machine = measured.machine
    console.print(f"{machine.cpus} CPUs {machine.cpu}, kernel {machine.kernel}, load {machine.load_1m:.2f} before")
    share = f"{NOTICED_SHARE:.0%} of the node"
    rows = [_row(side) for side in measured.sides]
    block(console, f"from a surge of all CPUs to best effort's ceiling lower by {share}", _COLUMNS, rows)
    if measured.restarts:
        heading = "from a surge as the agent starts again, on a node without idle CPU, to the first cut"
        block(console, heading, _RESTART_COLUMNS, [_restart_row(side) for side in measured.restarts])
    found = targets(measured, ratios_only=in_guest())
    listed = [[target.name, _told(target.measured), _bound(target), target.verdict.value] for target in found]
    block(console, "targets", ("", "measured", "", ""), listed)


def save(measured: React, path: Path) -> None:
    found = targets(measured, ratios_only=in_guest())
    told = tuple((t.name, t.limit, t.measured.middle if t.measured else None, t.verdict.value) for t in found)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(ReactionResults(measured, told)), indent=2) + b"\n")


def in_guest() -> bool:
    return bool(os.environ.get(_GUEST))


def _row(side: Reactions) -> list[str]:
    answered = [each for each in side.delays if each is not None]
    missed = len(side.delays) - len(answered)
    figures = (delay(side, 50), delay(side, 99), delay(side, 100))
    times = ["-" if value is None else f"{value * 1000:.0f}" for value in figures]
    return [side.name, str(len(side.delays)), str(missed), *times, f"{side.cpu_pct:.2f}"]


def _restart_row(side: Restarts) -> list[str]:
    missed = sum(each is None for each in side.delays)
    times = [f"{seconds * 1000:.0f}" if (seconds := delay(side, pct)) is not None else "-" for pct in (50, 100)]
    cpu = f"{median(side.cpu_seconds):.2f}" if side.cpu_seconds else "-"
    return [side.name, str(len(side.delays)), str(missed), *times, cpu]


def _told(found: Interval | None) -> str:
    return "-" if found is None or found.middle is None else f"{found.middle:.3f}"


def _bound(target: ColocationTarget) -> str:
    return f"{'<=' if target.at_most else '>='} {target.limit:g}"
