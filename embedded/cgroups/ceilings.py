"""Values for one cgroup, from amounts of CPU and memory, with the kubelet's formulas.

Source: kubernetes pkg/kubelet/cm/helpers_linux.go.
"""

from __future__ import annotations

import msgspec

PERIOD_US = 100_000
_LEAST_QUOTA_US = 1_000
_LEAST_SHARES = 2
_MOST_SHARES = 262_144
_SHARES_PER_CPU = 1_024


class Ceiling(msgspec.Struct, frozen=True):
    """Values for one cgroup; None leaves the kernel's default (no ceiling)."""

    cpu_shares: int
    cpu_quota_us: int | None = None
    memory_limit_bytes: int | None = None

    def widest(self, other: Ceiling) -> Ceiling:
        """What covers both."""
        return Ceiling(
            max(self.cpu_shares, other.cpu_shares),
            _larger(self.cpu_quota_us, other.cpu_quota_us),
            _larger(self.memory_limit_bytes, other.memory_limit_bytes),
        )


def _larger(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else max(left, right)


def shares(cpu_millis: int) -> int:
    """cpu.shares for a CPU request."""
    return min(max(cpu_millis * _SHARES_PER_CPU // 1000, _LEAST_SHARES), _MOST_SHARES)


def quota_us(cpu_millis: int) -> int | None:
    """cpu.cfs_quota_us per PERIOD_US for a CPU limit; None for no limit."""
    return max(cpu_millis * PERIOD_US // 1000, _LEAST_QUOTA_US) if cpu_millis > 0 else None
