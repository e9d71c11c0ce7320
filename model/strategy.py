"""How a node's idle resources are lent and taken back: the settings of Koordinator's API, with our defaults.

Names follow Koordinator's ConfigMap `slo-controller-config` and NodeSLO; percentages are 0 to 100.
"""

from __future__ import annotations

import msgspec


class ColocationStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may be lent (Koordinator ColocationStrategy; defaults of pkg/util/sloconfig)."""

    enable: bool = True
    cpu_reclaim_threshold_pct: int = 60
    memory_reclaim_threshold_pct: int = 65
    aggregate_seconds: float = 300.0
    live_window_seconds: float = 10.0
    degrade_seconds: float = 900.0
    update_interval_seconds: float = 300.0
    resource_diff_ratio: float = 0.1

    def __post_init__(self) -> None:
        _within(self, "cpu_reclaim_threshold_pct", 0, 1000)
        _within(self, "memory_reclaim_threshold_pct", 0, 1000)
        _within(self, "aggregate_seconds", 10, 3600)
        _within(self, "live_window_seconds", 5, self.aggregate_seconds)
        _within(self, "degrade_seconds", 60, 86_400)
        _within(self, "update_interval_seconds", 10, 3600)
        _within(self, "resource_diff_ratio", 0, 1)


class SuppressStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far best-effort CPU may go (NodeSLO resourceUsedThresholdWithBE).

    `threshold_pct` of the node's capacity is what online, system and best-effort work may use together;
    `min_pct` is best effort's floor. The default is a cap near the whole node, since the weight already protects
    online work (docs/adr/0003); Koordinator's own default is 65.
    """

    enable: bool = True
    threshold_pct: int = 95
    min_pct: int | None = None
    policy: str = "adaptive"

    def __post_init__(self) -> None:
        _within(self, "threshold_pct", 0, 100)
        if self.min_pct is not None:
            _within(self, "min_pct", 0, 100)


def _within(strategy: msgspec.Struct, field: str, low: float, high: float) -> None:
    """Raise ValueError naming the field; msgspec adds where in the document it stands."""
    if not low <= getattr(strategy, field) <= high:
        raise ValueError(f"{field} must be between {low:g} and {high:g}")
