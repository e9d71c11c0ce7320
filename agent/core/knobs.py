"""The control files the agent owns, for both cgroup versions, and their text as one number each.

On cgroup v2 `cpu.max` holds quota and period in one file; its number here is the quota counted per 100 ms, so that one
ceiling serves both versions. Source: kernel Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cpusets and sched-bwc.
"""

from __future__ import annotations

import msgspec

from agent.core.layout import Layout
from agent.core.observation import Knob
from agent.core.parse import whole_number

PERIOD_US = 100_000
"""The period kubelet leaves in force; one milli-CPU is 100 us of quota."""
UNLIMITED = -1
_SHORTEST_PERIOD_US = 1000
_LARGEST_QUOTA_US = 1 << 44
"""Bounds of the kernel's own (kernel/sched/core.c: min_cfs_quota_period, max_cfs_runtime)."""


class FixedKnob(msgspec.Struct, frozen=True):
    """A knob with one right value, verified each tick."""

    knob: Knob
    value: int


class Knobs(msgspec.Struct, frozen=True):
    """The best-effort root's CPU ceiling, and the knobs that are held at one value."""

    quota: Knob
    fixed: tuple[FixedKnob, ...]

    @classmethod
    def of(cls, layout: Layout) -> Knobs:
        """The kernel's smallest weight (kubelet's choice for best effort), and on v1 the period the quota counts on."""
        root = layout.best_effort
        if layout.version == 2:
            return cls(Knob(root, "", "cpu.max"), (FixedKnob(Knob(root, "", "cpu.weight"), 1),))
        period = FixedKnob(Knob(root, "cpu", "cpu.cfs_period_us"), PERIOD_US)
        weight = FixedKnob(Knob(root, "cpu", "cpu.shares"), 2)
        return cls(Knob(root, "cpu", "cpu.cfs_quota_us"), (period, weight))

    @property
    def all(self) -> tuple[Knob, ...]:
        return (self.quota, *(fixed.knob for fixed in self.fixed))


def value_of(knob: Knob, text: bytes) -> int:
    """What the file says, as a number. Raises ValueError saying what is wrong."""
    if knob.file != "cpu.max":
        return whole_number(text)
    quota, _, period = text.partition(b" ")
    length = whole_number(period)
    amount = UNLIMITED if quota == b"max" else whole_number(quota)
    if length < _SHORTEST_PERIOD_US or not UNLIMITED <= amount <= _LARGEST_QUOTA_US:
        raise ValueError(f"{text[:60]!r} is not a quota and a period")
    return amount if amount == UNLIMITED else amount * PERIOD_US // length


def text_of(knob: Knob, value: int) -> str:
    """What to write so that the kernel holds `value`."""
    if knob.file != "cpu.max":
        return str(value)
    return f"max {PERIOD_US}" if value == UNLIMITED else f"{value} {PERIOD_US}"
