"""CPU normalization: how much faster this node's CPUs are than the reference machine.

Source: Koordinator pkg/slo-controller/noderesource/plugins/cpunormalization.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from model.nodecolocation import LABEL_NORMALIZATION
from model.strategy import NormalizationStrategy, RatioModel
from model.topology import CpuBasics

_SLOWEST = 1.0
_FASTEST = 5.0
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")
"""What Go's strconv.ParseBool reads."""


class Ratio(msgspec.Struct, frozen=True):
    """`used` multiplies batch-cpu, `written` belongs in the Node's annotation; None does nothing."""

    used: float | None = None
    written: float | None = None


def normalization_ratio(
    strategy: NormalizationStrategy, labels: Mapping[str, str], cpu: CpuBasics | None, annotated: float | None
) -> Ratio:
    """The ratio with two decimals, 1.0 where normalization is off, none where it cannot be told.

    The node's label beats the strategy. Without any strategy somebody else may keep the ratio in the Node's
    annotation (`annotated`), which then counts as far as the strategy allows, and is left to them. A label that is
    neither true nor false tells nothing.
    """
    label = labels.get(LABEL_NORMALIZATION)
    if label in _FALSE:
        return Ratio(1.0, 1.0)
    if label is not None and label not in _TRUE:
        return Ratio()
    if not strategy.is_set:
        valid = _valid(annotated)
        return Ratio(used=None if valid is None else min(valid, strategy.largest_annotated_ratio))
    if label is None and not strategy.enable:
        return Ratio(1.0, 1.0)
    ratio = _valid(_of_model(strategy, cpu))
    return Ratio(ratio, ratio)


def _of_model(strategy: NormalizationStrategy, cpu: CpuBasics | None) -> float | None:
    """The model's ratio for what is switched on, the default for a model that has none; nothing for unknown CPUs."""
    if cpu is None:
        return None
    model = strategy.models.get(cpu.model, RatioModel())
    if cpu.hyper_threading:
        ratio = model.hyper_threading_turbo if cpu.turbo else model.hyper_threading
    else:
        ratio = model.turbo if cpu.turbo else model.base
    return strategy.default_ratio if ratio is None else ratio


def _valid(ratio: float | None) -> float | None:
    """Out of range is a mistake in somebody's table: multiplying by it could lend without bounds."""
    return round(ratio, 2) if ratio is not None and _SLOWEST <= ratio <= _FASTEST else None
