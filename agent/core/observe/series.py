"""A series of samples of node and system, and statistics over the last minutes by Koordinator's rule.

A sample is 20 bytes, a series at most 1,800 of them: 36 KB, half an hour at one a second.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import msgspec

from model.nodemetric import AggregatedUsage
from model.report import Usage

_SAMPLE = struct.Struct("<qIQ")
_CAPACITY = 1800
_LEAST_COVERED_RATIO = 0.5
"""A window of which less was seen tells too little (Koordinator validateTimeRangeRatio)."""
_PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


class Series(msgspec.Struct, frozen=True):
    """Packed samples, oldest first: time in ms, milli-CPU, bytes."""

    samples: bytes = b""

    def push(self, at_ms: int, usage: Usage) -> Series:
        """The series with one sample more, and the oldest dropped when it is full."""
        kept = self.samples[-(_CAPACITY - 1) * _SAMPLE.size :]
        return Series(kept + _SAMPLE.pack(at_ms, usage.cpu_millis, usage.memory_bytes))


def spacing_ms(series_seconds: float) -> int:
    """Time between two samples, so that the longest window asked for fits; at least a second."""
    return max(1000, round(series_seconds * 1000 / _CAPACITY))


def aggregates(series: Series, durations_seconds: Iterable[float], now_ms: int) -> tuple[AggregatedUsage, ...]:
    """avg, p50, p90, p95 and p99 over each of the last `durations_seconds` of which at least half was seen."""
    samples = list(_SAMPLE.iter_unpack(series.samples))
    found = []
    for duration in durations_seconds:
        window = [sample for sample in samples if sample[0] >= now_ms - duration * 1000]
        if window and window[-1][0] - window[0][0] >= duration * 1000 * _LEAST_COVERED_RATIO:
            found.append(AggregatedUsage(duration, _statistics(window)))
    return tuple(found)


def rank(count: int, percentile: float) -> int:
    """Index of the percentile (0 to 1) among `count` sorted values, multiplied in single precision.

    Source: Koordinator pkg/koordlet/metriccache/util.go, fieldPercentileOfMetricList.
    """
    return max(int(_single(count * _single(percentile))) - 1, 0)


def _single(value: float) -> float:
    """`value` as Go's float32 holds it. A product of two such values is exact before it is rounded."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _statistics(window: list[tuple[int, int, int]]) -> dict[str, Usage]:
    _, cpu, memory = zip(*window, strict=True)
    count = len(window)
    statistics = {"avg": Usage(sum(cpu) // count, sum(memory) // count)}
    cpu_sorted, memory_sorted = sorted(cpu), sorted(memory)
    for name, percentile in _PERCENTILES.items():
        index = rank(count, percentile)
        statistics[name] = Usage(cpu_sorted[index], memory_sorted[index])
    return statistics
