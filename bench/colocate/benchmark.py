"""bench/colocate: a service beside batch work, with and without agents, in turns until enough runs are clean."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import psutil

from bench.colocate.cluster import Cluster
from bench.colocate.loads import Programs
from bench.colocate.rows import ALL_ROWS, Row, kinds_of
from bench.colocate.run import Stage, attempt
from bench.figures import Run, lacking, rotated
from bench.hierarchies import Hierarchies
from bench.machine import Machine, this_machine


class Effort(msgspec.Struct, frozen=True):
    """How much is measured: `runs` clean ones of each row and kind, each `seconds` long.

    A dirty run is repeated while the whole has taken less than `minutes`.
    """

    runs: int = 5
    seconds: float = 6.0
    settle_seconds: float = 13.0
    minutes: float = 20.0


QUICK = Effort(runs=1, seconds=4.0, settle_seconds=3.0, minutes=0.0)


class Colocation(msgspec.Struct, frozen=True):
    """Everything that was measured, dirty runs too."""

    machine: Machine
    effort: Effort
    rows: tuple[str, ...]
    runs: tuple[Run, ...]


def measure_colocation(hierarchies: Hierarchies, rows: Sequence[Row], effort: Effort) -> Colocation:
    """Raises a Fault where a program or a cgroup does not come up."""
    machine = this_machine()
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as name:
        runs = asyncio.run(_measure(Path(name), hierarchies, rows, effort))
    return Colocation(machine, effort, tuple(row.name for row in rows), tuple(runs))


async def _measure(folder: Path, hierarchies: Hierarchies, rows: Sequence[Row], effort: Effort) -> list[Run]:
    programs, cpus, begun = Programs(folder), psutil.cpu_count() or 1, time.monotonic()
    wanted = {row.name: tuple(kind.name for kind in kinds_of(row)) for row in rows}
    runs: list[Run] = []
    async with Cluster.started(folder / "run", cpus) as cluster:
        rounds = programs.rounds_per_ms()
        stage = Stage(hierarchies, programs, cluster, folder, cpus, rounds, effort.seconds, effort.settle_seconds)
        turn = 0
        while due := lacking(runs, wanted, effort.runs):
            if turn >= effort.runs and time.monotonic() - begun > effort.minutes * 60:
                break
            for row in rotated(due, turn):
                found = await attempt(stage, ALL_ROWS[row], turn)
                runs += found
                _tell(found)
            turn += 1
    return runs


def _tell(runs: Sequence[Run]) -> None:
    for run in runs:
        p99 = "none" if run.p99_us is None else f"{run.p99_us / 1000:.2f} ms"
        state = "" if run.clean else f", dirty: {run.foreign_pct:.1f} % used by others"
        print(f"bench: {run.row} {run.kind} {run.attempt}: p99 {p99}{state}", file=sys.stderr, flush=True)
