"""Findings of `sublet replay`: each tick's amounts, decisions that came out otherwise, and a comparison by time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from model.decision import Decision
from model.explain import OFFERED, amount
from model.resources import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY

_SLICES = 20
_CPUS, _GIB = (1000, "CPUs"), (1 << 30, "GiB")
LENT_SCALES = {BATCH_CPU: _CPUS, BATCH_MEMORY: _GIB, MID_CPU: _CPUS, MID_MEMORY: _GIB}
"""Lent resource → base units in one of the unit that people read, and its name."""
_SAID = ("reason", "policy", "detail", "unit", "at_seconds")


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


class ReplayOutcome(msgspec.Struct):
    """What a replay found; `differences` are lines of text about the first decisions that came out otherwise."""

    points: list[Point]
    decisions: int = 0
    different_ticks: int = 0
    differences: list[str] = []


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


def lent_names(points: Iterable[Point]) -> list[str]:
    """The resources of which there was or would have been any."""
    seen = {name for point in points for side in (point.lent, point.would_lend) for name in side if side[name]}
    return [name for name in LENT_SCALES if name in seen]


class TimeSlice(msgspec.Struct, frozen=True):
    """The averages of some ticks, of which the first was at `begin_seconds`."""

    begin_seconds: float
    cells: tuple[str, ...]


class Comparison(msgspec.Struct, frozen=True):
    """Two lines of heads, slices of the ticks, then average, least and most of all; all have as many cells.

    The first cell of each head is that of the times.
    """

    title: str
    heads: tuple[tuple[str, ...], ...]
    slices: tuple[TimeSlice, ...]
    figures: tuple[tuple[str, ...], ...]


def comparison(points: Sequence[Point]) -> Comparison:
    """What was lent beside what would have been lent, by lent resource."""
    names = lent_names(points) or [BATCH_CPU, BATCH_MEMORY]
    size = -(-len(points) // _SLICES)
    heads = (cell for name in names for cell in (name.removeprefix("kubernetes.io/"), f"in {LENT_SCALES[name][1]}"))
    each = "each line one of them" if size == 1 else f"each line the average of {size}"
    return Comparison(
        f"{len(points)} ticks, {each}",
        (("", *heads), ("from (UTC)", *(cell for _ in names for cell in ("lent", "would lend")))),
        tuple(_slice(points[start : start + size], names) for start in range(0, len(points), size)),
        tuple((title, *_cells(points, names, figure)) for title, figure in _FIGURES.items()),
    )


def _slice(points: Sequence[Point], names: Sequence[str]) -> TimeSlice:
    return TimeSlice(points[0].at_seconds, tuple(_cells(points, names, _mean)))


def _cells(points: Sequence[Point], names: Iterable[str], figure: Callable[[list[int]], float]) -> Iterator[str]:
    for name in names:
        for side in ("lent", "would_lend"):
            found = figure([getattr(point, side).get(name, 0) for point in points])
            yield f"{found / LENT_SCALES[name][0]:.3f}"


def _mean(amounts: list[int]) -> float:
    return sum(amounts) / len(amounts)


_FIGURES: dict[str, Callable[[list[int]], float]] = {"average": _mean, "least": min, "most": max}
