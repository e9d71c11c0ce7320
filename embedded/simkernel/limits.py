"""What control files ask for, and by what an ordinary process can have it: pure decisions.

A quota is had by stopping: each cgroup has a bucket that its quota fills and its CPU time empties, and whoever is in
an empty one stops until there is something in it again. Over a second that is the kernel's bandwidth control; within a
period it is coarser (kernel Documentation/scheduler/sched-bwc.rst).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from embedded.cpu_lists import parse_cpus

_DEFAULT_WEIGHT, _NICEST = 100, 19
_US = 1_000_000
CONTROLS = (
    *("cpu.max", "cpu.weight", "cpu.idle", "cpuset.cpus"),
    *("memory.max", "memory.high", "memory.oom.group"),
)


class Controls(msgspec.Struct, frozen=True):
    """What one cgroup's control files say; None is no limit, an empty `cpus` all of the parent's."""

    quota_us: int | None = None
    period_us: int = 100_000
    weight: int = _DEFAULT_WEIGHT
    idle: bool = False
    cpus: tuple[int, ...] = ()
    memory_max: int | None = None
    memory_high: int | None = None
    kills_together: bool = False


def controls(texts: Mapping[str, str], before: Controls) -> Controls:
    """From the files' content; what cannot be read at this moment, as while it is written, stays as it was."""
    with suppress(ValueError, KeyError):
        quota, period = texts["cpu.max"].split()
        return Controls(
            quota_us=_limit(quota),
            period_us=max(int(period), 1000),
            weight=int(texts["cpu.weight"]),
            idle=int(texts["cpu.idle"]) > 0,
            cpus=_cpus(texts["cpuset.cpus"]),
            memory_max=_limit(texts["memory.max"]),
            memory_high=_limit(texts["memory.high"]),
            kills_together=int(texts["memory.oom.group"]) > 0,
        )
    return before


class Bucket(msgspec.Struct):
    """CPU time that a cgroup may still use now."""

    tokens_us: float = 0.0
    periods: float = 0.0
    counted: int = 0
    throttled: int = 0
    throttled_us: float = 0.0
    stopped: bool = False

    def step(self, limit: Controls, passed_seconds: float, used_us: int) -> bool:
        """Whether everything inside must stop, after so much time in which it used so much."""
        if limit.quota_us is None:
            self.tokens_us, self.stopped = 0.0, False
            return False
        earned = limit.quota_us / limit.period_us * passed_seconds * _US
        self.tokens_us = min(self.tokens_us + earned, limit.quota_us) - used_us
        self._count(limit, passed_seconds)
        self.stopped = round(self.tokens_us) < 0
        return self.stopped

    def _count(self, limit: Controls, passed_seconds: float) -> None:
        self.periods += passed_seconds * _US / limit.period_us
        if self.stopped:
            self.throttled_us += passed_seconds * _US
        if int(self.periods) > self.counted:
            self.throttled += int(self.periods) - self.counted if self.stopped or self.tokens_us < 0 else 0
            self.counted = int(self.periods)


class Priority(msgspec.Struct, frozen=True):
    """How little a process may insist on the CPU; `idle` is SCHED_IDLE."""

    nice: int = 0
    idle: bool = False


def priority(chain: Sequence[Controls]) -> Priority:
    """For the cgroups from the top down to the process's own.

    Only the least weight, which is kubelet's for best effort, is imitated: a person cannot take niceness back, and how
    other weights relate changes with each pod that comes or goes.
    """
    least = any(each.weight <= 1 for each in chain)
    return Priority(_NICEST if least else 0, any(each.idle for each in chain))


def allowed_cpus(chain: Sequence[Controls], all_cpus: tuple[int, ...]) -> tuple[int, ...]:
    """As the kernel gives them (cpuset.cpus.effective): what is not its parent's counts as not asked for."""
    allowed = all_cpus
    for each in chain:
        allowed = tuple(cpu for cpu in allowed if cpu in each.cpus) or allowed
    return allowed


def _limit(text: str) -> int | None:
    word = text.strip()
    return None if word == "max" else int(word)


def _cpus(text: str) -> tuple[int, ...]:
    """An empty list is a line without anything; no line at all is a file that is being written."""
    if not text:
        raise ValueError("no line")
    return parse_cpus(text)
