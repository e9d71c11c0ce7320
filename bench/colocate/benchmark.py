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

from bench.colocate.cluster import BenchCluster
from bench.colocate.loads import Programs
from bench.colocate.rows import ColocationRow, RequestKind, at_rate, kinds_of
from bench.colocate.run import ColocationSetup, attempt
from bench.figures import ColocationRun, lacking, rotated
from bench.hierarchies import Hierarchies
from bench.machine import Machine, this_machine


class ColocationEffort(msgspec.Struct, frozen=True):
    """How much is measured: `runs` clean ones of each row and kind, each `seconds` long.

    A dirty run is repeated while the whole has taken less than `minutes`. `rate` is how many requests a second for
    each CPU, None: as many as each kind says.
    """

    runs: int = 5
    seconds: float = 6.0
    settle_seconds: float = 13.0
    minutes: float = 20.0
    rate: float | None = None


QUICK = ColocationEffort(runs=1, seconds=4.0, settle_seconds=3.0, minutes=0.0)


class ColocationResult(msgspec.Struct, frozen=True):
    """Everything that was measured, dirty runs too."""

    machine: Machine
    effort: ColocationEffort
    rows: tuple[str, ...]
    runs: tuple[ColocationRun, ...]
    titles: dict[str, str] = {}

    def title(self, row: str) -> str:
        return self.titles.get(row, row)

    def rows_with(self, kind: str) -> list[str]:
        """Rows that were run with these requests."""
        run = {each.row for each in self.runs if each.kind == kind}
        return [name for name in self.rows if name in run]


class _Work(msgspec.Struct, frozen=True):
    """The rows, with the kinds of requests of each."""

    rows: dict[str, ColocationRow]
    kinds: dict[str, tuple[RequestKind, ...]]


def measure_colocation(
    hierarchies: Hierarchies,
    rows: Sequence[ColocationRow],
    effort: ColocationEffort,
    servers: Sequence[RequestKind] = (),
) -> ColocationResult:
    """Requests to our own service, or to `servers`. Raises a Fault where a program or a cgroup does not come up."""
    machine = this_machine()
    work = _Work(
        {row.name: row for row in rows},
        {row.name: at_rate(effort.rate, servers or kinds_of(row)) for row in rows},
    )
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as name:
        runs = asyncio.run(_measure(Path(name), hierarchies, work, effort))
    titles = {row.name: row.title for row in rows}
    return ColocationResult(machine, effort, tuple(work.rows), tuple(runs), titles)


async def _measure(
    folder: Path, hierarchies: Hierarchies, work: _Work, effort: ColocationEffort
) -> list[ColocationRun]:
    programs, cpus, begun = Programs(folder), psutil.cpu_count() or 1, time.monotonic()
    wanted = {name: tuple(kind.name for kind in kinds) for name, kinds in work.kinds.items()}
    runs: list[ColocationRun] = []
    async with BenchCluster.started(folder / "run", cpus) as cluster:
        rounds = programs.rounds_per_ms()
        stage = ColocationSetup(
            hierarchies, programs, cluster, folder, cpus, rounds, effort.seconds, effort.settle_seconds
        )
        turn = 0
        while due := lacking(runs, wanted, effort.runs):
            if turn >= effort.runs and time.monotonic() - begun > effort.minutes * 60:
                break
            for row in rotated(due, turn):
                found = await attempt(stage, work.rows[row], work.kinds[row], turn)
                runs += found
                _tell(found)
            turn += 1
    return runs


def _tell(runs: Sequence[ColocationRun]) -> None:
    for run in runs:
        p99 = "none" if run.p99_us is None else f"{run.p99_us / 1000:.2f} ms"
        state = "" if run.clean else f", dirty: {run.foreign_pct:.1f} % used by others"
        print(f"bench: {run.row} {run.kind} {run.attempt}: p99 {p99}{state}", file=sys.stderr, flush=True)
