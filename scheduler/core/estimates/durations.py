"""Past run times: of each kind of work the newest, so that what ran for so long has an expected rest.

Memory is bounded: so many kinds, and so many runs of each; the kind that was heard of longest ago makes room.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

RunKind: TypeAlias = tuple[str, ...]
"""What runs have in common: a job's name, a queue and a size, a queue."""

MOST_KINDS = 4096
MOST_RUNS = 256
"""Of one kind; 2 KiB."""
ENOUGH_RUNS = 8
"""With fewer a kind says too little, and a wider one is asked."""
_ROUNDING = 1e-9

Amounts: TypeAlias = npt.NDArray[np.float64]


class PastRuns(msgspec.Struct, frozen=True, dict=True):
    """The run times of one kind in seconds, shortest first; `outlasted` are ages that runs had which did not come to
    their end: they run still, or were cut short.

    Of what runs longest fewest have ended: without those that run still, everything would be taken to end too soon.
    """

    kind: RunKind
    seconds: tuple[float, ...]
    outlasted: tuple[float, ...] = ()

    def end_after(self, age: float, quantile: float) -> float:
        """How long work of the kind that has run for `age` seconds runs in all, at a quantile (0 to 1).

        By those that ran longer, as far as they tell; what runs past the longest of them is taken to run as long again:
        nothing is known of its kind but that.
        """
        found = self.known_end(age, quantile)
        if found is not None:
            return found
        times, _ = self._after(age)
        return 2.0 * (float(times[-1]) if len(times) else age) + 1.0

    def known_end(self, age: float, quantile: float) -> float | None:
        """The same, but None where those that ran longer do not tell."""
        times, told = self._after(age)
        if quantile >= told and (told < 1.0 - _ROUNDING or not len(times)):
            return None
        shares = self._shares[len(self._shares) - len(times) :] / self._left_at(age)
        return float(np.interp(quantile, np.cumsum(shares) - shares / 2, times))

    def _after(self, age: float) -> tuple[Amounts, float]:
        """The runs that ran longer, and the share of all longer ones that they stand for."""
        first = bisect_right(self.seconds, age)
        shares = self._shares[first:]
        return self._times[first:], float(shares.sum()) / self._left_at(age) if len(shares) else 0.0

    def _left_at(self, age: float) -> float:
        """The share of all runs that run longer."""
        return 1.0 - float(self._shares[: bisect_right(self.seconds, age)].sum())

    @cached_property
    def _times(self) -> Amounts:
        return np.array(self.seconds)

    @cached_property
    def _shares(self) -> Amounts:
        """The share of all runs that each stands for (Kaplan and Meier's product limit): of those as old as it or
        older one ended there.
        """
        older = len(self.outlasted) - np.searchsorted(np.array(self.outlasted), self._times)
        at_risk = np.arange(len(self.seconds), 0, -1) + older
        left = np.cumprod(1.0 - 1.0 / at_risk)
        return np.asarray(np.concatenate([[1.0], left[:-1]]) - left)


class Durations:
    """Runs by kind; `learn` and `of` take kinds from the narrowest to the widest."""

    def __init__(self, most_kinds: int = MOST_KINDS, most_runs: int = MOST_RUNS) -> None:
        self._most_kinds = most_kinds
        self._most_runs = most_runs
        self._runs: dict[RunKind, tuple[array[float], int]] = {}
        self._sorted: dict[RunKind, PastRuns] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def learn(self, kinds: Sequence[RunKind], seconds: float, *, cut: bool = False) -> None:
        """Work of these kinds ran so long, and came to its end; or was `cut` short."""
        told = -seconds if cut else seconds
        for kind in kinds:
            runs, at = self._runs.pop(kind, (array("d"), 0))
            if len(runs) < self._most_runs:
                runs.append(told)
            else:
                runs[at] = told
            self._runs[kind] = runs, (at + 1) % self._most_runs
            self._sorted.pop(kind, None)
            if len(self._runs) > self._most_kinds:
                oldest = next(iter(self._runs))
                del self._runs[oldest]
                self._sorted.pop(oldest, None)

    def of(self, kinds: Sequence[RunKind]) -> PastRuns | None:
        """The runs of the narrowest kind of which enough ended; None where none has so many."""
        for kind in kinds:
            if kind in self._runs and len((found := self._read(kind)).seconds) >= ENOUGH_RUNS:
                return found
        return None

    def _read(self, kind: RunKind) -> PastRuns:
        if kind not in self._sorted:
            runs, _ = self._runs[kind]
            ended, cut = sorted(each for each in runs if each >= 0), sorted(-each for each in runs if each < 0)
            self._sorted[kind] = PastRuns(kind, tuple(ended), tuple(cut))
        return self._sorted[kind]


def with_running(runs: PastRuns, ages: Iterable[float]) -> PastRuns:
    """With the ages of what runs now of that kind."""
    return PastRuns(runs.kind, runs.seconds, tuple(sorted((*runs.outlasted, *ages))))
