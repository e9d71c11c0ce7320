"""From latencies and counters to figures that may be compared: percentiles, the rule for clean, intervals, verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import inf
from statistics import median

import msgspec

CLEAN_PCT = 7.0
"""More of the machine than that used by anything but this benchmark (time stolen by other guests included): dirty."""
UNANSWERED = (1 << 64) - 1
"""What the generator writes for a request without an answer."""


class ColocationRun(msgspec.Struct, frozen=True):
    """What one row did once with one kind of requests.

    Latencies count from the moment a request was due; None: so many had no answer that there is none. Percentages are
    of all CPUs, `agent_pct` of one. `wait_us` is how long the service's threads stood in the run queue for a
    request, None: it did not live to tell.
    """

    row: str
    kind: str
    attempt: int
    requests: int
    unanswered: int
    p50_us: float | None
    p99_us: float | None
    p999_us: float | None
    wait_us: float | None
    utilisation_pct: float
    batch_cpus: float
    batch_mrounds: float
    foreign_pct: float
    agent_pct: float = 0.0
    late_sends_pct: float = 0.0
    memory: MemoryOutcome | None = None

    @property
    def clean(self) -> bool:
        return is_clean(self.foreign_pct)


class MemoryOutcome(msgspec.Struct, frozen=True):
    """Pods ended in a run with memory-hungry batch pods: by the kernel for want of memory, or by the agent's doing.

    `peak_mib` is the most that all pods held: without the limit in reach nothing had to be done.
    """

    service_survived: bool
    kernel_kills_online: int
    kernel_kills_batch: int
    evicted: int
    killed_by_agent: int
    peak_mib: int


class Interval(msgspec.Struct, frozen=True):
    """The median of some runs, and the lowest and highest of them.

    Of n independent runs these hold the true median with probability 1 - 2^(1-n): 94 % for five.
    """

    lowest: float | None
    middle: float | None
    highest: float | None


class ClaimVerdict(StrEnum):
    """Missed only where no run supports it; in between the runs do not decide."""

    MET = "met"
    UNDECIDED = "undecided"
    MISSED = "MISSED"
    UNKNOWN = "not measured"


class ColocationTarget(msgspec.Struct, frozen=True):
    """`measured` is wanted at most (else at least) as large as `limit`."""

    name: str
    measured: Interval | None
    limit: float
    at_most: bool = True

    @property
    def verdict(self) -> ClaimVerdict:
        if self.measured is None:
            return ClaimVerdict.UNKNOWN
        if self._holds(self.measured.middle):
            return ClaimVerdict.MET
        best = self.measured.lowest if self.at_most else self.measured.highest
        return ClaimVerdict.UNDECIDED if self._holds(best) else ClaimVerdict.MISSED

    def _holds(self, value: float | None) -> bool:
        """An endless latency is no small one, and no large ratio of anything good."""
        if value is None:
            return False
        return value <= self.limit if self.at_most else value >= self.limit


def is_clean(foreign_pct: float) -> bool:
    return foreign_pct <= CLEAN_PCT


def percentile_us(ranked_ns: Sequence[int], pct: float) -> float | None:
    """Nearest rank of latencies in rising order; None without any, or where that one had no answer."""
    if not ranked_ns:
        return None
    rank = max(1, int(-(-len(ranked_ns) * pct // 100)))
    found = ranked_ns[rank - 1]
    return None if found == UNANSWERED else found / 1000


def interval(values: Sequence[float | None]) -> Interval | None:
    """None (an endless latency) ranks above every number; no interval without values."""
    if not values:
        return None
    ranked = sorted(inf if value is None else value for value in values)
    return Interval(*(_finite(value) for value in (ranked[0], median(ranked), ranked[-1])))


def ratios(over: Sequence[float | None], under: Sequence[float | None]) -> Interval | None:
    """Of runs side by side: those of one round share what else the machine did. None where either has none."""
    pairs = list(zip(over, under, strict=False))
    known = [None if a is None else 0.0 if b is None else a / b for a, b in pairs if b is None or b > 0]
    return interval(known)


def clean_runs(runs: Sequence[ColocationRun], row: str, kind: str) -> list[ColocationRun]:
    """In the order they were made."""
    return [run for run in runs if (run.row, run.kind) == (row, kind) and run.clean]


def lacking(runs: Sequence[ColocationRun], wanted: Mapping[str, tuple[str, ...]], count: int) -> list[str]:
    """Rows with fewer clean runs than `count` of any of their kinds; `wanted` names the kinds of each row."""
    return [row for row, kinds in wanted.items() if any(len(clean_runs(runs, row, kind)) < count for kind in kinds)]


def rotated(rows: Sequence[str], turn: int) -> list[str]:
    """Each turn begins with another row, so that none always follows the same one."""
    start = turn % len(rows) if rows else 0
    return [*rows[start:], *rows[:start]]


def _finite(value: float) -> float | None:
    return None if value == inf else value


def told(found: Interval | None, digits: int = 2) -> str:
    """The median, and the lowest and highest where they differ from it."""
    if found is None or found.middle is None or found.lowest is None or found.highest is None:
        return "-"
    if found.lowest == found.highest:
        return f"{found.middle:.{digits}f}"
    return f"{found.middle:.{digits}f} ({found.lowest:.{digits}f}-{found.highest:.{digits}f})"
