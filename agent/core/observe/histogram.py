"""Decaying histogram: how often a usage was seen, the recent counting more than the old, in bounded memory.

Buckets grow by 5 %. A sample weighs 2^((time - reference) / half-life), so that old weights never have to be touched:
they are rescaled only when the exponent would pass 100. Source: Koordinator pkg/util/histogram (from Kubernetes VPA).

Memory: 8 bytes for each bucket between the lowest and the highest one seen, so at most 1.3 kB for CPU and 1.7 kB for
memory; a pod whose usage varies threefold takes some 25 buckets, 0.2 kB. A dict would need 60 bytes a bucket.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate

import msgspec

_GROWTH = 1.05
_LARGEST_EXPONENT = 100
_EMPTY_WEIGHT = 1e-4
"""A bucket at either end that holds less counts as empty: 0.001 of Koordinator's minimum sample weight, 0.1."""
_DOUBLE_BYTES = 8

Buckets = tuple[float, ...]
"""Where each bucket starts; the last one has no end."""


def exponential(first_size: float, largest: float) -> Buckets:
    """Bucket n starts at first_size x (1.05^n - 1) / 0.05; the last one starts at `largest` or above."""
    step = _GROWTH - 1
    count = math.ceil(math.log(largest * step / first_size + 1, _GROWTH)) + 1
    return tuple(first_size * (_GROWTH**n - 1) / step for n in range(count))


CPU_MILLIS: Buckets = exponential(25, 1_024_000)
"""0.025 core up to 1024 cores, 158 buckets (Koordinator pkg/koordlet/prediction/predict_server.go)."""
MEMORY_BYTES: Buckets = exponential(5 << 20, 1 << 41)
"""5 MiB up to 2 TiB, 205 buckets (as above)."""


class Histogram(msgspec.Struct, frozen=True, gc=False):
    """Weights of the buckets from number `first` on, as native doubles; relative to Unix time `reference_seconds`."""

    reference_seconds: float = 0.0
    first: int = 0
    weights: bytes = b""

    def add(self, buckets: Buckets, half_life_seconds: float, value: float, now: float) -> Histogram:
        """The histogram with one more sample of `value`, taken at `now` (Unix seconds)."""
        if now - self.reference_seconds > _LARGEST_EXPONENT * half_life_seconds:
            return self._rebased(half_life_seconds, now).add(buckets, half_life_seconds, value, now)
        bucket = max(bisect_right(buckets, value) - 1, 0)
        first = min(self.first, bucket) if self.weights else bucket
        weights = array("d", bytes(_DOUBLE_BYTES * (self.first - first)) if self.weights else b"")
        weights.frombytes(self.weights)
        weights.frombytes(bytes(_DOUBLE_BYTES * max(bucket - first + 1 - len(weights), 0)))
        weights[bucket - first] += 2.0 ** ((now - self.reference_seconds) / half_life_seconds)
        return Histogram(self.reference_seconds, first, weights.tobytes())

    def percentile(self, buckets: Buckets, ratio: float) -> float:
        """End of the bucket below which `ratio` (0 to 1) of the weight lies; 0 when empty.

        The last bucket of all has no end: its start stands in.
        """
        if not self.weights:
            return 0.0
        sums = list(accumulate(array("d", self.weights)))
        bucket = self.first + min(bisect_left(sums, ratio * sums[-1]), len(sums) - 1)
        return buckets[min(bucket + 1, len(buckets) - 1)]

    def sound(self, buckets: Buckets) -> bool:
        """What was read back can be a histogram over `buckets` that saw at least one sample."""
        if not self.weights or len(self.weights) % _DOUBLE_BYTES:
            return False
        weights = array("d", self.weights)
        fits = self.first >= 0 and self.first + len(weights) <= len(buckets)
        # Not a number compares as false; sums of a million weights stay far below the cap.
        return fits and max(weights) > 0 and all(0 <= weight < 2.0 ** (_LARGEST_EXPONENT + 20) for weight in weights)

    def _rebased(self, half_life_seconds: float, now: float) -> Histogram:
        """The same shape relative to the multiple of the half-life nearest to `now`, without what has faded away."""
        half_lives = math.floor(now / half_life_seconds + 0.5)
        reference = half_lives * half_life_seconds
        factor = math.ldexp(1.0, round((self.reference_seconds - reference) / half_life_seconds))
        weights = array("d", (weight * factor for weight in array("d", self.weights)))
        held = [n for n, weight in enumerate(weights) if weight >= _EMPTY_WEIGHT]
        if not held:
            return Histogram(reference)
        return Histogram(reference, self.first + held[0], weights[held[0] : held[-1] + 1].tobytes())
