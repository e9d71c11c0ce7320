"""`sublet replay`: decide a journal again, and say whether it comes out the same, or what other settings would lend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from agent.ports import TickResult
from agent.settings import load_settings
from model.decision import Decision
from model.explain import OFFERED, amount
from model.fault import ConfigurationFault
from model.pod import PodPhase
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY

DIFFERENT = 1
_SHOWN_DIFFERENCES = 5
_ROWS = 20
_CPUS, _GIB = (1000, "CPUs"), (1 << 30, "GiB")
SCALES = {BATCH_CPU: _CPUS, BATCH_MEMORY: _GIB, MID_CPU: _CPUS, MID_MEMORY: _GIB}
"""Lent resource → base units in one of the unit that people read, and its name."""
_SAID = ("reason", "policy", "detail", "unit", "at_seconds")


class Output(StrEnum):
    """How the comparison is printed."""

    TABLE = "table"
    JSON = "json"


class Point(msgspec.Struct, frozen=True):
    """One tick: what was lent, and what is decided now, by lent resource in milli-CPU or bytes.

    The others are of cpu and memory, empty where unknown: what the node has, what its pods request, and what
    everything but best effort used in the live window.
    """

    at_seconds: float
    lent: dict[str, int]
    would_lend: dict[str, int]
    node: dict[str, int] = {}
    reserved: dict[str, int] = {}
    used: dict[str, int] = {}


class Outcome(msgspec.Struct):
    """What a replay found; `differences` are lines for people about the first decisions that came out otherwise."""

    points: list[Point]
    decisions: int = 0
    different_ticks: int = 0
    differences: list[str] = []


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A journal written by `sublet agent --journal`.")],
    settings: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Agent settings to try on the recorded facts.")
    ] = None,
    plot: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Draw what was lent beside what was used and reserved: a .png or .svg file; repeatable.",
        ),
    ] = None,
    output: Annotated[Output, typer.Option("-o", "--output", help="With --settings: table or json.")] = Output.TABLE,
) -> int:
    """Decide a recorded journal again.

    Without --settings every decision must come out as it was recorded: exit code 1 and the first differences where
    one does not. With --settings: what would have been lent, beside what was.
    """
    from cli.plot import draw, require

    require(plot or ())
    if output is Output.JSON and settings is None:
        raise ConfigurationFault("--output json", "needs --settings", "without them the exit code is the answer")
    outcome = _decided(file, settings)
    for path in plot or ():
        draw(outcome.points, path, compare=settings is not None)
    if settings is None:
        return _print_outcome(outcome)
    if output is Output.JSON:
        print(msgspec.json.format(msgspec.json.encode(outcome.points)).decode())
    else:
        print(comparison(outcome.points))
    return 0


def _decided(file: Path, settings: Path | None) -> Outcome:
    from agent.replay import replay as decide

    other = load_settings(settings) if settings else None
    outcome = Outcome([])
    for replayed in decide(_lines(file), str(file), other):
        now = replayed.result
        outcome.decisions += len(now.decisions)
        found = (d for d in replayed.recorded if d.name in SCALES and d.policy != OFFERED)
        lent = {d.name: d.value for d in found if "/zone/" not in d.subject}
        would_lend = {d.name: d.value for d in now.lending.reclaimable}
        outcome.points.append(Point(now.observation.at_seconds, lent, would_lend, *_circumstances(now)))
        if other is None and not replayed.identical:
            outcome.different_ticks += 1
            rest = max(_SHOWN_DIFFERENCES - len(outcome.differences), 0)
            told = differences(replayed.recorded, now.decisions)
            at = f"{datetime.fromtimestamp(now.observation.at_seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
            outcome.differences += [f"{at}  {text}" for text in islice(told, rest)]
    if not outcome.points:
        raise ConfigurationFault(str(file), "holds no tick", "let the agent run for a few seconds with --journal")
    return outcome


def _circumstances(now: TickResult) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """What the node has, what is reserved of it and what is used, as a Point has them."""
    node, usage = now.facts.node, now.usage
    amounts = {name: node.allocatable[name] for name in (CPU, MEMORY)} if node else {}
    pods = [pod for pod in now.facts.pods or () if pod.phase is PodPhase.RUNNING]
    reserved = {name: sum(pod.requests[name] for pod in pods) for name in (CPU, MEMORY)}
    if usage is None:
        return amounts, reserved, {}
    cpu = usage.node.live.cpu_millis - usage.best_effort.live.cpu_millis
    memory = usage.node.live.memory_bytes - usage.best_effort.live.memory_bytes
    return amounts, reserved, {CPU: max(cpu, 0), MEMORY: max(memory, 0)}


def differences(recorded: Sequence[Decision], decided: Sequence[Decision]) -> Iterator[str]:
    """What came out otherwise in one tick, a text a decision; nothing where all is the same."""
    before, now = ({_about(decision): decision for decision in decisions} for decisions in (recorded, decided))
    changed = [about for about in {**now, **before} if before.get(about) != now.get(about)]
    for about in changed:
        old, new = before.get(about), now.get(about)
        lines = [f"{about}: recorded {_told(old)}, now {_told(new)}"]
        if old and new:
            lines += _changed_terms(old, new)
            lines += [
                f"    {field}: {getattr(old, field)} → {getattr(new, field)}"
                for field in _SAID
                if getattr(old, field) != getattr(new, field)
            ]
        yield "\n".join(lines)
    if not changed and tuple(recorded) != tuple(decided):
        yield "the same decisions, in another order or number"


def _about(decision: Decision) -> str:
    return f"{decision.name} {'offered by' if decision.policy == OFFERED else 'of'} {decision.subject}"


def _told(decision: Decision | None) -> str:
    return amount(decision.value, decision.unit) if decision else "nothing"


def _changed_terms(old: Decision, new: Decision) -> Iterator[str]:
    before, now = ({term.name: term for term in decision.terms} for decision in (old, new))
    for name in {**now, **before}:
        first, second = before.get(name), now.get(name)
        if first != second:
            values = [f"{term.value} ({term.note})" if term else "no such term" for term in (first, second)]
            yield f"    {name}: {values[0]} → {values[1]}"


def _lines(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as stream:
            yield from stream
    except OSError as error:
        raise ConfigurationFault(str(file), f"cannot be read: {error.strerror}", "give a journal file") from error


def _print_outcome(outcome: Outcome) -> int:
    for text in outcome.differences:
        print(text)
    ticks = len(outcome.points)
    same = f"different in {outcome.different_ticks} of them" if outcome.different_ticks else "all identical"
    print(f"{outcome.decisions} decisions in {ticks} ticks: {same}")
    return DIFFERENT if outcome.different_ticks else 0


def lent_names(points: Iterable[Point]) -> list[str]:
    """The resources of which there was or would have been any."""
    seen = {name for point in points for side in (point.lent, point.would_lend) for name in side if side[name]}
    return [name for name in SCALES if name in seen]


def comparison(points: list[Point]) -> str:
    """A table: equal slices of the ticks as averages, then average, least and most of all ticks."""
    names = lent_names(points) or [BATCH_CPU, BATCH_MEMORY]
    size = -(-len(points) // _ROWS)
    rows = [
        ["", *(cell for name in names for cell in (name.removeprefix("kubernetes.io/"), f"in {SCALES[name][1]}"))],
        ["from (UTC)", *(cell for _ in names for cell in ("lent", "would lend"))],
    ]
    for start in range(0, len(points), size):
        begin = datetime.fromtimestamp(points[start].at_seconds, UTC)
        rows.append([f"{begin:%Y-%m-%d %H:%M:%S}", *_cells(points[start : start + size], names, _mean)])
    for title, figure in _FIGURES.items():
        rows.append([title, *_cells(points, names, figure)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    lines.insert(len(lines) - len(_FIGURES), "")
    each = "each line one of them" if size == 1 else f"each line the average of {size}"
    return "\n".join([f"{len(points)} ticks, {each}", "", *lines])


def _cells(points: Sequence[Point], names: Iterable[str], figure: Callable[[list[int]], float]) -> Iterator[str]:
    for name in names:
        for side in ("lent", "would_lend"):
            found = figure([getattr(point, side).get(name, 0) for point in points])
            yield f"{found / SCALES[name][0]:.3f}"


def _mean(amounts: list[int]) -> float:
    return sum(amounts) / len(amounts)


_FIGURES: dict[str, Callable[[list[int]], float]] = {"average": _mean, "least": min, "most": max}
