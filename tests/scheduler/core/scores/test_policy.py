"""Profiles map scheduler names to score settings; settings that make no sense are refused when they are read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from model.scoring import ScoringStrategyType
from scheduler.core.scores.policy import PROFILES, SchedulerProfile, ScorePolicy, policy_for, served

PACKING = SchedulerProfile(("packer", "volcano"), ScorePolicy(strategy=ScoringStrategyType.BINPACK))


def test_default_profile_serves_three_names() -> None:
    assert served(PROFILES) == ("koord-scheduler", "sublet-scheduler", "volcano")


def test_a_name_of_two_profiles_is_served_once() -> None:
    assert served((PACKING, *PROFILES)) == ("packer", "volcano", "koord-scheduler", "sublet-scheduler")


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("packer", ScoringStrategyType.BINPACK),
        ("koord-scheduler", ScoringStrategyType.SPREAD),
        ("stranger", ScoringStrategyType.SPREAD),
    ],
)
def test_the_first_profile_of_a_name_counts(name: str, strategy: ScoringStrategyType) -> None:
    assert policy_for((PACKING, *PROFILES), name).strategy is strategy


REFUSED = [
    ("a falling shape", {"shape": [{"utilization_pct": 50, "score": 1}, {"utilization_pct": 10, "score": 2}]}),
    ("two points at one place", {"shape": [{"utilization_pct": 50, "score": 1}, {"utilization_pct": 50, "score": 2}]}),
    ("no point", {"shape": []}),
    ("a negative weight", {"fit_weight": -1}),
    ("a strategy nobody knows", {"strategy": "Random"}),
    ("a resource without weight", {"resources": [{"name": "cpu", "weight": 0}]}),
]


@pytest.mark.parametrize("document", [c[1] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_refused(document: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(document, ScorePolicy)
