"""Results against their targets, as tables for a person and as one JSON file for the next program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from bench.agent.imports import ImportCost
from bench.agent.observe import ReadingResult
from bench.agent.process import AgentResult
from bench.machine import Machine
from bench.tables import block

READING_TARGETS = {"go": 0.25, "plain": 0.2, "floor": 1.5}
AGENT_CPU_TARGET_PCT = 4.0
AGENT_RSS_TARGET_MIB = 85.0
_LATE_TICKS_TARGET = 0.0
_NAMES = {"ours": "ours", "floor": "C floor", "go": "Go ReadFile", "plain": "plain Python", "tick": "ours, as the tick"}


class Results(msgspec.Struct, frozen=True):
    """One run: only what was asked for is in it."""

    machine: Machine
    reading: tuple[ReadingResult, ...] = ()
    agent: tuple[AgentResult, ...] = ()
    imports: tuple[ImportCost, ...] = ()


class Target(msgspec.Struct, frozen=True):
    """`measured` is wanted at most as large as `limit`."""

    name: str
    measured: float
    limit: float

    @property
    def met(self) -> bool:
        return self.measured <= self.limit


def targets(results: Results) -> list[Target]:
    """Every target that something was measured for."""
    found = [target for reading in results.reading for target in _reading_targets(reading)]
    for agent in results.agent:
        found.append(Target(f"{agent.pods} pods, agent: % of a core", agent.cpu_pct, AGENT_CPU_TARGET_PCT))
        found.append(Target(f"{agent.pods} pods, agent: MiB resident", agent.rss_mib, AGENT_RSS_TARGET_MIB))
        if agent.late_ticks is not None:
            found.append(Target(f"{agent.pods} pods, agent: late ticks", agent.late_ticks, _LATE_TICKS_TARGET))
    return found


def _reading_targets(reading: ReadingResult) -> list[Target]:
    ours_cost = reading.costs["ours"]
    return [
        Target(f"{reading.pods} pods, {when}: ours / {_NAMES[other]}", mine / theirs, limit)
        for other, limit in READING_TARGETS.items()
        if (cost := reading.costs.get(other))
        for when, mine, theirs in (
            ("hot", ours_cost.hot_ms, cost.hot_ms),
            ("1 Hz", ours_cost.paced_ms, cost.paced_ms),
        )
    ]


def show(results: Results, console: Console) -> None:
    """All tables, the targets last."""
    machine = results.machine
    tools = [f"Python {machine.python}", *machine.compilers.values()]
    console.print(f"{machine.cpus} CPUs {machine.cpu}, kernel {machine.kernel}, load {machine.load_1m:.2f} before")
    console.print(", ".join(tools))
    for reading in results.reading:
        _show_reading(reading, console)
    for agent in results.agent:
        _show_agent(agent, console)
    if results.imports:
        _show_imports(results.imports, console)
    _show_targets(targets(results), console)


def _show_reading(reading: ReadingResult, console: Console) -> None:
    title = f"CPU time of one observation: {reading.pods} pods x 2 containers, {reading.files} files"
    rows = [
        [label, *(f"{ms:.2f}" for ms in _with_share(reading.files, cost.hot_ms, cost.paced_ms))]
        for name, label in _NAMES.items()
        if (cost := reading.costs.get(name))
    ]
    block(console, title, ("reader", "hot ms", "us/file", "1 Hz ms", "us/file"), rows)
    for name, why in reading.absent.items():
        console.print(f"{_NAMES[name]} skipped: {why}")


def _with_share(files: int, *costs_ms: float) -> list[float]:
    return [value for ms in costs_ms for value in (ms, ms * 1000 / files)]


def _show_agent(agent: AgentResult, console: Console) -> None:
    title = f"the agent: {agent.pods} pods x 2 containers, tick 1 s, over {agent.seconds:g} s"
    counts = [("-" if n is None else str(n)) for n in (agent.ticks, agent.late_ticks, agent.unmeasured_pods)]
    row = [f"{agent.cpu_pct:.2f}", f"{agent.rss_mib:.1f}", *counts]
    block(console, title, ("% of a core", "MiB resident", "ticks", "late", "pods not measured"), [row])


def _show_imports(imports: Sequence[ImportCost], console: Console) -> None:
    total = ImportCost("all", sum(cost.mib for cost in imports), sum(cost.ms for cost in imports))
    rows = [[cost.package, f"{cost.mib:.1f}", f"{cost.ms:.0f}"] for cost in (*imports, total)]
    block(console, "what the agent imports, each after those above it", ("package", "MiB", "ms"), rows)


def _show_targets(found: Sequence[Target], console: Console) -> None:
    rows = [[t.name, f"{t.measured:.3f}", f"{t.limit:g}", "met" if t.met else "MISSED"] for t in found]
    block(console, "targets", ("what", "measured", "at most", ""), rows)


def save(results: Results, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n")
