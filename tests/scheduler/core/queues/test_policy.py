"""The policy of queues: its words and the rules that follow."""

from __future__ import annotations

import msgspec
import pytest

from scheduler.core.queues.policy import QueuePolicy
from scheduler.core.queues.shares import GuaranteeRule, QuotaMode, ShareRules


def test_the_usual_rules() -> None:
    """Queues' own amounts count, and guarantees come on top."""
    assert QueuePolicy().rules == ShareRules(QuotaMode.CAPACITY, GuaranteeRule.ADDED)


def test_the_names_of_settings() -> None:
    """As a settings file has them."""
    told = {"quota_mode": "proportion", "guarantee": "floor", "reclaim_ancestor_levels": 1, "fair_sharing": False}
    found = msgspec.convert(told, QueuePolicy)
    assert found.rules == ShareRules(QuotaMode.PROPORTION, GuaranteeRule.FLOOR)
    assert (found.reclaim_ancestor_levels, found.fair_sharing) == (1, False)


@pytest.mark.parametrize(
    "told", [{"quota_mode": "fair"}, {"usage_half_life_seconds": 0}, {"reclaim_ancestor_levels": -1}, {"shares": 1}]
)
def test_what_is_refused(told: dict[str, object]) -> None:
    """Another word, a number out of bounds, a name that there is not."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(told, QueuePolicy)
