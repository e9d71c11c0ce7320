"""Throttling of pods: enforcement periods in which a pod ran out of quota, of all its periods."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agent.core.observe.observation import CgroupSample, CpuThrottling, Observation

_HELD_SECONDS = 15.0
"""Longer than the slow turn in which counters of online pods are read."""


class Throttle(msgspec.Struct, frozen=True, gc=False):
    """A pod's counters when they last moved, at monotonic `at_seconds`, and the ratio between then and before."""

    counters: CpuThrottling
    at_seconds: float
    ratio: float | None = None


def throttles(before: Mapping[str, Throttle], observation: Observation) -> dict[str, Throttle]:
    """By uid, every pod whose counters could be read."""
    return {
        uid: _throttle(before.get(uid), sample.throttling, observation.monotonic_seconds)
        for uid, sample in observation.pods.items()
        if isinstance(sample, CgroupSample) and sample.throttling
    }


def _throttle(before: Throttle | None, counters: CpuThrottling, at_seconds: float) -> Throttle:
    """Counters that stand still keep their ratio for a while; counters that went back begin again."""
    if before is None:
        return Throttle(counters, at_seconds)
    periods = counters.periods - before.counters.periods
    throttled = counters.throttled - before.counters.throttled
    if periods == 0 and at_seconds - before.at_seconds <= _HELD_SECONDS:
        return before
    possible = periods > 0 and 0 <= throttled <= periods
    return Throttle(counters, at_seconds, throttled / periods if possible else None)
