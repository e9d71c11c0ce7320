"""Burst tokens: for how long a container may use more than its CPU limit, by what it left of it before; and how busy
the CPUs are that online pods share. Source: Koordinator pkg/koordlet/qosmanager/plugins/cpuburst (burstLimiter).
"""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec

from agent.core.limit.cpu_burst import BurstFacts
from agent.core.observe.observation import CgroupSample, Missing
from agent.core.observe.usage import NodeUsage
from model.pod.pod import Pod
from model.qos import QoSClass
from model.resources import CPU
from model.strategy import BurstStrategy

_RESERVED = (QoSClass.LSE, QoSClass.LSR)
_COOLING_PCT = 90
"""Of the threshold: from here on nothing is raised."""
_SPENDS_PCT, _SAVES_PCT = 100, 60
_FIRST_PART = 4
"""A container begins with one part of these of what it may save; in Koordinator with a random part up to a half."""
_NS_PER_US = 1000


class PoolState(StrEnum):
    """How busy the CPUs are that online pods share."""

    OVERLOAD = "busy"
    COOLING = "nearly busy"
    IDLE = "idle"
    UNKNOWN = "not measured"


class SharedPool(msgspec.Struct, frozen=True):
    """All CPUs but those that LSE and LSR pods request, and how busy they are."""

    millis: int
    state: PoolState


class Tokens(msgspec.Struct, frozen=True, gc=False):
    """What a container saved, in percent of its limit times seconds, and how much it may save or owe at most; its
    counters, and when they were read and when it was throttled last (monotonic seconds)."""

    saved: float
    most: int
    cpu_ns: int
    throttled: int
    at_seconds: float
    throttled_at: float = -math.inf

    @classmethod
    def after(
        cls, before: Tokens | None, sample: CgroupSample | Missing | None, limit_us: int, now: float, most: int
    ) -> Tokens | None:
        """None while nothing was measured; counters that went back, and another `most`, begin again."""
        if not isinstance(sample, CgroupSample) or sample.throttling is None:
            return before
        throttled = sample.throttling.throttled
        if before is None or most != before.most or sample.cpu_ns < before.cpu_ns:
            return cls(most / _FIRST_PART, most, sample.cpu_ns, throttled, now)
        seconds = max(now - before.at_seconds, 0.001)
        used_us = (sample.cpu_ns - before.cpu_ns) / _NS_PER_US
        # A limit counts per period of 100 ms.
        used_pct = used_us / (seconds * 10 * limit_us) * 100
        change = 0.0 if _SAVES_PCT <= used_pct < _SPENDS_PCT else (100 - used_pct) * seconds
        saved = min(max(before.saved + change, -most), most)
        throttled_at = now if throttled > before.throttled else before.throttled_at
        return cls(saved, most, sample.cpu_ns, throttled, now, throttled_at)


def _granted_millis(pod: Pod) -> int:
    return (pod.spec.requests if pod.spec.certain is None else pod.spec.certain)[CPU]


def most_tokens(strategy: BurstStrategy) -> int:
    """What a container may save; 0 without a period."""
    return max(strategy.quota_seconds, 0) * max(strategy.quota_pct - 100, 0)


def shared_pool(usage: NodeUsage | None, capacity_millis: int, facts: BurstFacts) -> SharedPool:
    """Use is the average of the live window; best effort's does not count, since it gives way."""
    listed = (pod for pod in facts.listed if pod.colocation.qos_label in _RESERVED and not pod.terminal)
    # One that its kubelet has not admitted, and what a resize only asks for, takes bursts from nobody.
    reserved = [pod for pod in listed if usage is None or pod.uid in usage.pods]
    millis = max(capacity_millis - sum(_granted_millis(pod) for pod in reserved), 0)
    if usage is None or facts.pods is None:
        return SharedPool(millis, PoolState.UNKNOWN)
    apart = sum(usage.pods[pod.uid].live.cpu_millis for pod in reserved)
    used = max(usage.node.live.cpu_millis - usage.best_effort.live.cpu_millis - apart, 0)
    used_pct, threshold = used * 100 / millis if millis else 100.0, facts.strategy.pool_pct
    if used_pct >= threshold:
        return SharedPool(millis, PoolState.OVERLOAD)
    cooling = used_pct * 100 >= threshold * _COOLING_PCT
    return SharedPool(millis, PoolState.COOLING if cooling else PoolState.IDLE)
