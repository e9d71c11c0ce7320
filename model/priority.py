"""Kubernetes' pod priority: what a PriorityClass says besides its value."""

from __future__ import annotations

from enum import StrEnum

import msgspec

SYSTEM_PRIORITY = 2_000_000_000
"""system-cluster-critical; nobody from here up is preempted."""


class PreemptionPolicy(StrEnum):
    """Whether others may be evicted for it; ALWAYS is ours: also those of equal priority that came later."""

    NEVER = "Never"
    LOWER = "PreemptLowerPriority"
    ALWAYS = "PreemptAlways"


class PriorityClass(msgspec.Struct, frozen=True):
    """An object as such, since value and policy belong together."""

    name: str
    value: int = 0
    policy: PreemptionPolicy = PreemptionPolicy.LOWER
    global_default: bool = False
