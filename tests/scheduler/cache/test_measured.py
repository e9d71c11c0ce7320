"""What NodeMetrics amount to as they come from the API server."""

from __future__ import annotations

from typing import Any

import pytest

from kube import objects
from model.fault import ConfigurationFault
from scheduler.cache.measured import MeasuredLoads
from scheduler.core.ledger.ledger import Ledger
from scheduler.core.load.policy import LoadPolicy

NOW = 10_000.0
UNREADABLE = {"updateTime": "1970-01-01T02:46:40Z", "nodeMetric": {"nodeUsage": {"resources": {"cpu": "much"}}}}


def metric(status: Any) -> objects.NodeMetric:
    return objects.NodeMetric(metadata=objects.Metadata(name="n1"), status=status)


def expired(loads: MeasuredLoads) -> bool:
    drawn = loads.arrays(("n1",), NOW)
    assert drawn is not None
    return bool(drawn.expired(drawn.limited)[0])


def test_an_unreadable_node_metric_says_nothing() -> None:
    """It is there, so the node's use is unknown as that of a NodeMetric that was never filled."""
    loads = MeasuredLoads(LoadPolicy(), Ledger())
    with pytest.raises(ConfigurationFault, match="NodeMetric n1: status"):
        loads.metric(metric(UNREADABLE), NOW, gone=False)
    assert expired(loads)
    loads.metric(metric(UNREADABLE), NOW, gone=True)
    assert loads.arrays(("n1",), NOW) is None


def test_a_node_metric_without_a_status() -> None:
    loads = MeasuredLoads(LoadPolicy(), Ledger())
    loads.metric(metric(None), NOW, gone=False)
    assert expired(loads)
