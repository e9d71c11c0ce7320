"""All nodes' loads as arrays, in the order of a snapshot's rows, with what one turn has placed on top."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from model.loadlimits import UsageLimits
from model.qos import PriorityBand
from model.report import Usage
from scheduler.core.load.estimate import estimate
from scheduler.core.load.node import Level, NodeLoad
from scheduler.core.load.policy import LoadPolicy
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import Amounts, ClusterSnapshot, Mask

ALL = slice(None)
_LARGEST = 1 << 55


class LoadView(msgspec.Struct, frozen=True, eq=False):
    """What is in use, node × (CPU in milli, memory in bytes), and when it was measured: Unix seconds, −inf: never."""

    used: Amounts
    seconds: npt.NDArray[np.float64]

    def copy(self) -> LoadView:
        return LoadView(self.used.copy(), self.seconds)

    def of(self, rows: Amounts) -> LoadView:
        """These rows alone."""
        return LoadView(self.used[rows], self.seconds[rows])


class LoadThresholds(msgspec.Struct, frozen=True, eq=False):
    """Percent of allocatable, node × (CPU, memory), 0: none; `aggregated`: those of all use count a statistic."""

    usage: Amounts
    prod: Amounts
    aggregated: Mask

    @property
    def any(self) -> bool:
        return bool(self.usage.any() or self.prod.any())


class LoadArrays(msgspec.Struct, frozen=True, eq=False):
    """`scored` is what scores count, `limited` what limits count, `prod` what prod pods use; `now` is Unix seconds.

    `unfilled` are rows with a NodeMetric that does not say what the node uses.
    """

    policy: LoadPolicy
    now: float
    scored: LoadView
    limited: LoadView
    prod: LoadView
    limits: LoadThresholds
    unfilled: Mask

    def expired(self, view: LoadView) -> Mask:
        """Rows whose measurement is too old, or missing though they have a NodeMetric; those without one are not.

        Source: Koordinator plugins/loadaware (isNodeMetricExpired, and Filter for a NodeMetric that is not found).
        """
        known = np.isfinite(view.seconds)
        missing = ~known & self.unfilled
        if self.policy.expiry_seconds <= 0:
            return np.asarray(missing)
        return np.asarray(missing | known & (self.now - view.seconds >= self.policy.expiry_seconds))

    def of(self, rows: Amounts) -> LoadArrays:
        """These rows alone, as they are now."""
        limits = LoadThresholds(self.limits.usage[rows], self.limits.prod[rows], self.limits.aggregated[rows])
        scored, limited, prod = self.scored.of(rows), self.limited.of(rows), self.prod.of(rows)
        return LoadArrays(self.policy, self.now, scored, limited, prod, limits, self.unfilled[rows])

    def put(self, row: int, pod_class: PodClass, count: int = 1) -> None:
        """So many pods more are about to run there, by their estimate; a negative count is of pods that go.

        What a pod that goes really used is not known apart, so a row may fall below 0: it counts as 0 in scores.
        """
        usage = estimate(pod_class, self.policy)
        more = np.array((usage.cpu_millis, usage.memory_bytes), np.int64) * count
        self.scored.used[row] += more
        self.limited.used[row] += more
        if pod_class.estimate.band is PriorityBand.PROD:
            self.prod.used[row] += more

    def copy(self) -> LoadArrays:
        """An independent copy, to try something."""
        views = self.scored.copy(), self.limited.copy(), self.prod.copy()
        return LoadArrays(self.policy, self.now, *views, self.limits, self.unfilled)


def load_arrays(loads: Sequence[NodeLoad], policy: LoadPolicy, now: float) -> LoadArrays:
    """The arrays of nodes in the order of their rows."""
    limits = LoadThresholds(
        _percents(load.limits.aggregated or load.limits.usage for load in loads),
        _percents(load.limits.prod for load in loads),
        np.array([bool(load.limits.aggregated) for load in loads], bool),
    )
    return LoadArrays(
        policy,
        now,
        _view([load.scored for load in loads]),
        _view([load.limited for load in loads]),
        _view([load.prod for load in loads]),
        limits,
        np.array([load.unfilled for load in loads], bool),
    )


def with_changed_rows(before: LoadArrays, changed: Iterable[tuple[int, NodeLoad]], now: float) -> LoadArrays:
    """New arrays with some rows replaced; `before` stays as it is."""
    after = msgspec.structs.replace(before, now=now, scored=_own(before.scored), limited=_own(before.limited))
    after = msgspec.structs.replace(after, prod=_own(before.prod), unfilled=before.unfilled.copy())
    after = msgspec.structs.replace(after, limits=_own_limits(before.limits))
    for row, load in changed:
        for view, level in ((after.scored, load.scored), (after.limited, load.limited), (after.prod, load.prod)):
            view.used[row], view.seconds[row] = _cells(level)
        after.limits.usage[row] = _cell(load.limits.aggregated or load.limits.usage)
        after.limits.prod[row] = _cell(load.limits.prod)
        after.limits.aggregated[row] = bool(load.limits.aggregated)
        after.unfilled[row] = load.unfilled
    return after


def capacities(snapshot: ClusterSnapshot, resource: str, at: Amounts | slice = ALL) -> Amounts:
    """Allocatable of one resource for rows, zeros where no node lists it; cut so that percentages stay inside int64."""
    if resource not in snapshot.resources:
        return np.zeros(len(snapshot.names), np.int64)[at]
    return np.minimum(snapshot.allocatable[at, snapshot.resources.index(resource)], _LARGEST)


def _own(view: LoadView) -> LoadView:
    return LoadView(view.used.copy(), view.seconds.copy())


def _own_limits(limits: LoadThresholds) -> LoadThresholds:
    return LoadThresholds(limits.usage.copy(), limits.prod.copy(), limits.aggregated.copy())


def _view(levels: Sequence[Level | None]) -> LoadView:
    cells = [_cells(level) for level in levels]
    used = np.array([used for used, _ in cells], np.int64).reshape(len(cells), 2)
    return LoadView(used, np.array([seconds for _, seconds in cells], np.float64))


def _cells(level: Level | None) -> tuple[tuple[int, int], float]:
    if level is None:
        return (0, 0), -np.inf
    return _pair(level.usage), level.seconds


def _pair(usage: Usage) -> tuple[int, int]:
    """Nobody uses less than nothing, whatever an agent says: sums of less would leave int64."""
    cpu, memory = max(usage.cpu_millis, 0), max(usage.memory_bytes, 0)
    return min(cpu, _LARGEST), min(memory, _LARGEST)


def _percents(limits: Iterable[UsageLimits]) -> Amounts:
    cells = [_cell(limit) for limit in limits]
    return np.array(cells, np.int64).reshape(len(cells), 2)


def _cell(limits: UsageLimits) -> tuple[int, int]:
    return limits.cpu_pct, limits.memory_pct
