"""Targets of bench/colocate, from clean runs alone, and what may be claimed against a node without an agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from bench.colocate import rows
from bench.colocate.servers import SERVERS
from bench.figures import ColocationRun, ColocationTarget, Interval, clean_runs, interval, ratios

P99_OVER_ALONE, UTILISATION_PCT, WORK_OVER_KOORDINATOR = 1.05, 95.0, 1.7
P99_OVER_NO_AGENT, P99_SHORT_OF_MEMORY = 1.0, 1.1
SERVER_P99_OVER_ALONE = 1.2
LOST_OVER_OTHER = 0.5
"""What is wanted: ratios of latency, batch work and evictions to those of other rows."""

Figure = Callable[[ColocationRun], float | None]


def p99(run: ColocationRun) -> float | None:
    return run.p99_us


def work(run: ColocationRun) -> float | None:
    return run.batch_mrounds


class RatioClaim(msgspec.Struct, frozen=True):
    """A ratio to the same row without an agent; better only where every clean run was, worse likewise."""

    name: str
    ratio: Interval
    smaller_is_better: bool = True

    @property
    def words(self) -> str:
        low, high = self.ratio.lowest, self.ratio.highest
        if high is not None and high < 1:
            return "better" if self.smaller_is_better else "worse"
        if low is None or low > 1:
            return "worse" if self.smaller_is_better else "better"
        return "no difference shown"


def compared(runs: Sequence[ColocationRun], one: str, other: str, kind: str, figure: Figure) -> Interval | None:
    """Ratio of a figure, run by run in their order."""
    over, under = (clean_runs(runs, row, kind) for row in (one, other))
    return ratios([figure(run) for run in over], [figure(run) for run in under])


def targets(runs: Sequence[ColocationRun]) -> list[ColocationTarget]:
    """Every target of the rows that were run."""
    present = {run.row for run in runs}
    found: list[ColocationTarget] = []
    if rows.ADAPTIVE in present:
        found += [target for kind in (rows.LONG, rows.SHORT) for target in _main(runs, kind.name)]
    for row in (rows.SMALL_ADAPTIVE, rows.SMALL_IDLE):
        if row in present:
            ratio = compared(runs, row, rows.SMALL_NO_AGENT, rows.LONG.name, p99)
            found.append(ColocationTarget(f"long: p99 {row} / small-no-agent", ratio, P99_OVER_NO_AGENT))
    for row in dict.fromkeys(run.row for run in runs):
        if rows.other_name(row) in present:
            found += _beside_other(runs, row)
    if rows.MEMORY_AGENT in present:
        found += _memory(runs)
    for other in (rows.LOCK_NO_AGENT, rows.LOCK_STAND_IN):
        if {rows.LOCK_ADAPTIVE, other} <= present:
            ratio = compared(runs, rows.LOCK_ADAPTIVE, other, rows.LOCK.name, p99)
            found.append(ColocationTarget(f"lock: p99 lock-adaptive / {other}", ratio, P99_OVER_NO_AGENT))
    return found + [target for kind in SERVERS for target in _server(runs, kind)]


def _server(runs: Sequence[ColocationRun], kind: str) -> list[ColocationTarget]:
    """Of one real server, for each number of batch processes that adaptive and no agent were run with."""
    present = dict.fromkeys(run.row for run in runs if run.kind == kind)
    counts = [count for row, _, count in (name.rpartition(" ") for name in present) if row == rows.ADAPTIVE]
    found = []
    for adaptive, no_agent in (
        (rows.hogs_name(rows.ADAPTIVE, int(count)), rows.hogs_name(rows.NO_AGENT, int(count))) for count in counts
    ):
        for other, limit in ((rows.ALONE, SERVER_P99_OVER_ALONE), (no_agent, P99_OVER_NO_AGENT)):
            ratio = compared(runs, adaptive, other, kind, p99)
            found.append(ColocationTarget(f"{kind}: p99 {adaptive} / {other}", ratio, limit))
    return found


def _main(runs: Sequence[ColocationRun], kind: str) -> list[ColocationTarget]:
    def against(other: str, figure: Figure) -> Interval | None:
        return compared(runs, rows.ADAPTIVE, other, kind, figure)

    used = interval([run.utilisation_pct for run in clean_runs(runs, rows.ADAPTIVE, kind)])
    return [
        ColocationTarget(f"{kind}: p99 adaptive / alone", against(rows.ALONE, p99), P99_OVER_ALONE),
        ColocationTarget(f"{kind}: p99 adaptive / no-agent", against(rows.NO_AGENT, p99), P99_OVER_NO_AGENT),
        ColocationTarget(f"{kind}: utilisation with adaptive, %", used, UTILISATION_PCT, at_most=False),
        *(
            ColocationTarget(
                f"{kind}: batch work adaptive / {row}", against(row, work), WORK_OVER_KOORDINATOR, at_most=False
            )
            for row in rows.KOORDINATOR
        ),
    ]


def _beside_other(runs: Sequence[ColocationRun], row: str) -> list[ColocationTarget]:
    """Neither slower for the service nor less work than with the agent of the other checkout."""
    other, found = rows.other_name(row), []
    for kind in dict.fromkeys(run.kind for run in runs if run.row == row):
        slower, more = (compared(runs, row, other, kind, figure) for figure in (p99, work))
        found.append(ColocationTarget(f"{kind}: p99 {row} / {other}", slower, 1.0))
        found.append(ColocationTarget(f"{kind}: batch work {row} / {other}", more, 1.0, at_most=False))
    lost, beside = _pods_lost(runs, row), _pods_lost(runs, other)
    if any(beside):
        found.append(ColocationTarget(f"batch pods lost, {row} / {other}", ratios(lost, beside), LOST_OVER_OTHER))
    return found


def _memory(runs: Sequence[ColocationRun]) -> list[ColocationTarget]:
    """A service that was killed once, in a dirty run even, is one too many."""
    ended = [run for run in runs if run.row == rows.MEMORY_AGENT and run.memory and not run.memory.service_survived]
    ratio = compared(runs, rows.MEMORY_AGENT, rows.MEMORY_ALONE, rows.LONG.name, p99)
    found = [
        ColocationTarget("memory: runs in which the service was killed", interval([len(ended)]), 0),
        ColocationTarget("memory: p99 with the agent / alone", ratio, P99_SHORT_OF_MEMORY),
    ]
    plenty = compared(runs, rows.MEMORY_AGENT, rows.MEMORY_PLENTY, rows.LONG.name, p99)
    if plenty is not None:
        found.append(ColocationTarget("memory: p99 with the agent / the same with memory for all", plenty, 1.0))
    lost, beside = (_pods_lost(runs, row) for row in (rows.MEMORY_COLD, rows.MEMORY_COLD_NO_SHRINK))
    if beside:
        name = "memory: batch pods lost, memory-cold / memory-cold-no-shrink"
        found.append(ColocationTarget(name, ratios(lost, beside), LOST_OVER_OTHER))
    return found


def _pods_lost(runs: Sequence[ColocationRun], row: str) -> list[float]:
    """Evicted or killed, a run; how many does not hang on how busy the machine was, so dirty runs count."""
    found = [run.memory for run in runs if run.row == row and run.memory]
    return [each.evicted + each.killed_by_agent + each.kernel_kills_batch for each in found]


def claims(runs: Sequence[ColocationRun]) -> list[RatioClaim]:
    """Ours against no agent, wherever both have clean runs."""
    pairs = [(rows.ADAPTIVE, rows.NO_AGENT, kind.name) for kind in (rows.LONG, rows.SHORT)]
    pairs += [(row, rows.SMALL_NO_AGENT, rows.LONG.name) for row in (rows.SMALL_ADAPTIVE, rows.SMALL_IDLE)]
    pairs += [(rows.MEMORY_AGENT, rows.MEMORY_NO_AGENT, rows.LONG.name)]
    found = []
    for one, other, kind in pairs:
        for words, figure, smaller in (("p99", p99, True), ("batch work", work, False)):
            ratio = compared(runs, one, other, kind, figure)
            if ratio is not None:
                found.append(RatioClaim(f"{kind}: {words} {one} / {other}", ratio, smaller))
    return found
