"""Charts of a replay: PNG or SVG by the file's name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from math import nan
from pathlib import Path
from typing import Any

from model.fault import ConfigurationFault
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY
from view.replayed import LENT_SCALES, Point, lent_names

_SUFFIXES = (".png", ".svg")
_WIDTH, _PANEL_HEIGHT = 9.0, 2.3
"""Inches."""
_USED, _LENT = "#8fb0d3", "#f2b36b"
_BENEATH = {BATCH_CPU: CPU, BATCH_MEMORY: MEMORY}
"""Batch resource → what of the node it is made of."""
_Drawn = Sequence[tuple[float, Point | None]]
_GAP_SECONDS = 30.0
"""Longer without a tick is drawn as a hole: nobody knows what was lent meanwhile."""


def require(paths: Iterable[Path]) -> None:
    """Raises ConfigurationFault where a chart could not be drawn, before an hour is spent on deciding."""
    for path in paths:
        if path.suffix.lower() not in _SUFFIXES:
            raise ConfigurationFault(f"--plot {path}", "is neither .png nor .svg", "name the file by its format")
        if not path.parent.is_dir():
            raise ConfigurationFault(f"--plot {path}", f"there is no folder {path.parent}", "make it first")
        if find_spec("matplotlib") is None:
            raise ConfigurationFault("--plot", "needs matplotlib", "pip install 'sublet[plot]'")


def draw(points: list[Point], path: Path, *, compare: bool) -> None:
    """What was lent over time, a panel a resource; with `compare` also what would have been lent.

    Without `compare` batch resources are drawn on top of what was used, below what the node has, and beside what its
    pods reserve. The same points make the same file. Raises ConfigurationFault where it cannot be written.
    """
    # It would read, and up to 3.10 evaluate, a file `matplotlibrc` of the folder it is loaded in, whoever owns that.
    with contextlib.chdir("/"):
        import matplotlib
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.figure import Figure

    names = lent_names(points) or [BATCH_CPU, BATCH_MEMORY]
    figure = Figure(figsize=(_WIDTH, _PANEL_HEIGHT * len(names) + 0.6), layout="constrained")
    panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    drawn = list(_with_holes(points))
    for axes, name in zip(panels, names, strict=True):
        if name in _BENEATH and not compare:
            _stacked(axes, drawn, name)
        else:
            _lines(axes, drawn, name, compare)
    locator = AutoDateLocator(tz=UTC)
    panels[-1].xaxis.set_major_locator(locator)
    panels[-1].xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))
    panels[-1].set_xlabel("time (UTC)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=4, frameon=False)
    undated = {"Date": None} if path.suffix.lower() == ".svg" else None
    try:
        with matplotlib.rc_context({"svg.hashsalt": "sublet"}):
            figure.savefig(path, metadata=undated)
    except OSError as error:
        raise ConfigurationFault(f"--plot {path}", f"cannot be written: {error.strerror}") from error


def _stacked(axes: Any, drawn: _Drawn, name: str) -> None:
    """Used, and lent on top of it: what is left below the node's line is the margin."""
    beneath, (scale, unit) = _BENEATH[name], LENT_SCALES[name]
    times = _times(drawn)
    used = [point.used.get(beneath, 0) / scale if point else nan for _, point in drawn]
    lent = [point.lent.get(name, 0) / scale if point else nan for _, point in drawn]
    top = [below + above for below, above in zip(used, lent, strict=True)]
    axes.fill_between(times, used, step="post", label="used by services and system", color=_USED, linewidth=0)
    axes.fill_between(times, used, top, step="post", label="lent to batch pods", color=_LENT, linewidth=0)
    lines = {"reserved by services": ("reserved", "#222222", "--"), "the node": ("node", "#222222", "-")}
    for label, (part, color, style) in lines.items():
        amounts = [getattr(point, part).get(beneath, 0) / scale if point else nan for _, point in drawn]
        axes.step(times, amounts, where="post", label=label, color=color, linestyle=style, linewidth=1.2)
    axes.set_ylabel(unit if beneath == CPU else f"{beneath} ({unit})")
    _finish(axes)


def _lines(axes: Any, drawn: _Drawn, name: str, compare: bool) -> None:
    scale, unit = LENT_SCALES[name]
    sides = {"lent": ("lent", "#1f4e79", "-")}
    if compare:
        sides["would_lend"] = ("would have been lent", "#c55a11", "--")
    for side, (label, color, style) in sides.items():
        amounts = [getattr(point, side).get(name, 0) / scale if point else nan for _, point in drawn]
        axes.step(_times(drawn), amounts, where="post", label=label, color=color, linestyle=style)
    axes.set_ylabel(f"{name.removeprefix('kubernetes.io/')} ({unit})")
    _finish(axes)


def _finish(axes: Any) -> None:
    axes.margins(x=0.005, y=0.15)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)


def _times(drawn: _Drawn) -> list[datetime]:
    return [datetime.fromtimestamp(at, UTC) for at, _ in drawn]


def _with_holes(points: list[Point]) -> Iterator[tuple[float, Point | None]]:
    before = points[0].at_seconds
    for point in points:
        if point.at_seconds - before > _GAP_SECONDS:
            yield before, None
        yield point.at_seconds, point
        before = point.at_seconds
