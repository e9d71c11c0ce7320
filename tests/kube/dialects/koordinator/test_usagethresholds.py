"""A node's own limits of use, as Koordinator writes them."""

from __future__ import annotations

import pytest

from kube.dialects.koordinator.usagethresholds import ANNOTATION, load_limits
from model.fault import ConfigurationFault
from model.loadlimits import LoadLimits, Statistic, StatisticKind, UsageLimits

CASES: dict[str, tuple[str, LoadLimits]] = {
    "nothing": ("", LoadLimits()),
    "an empty object": ("{}", LoadLimits()),
    "all use": ('{"usageThresholds": {"cpu": 80, "memory": 70}}', LoadLimits(UsageLimits(80, 70))),
    "prod use": ('{"prodUsageThresholds": {"cpu": 55}}', LoadLimits(prod=UsageLimits(55))),
    "another resource says nothing": ('{"usageThresholds": {"disk": 80}}', LoadLimits()),
    "a statistic": (
        '{"aggregatedUsage": {"usageThresholds": {"cpu": 60}, "usageAggregationType": "p95", "usageAggregatedDuration": "5m"}}',
        LoadLimits(aggregated=UsageLimits(60), statistic=Statistic(StatisticKind.P95, 300.0)),
    ),
    "a statistic without a kind": ('{"aggregatedUsage": {"usageThresholds": {"cpu": 60}}}', LoadLimits()),
    "a statistic without limits": ('{"aggregatedUsage": {"usageAggregationType": "avg"}}', LoadLimits()),
}


@pytest.mark.parametrize(("text", "wanted"), CASES.values(), ids=CASES.keys())
def test_load_limits(text: str, wanted: LoadLimits) -> None:
    assert load_limits({ANNOTATION: text}, "Node n1") == wanted


def test_without_the_annotation() -> None:
    assert load_limits({}, "Node n1") == LoadLimits()


WRONG = {
    "no object": "[]",
    "no JSON": "{",
    "beyond all": '{"usageThresholds": {"cpu": 101}}',
    "a kind nobody knows": '{"aggregatedUsage": {"usageAggregationType": "p42"}}',
    "no duration": '{"aggregatedUsage": {"usageAggregatedDuration": "soon"}}',
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_refused(text: str) -> None:
    with pytest.raises(ConfigurationFault, match=f"Node n1: annotation {ANNOTATION}"):
        load_limits({ANNOTATION: text}, "Node n1")
