"""Settings that follow from others, and one that contradicts another."""

from __future__ import annotations

import msgspec
import pytest

from model.strategy import (
    ColocationStrategy,
    EvictionStrategy,
    NormalizationStrategy,
    RatioModel,
    SuppressPolicy,
    SuppressStrategy,
)


@pytest.mark.parametrize(
    ("policy", "told", "ceiling", "weight_first"),
    [
        (SuppressPolicy.ADAPTIVE, None, 99, True),
        (SuppressPolicy.CFS_QUOTA, None, 65, False),
        (SuppressPolicy.CPUSET, None, 65, False),
        (SuppressPolicy.ADAPTIVE, 40, 40, False),
        (SuppressPolicy.CFS_QUOTA, 90, 90, False),
    ],
)
def test_the_threshold_by_policy(policy: SuppressPolicy, told: int | None, ceiling: int, weight_first: bool) -> None:
    """Koordinator's 65 for its own policies; whoever names one has all online use counted."""
    strategy = SuppressStrategy(policy=policy, threshold_pct=told)
    assert (strategy.ceiling_pct, strategy.weight_first) == (ceiling, weight_first)


def test_a_window_longer_than_what_is_kept() -> None:
    """Refused where it is written."""
    with pytest.raises(msgspec.ValidationError, match="live_window_seconds must not exceed aggregate_seconds"):
        msgspec.json.decode('{"aggregate_seconds": 60, "live_window_seconds": 61}', type=ColocationStrategy)
    same = msgspec.json.decode('{"aggregate_seconds": 60, "live_window_seconds": 60}', type=ColocationStrategy)
    assert same.live_window_seconds == 60


def test_a_grace_has_its_bound() -> None:
    """What a pod wants, up to the longest."""
    strategy = EvictionStrategy(longest_grace_seconds=30)
    assert [strategy.grace_seconds(wanted) for wanted in (0.0, 30.0, 31.0)] == [0.0, 30.0, 30.0]


@pytest.mark.parametrize(
    ("strategy", "is_set"),
    [
        (NormalizationStrategy(), False),
        (NormalizationStrategy(enable=True), True),
        (NormalizationStrategy(default_ratio=1.0), True),
        (NormalizationStrategy(models={"fast": RatioModel()}), True),
        (NormalizationStrategy(largest_annotated_ratio=2.0), False),
    ],
)
def test_whether_anything_is_said_of_ratios(strategy: NormalizationStrategy, is_set: bool) -> None:
    """The bound on what others may write says nothing."""
    assert strategy.is_set is is_set
