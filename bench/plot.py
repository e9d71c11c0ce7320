"""Pictures of what bench/colocate, bench/react and bench/api found, as SVG; needs the extra `plot`."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.api.benchmark import ECHO, MEMORY, STATE, Api
from bench.colocate.benchmark import ColocationResult
from bench.figures import ColocationRun, Interval, clean_runs, interval
from bench.react.benchmark import React
from bench.react.report import in_guest

_PANELS: tuple[tuple[str, Callable[[ColocationRun], float | None]], ...] = (
    ("p99 of the service, ms", lambda run: None if run.p99_us is None else run.p99_us / 1000),
    ("machine used, %", lambda run: run.utilisation_pct),
    ("batch work, CPUs", lambda run: run.batch_cpus),
)
_COLOURS = {"long": "#1f6f8b", "short": "#d98c3f"}
_HEIGHT_PER_ROW, _WIDTH = 0.45, 12.0


def available() -> bool:
    """Whether matplotlib is installed and this machine can run it: NumPy's wheels die on the guest's old processor."""
    return importlib.util.find_spec("matplotlib") is not None and not in_guest()


def plot_colocation(measured: ColocationResult, path: Path) -> None:
    """One panel a figure: the median of the clean runs and, as a bar, the lowest and highest."""
    plt = _pyplot()
    height = 1.5 + _HEIGHT_PER_ROW * len(measured.rows)
    figure, axes = plt.subplots(1, len(_PANELS), figsize=(_WIDTH, height), sharey=True)
    for axis, (title, value) in zip(axes, _PANELS, strict=True):
        _panel(axis, measured, value)
        axis.set_title(title, fontsize=10)
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(measured.rows)), [measured.title(name) for name in measured.rows])
    axes[0].set_ylim(len(measured.rows) - 0.5, -0.5)
    if any(points(measured, kind, _PANELS[0][1]) for kind in _COLOURS):
        axes[0].set_xscale("log")
    axes[0].legend(title="requests", fontsize=8, loc="lower right")
    _save(plt, figure, path)


def plot_reaction(measured: React, path: Path) -> None:
    """The share of surges that were answered by then."""
    plt = _pyplot()
    figure, axis = plt.subplots(figsize=(7, 3.5))
    for side in measured.sides:
        ranked = sorted(each * 1000 for each in side.delays if each is not None)
        axis.step(ranked, [100 * (n + 1) / len(side.delays) for n in range(len(ranked))], where="post", label=side.name)
    axis.set_xlabel("ms from the begin of the surge")
    axis.set_ylabel("% of surges with a lower ceiling")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=9)
    _save(plt, figure, path)


def plot_api(measured: Api, path: Path) -> None:
    """Creates a second of the API server, with and without a state directory, beside the echo server's."""
    plt = _pyplot()
    figure, axis = plt.subplots(figsize=(8, 3.5))
    for shift, name in zip((-0.25, 0.0, 0.25), (ECHO, MEMORY, STATE), strict=True):
        found = [_known(interval(each.per_second[name])) or (0.0, 0.0, 0.0) for each in measured.creates]
        middles = [middle for _, middle, _ in found]
        bars = [[middle - low for low, middle, _ in found], [high - middle for _, middle, high in found]]
        axis.bar([line + shift for line in range(len(found))], middles, width=0.25, yerr=bars, capsize=3, label=name)
    labels = [f"{each.size_bytes} bytes, {each.connections} at once" for each in measured.creates]
    axis.set_xticks(range(len(labels)), labels, fontsize=8)
    axis.set_ylabel("requests a second over TLS")
    axis.legend(fontsize=9)
    _save(plt, figure, path)


def points(
    measured: ColocationResult, kind: str, value: Callable[[ColocationRun], float | None]
) -> list[tuple[int, float, float, float]]:
    """(line, lowest, median, highest) of each row that has clean runs and no endless figure."""
    found = []
    for line, name in enumerate(measured.rows):
        spread = interval([value(run) for run in clean_runs(measured.runs, name, kind)])
        if (known := _known(spread)) is not None:
            found.append((line, *known))
    return found


def _known(spread: Interval | None) -> tuple[float, float, float] | None:
    if spread is None or spread.lowest is None or spread.middle is None or spread.highest is None:
        return None
    return spread.lowest, spread.middle, spread.highest


def _panel(axis: Any, measured: ColocationResult, value: Callable[[ColocationRun], float | None]) -> None:
    for offset, (kind, colour) in zip((-0.12, 0.12), _COLOURS.items(), strict=True):
        if not measured.rows_with(kind):
            continue
        found = points(measured, kind, value)
        lines = [line + offset for line, *_ in found]
        middles = [middle for _, _, middle, _ in found]
        bars = [[m - low for _, low, m, _ in found], [high - m for _, _, m, high in found]]
        axis.errorbar(middles, lines, xerr=bars, fmt="o", color=colour, capsize=3, markersize=4, label=kind)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _save(plt: Any, figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    # Without the date of the day, so that the same figures make the same file.
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
