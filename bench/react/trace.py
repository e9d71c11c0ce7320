"""The best-effort ceiling over time, as bench/loads/trace.c sees it each millisecond."""

from __future__ import annotations

import time

from bench.colocate.loads import LoadProgram

_PERIOD_US = 100_000


class CeilingTrace:
    """Follows the changes of the quota; `share` is what the newest line said."""

    def __init__(self, trace: LoadProgram, cpus: int) -> None:
        self._trace = trace
        self._full_us = cpus * _PERIOD_US
        self._take(trace.line())

    @property
    def unlimited(self) -> bool:
        return self._quota_us is None

    @property
    def share(self) -> float:
        """Of the node's CPUs; all of them where there is no ceiling."""
        return 1.0 if self._quota_us is None else self._quota_us / self._full_us

    def follow(self, seconds: float) -> None:
        """Take every change there is, waiting so long for a first one."""
        while (line := self._trace.line_within(seconds)) is not None:
            self._take(line)
            seconds = 0

    def below(self, share: float, bound_seconds: float) -> int | None:
        """When (ns) the ceiling came to this share of the node or less; None where it did not within the bound."""
        deadline = time.monotonic() + bound_seconds
        while (line := self._trace.line_within(deadline - time.monotonic())) is not None:
            at = self._take(line)
            if self.share <= share:
                return at
        return None

    def _take(self, line: str) -> int:
        at, _, text = line.partition(" ")
        self._quota_us = quota_of(text)
        return int(at)


def quota_of(text: str) -> int | None:
    """Microseconds in a period of cpu.cfs_quota_us or cpu.max; None: no ceiling."""
    quota = text.split()[0]
    return None if quota in ("-1", "max") else int(quota)
