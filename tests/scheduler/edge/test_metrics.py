"""Metrics from one table."""

from __future__ import annotations

import re
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from scheduler.edge.metrics import METRICS, Metrics


@pytest.mark.parametrize("row", METRICS, ids=lambda row: row.name)
def test_every_row_is_named_as_promtool_wants(row: Any) -> None:
    """Counters end in _total, histograms carry their unit, help ends with a full stop.

    What was dropped or begun since the start only grows, so that a rate can be taken of it.
    """
    assert row.name.endswith("_total") == (row.type == "counter")
    assert row.type != "histogram" or row.name.endswith(("_seconds", "_victims"))
    assert row.help.endswith(".")
    assert row.type == "counter" or not re.search(r"dropped|restarts|since the start|Times", row.name + row.help)


def test_what_is_counted() -> None:
    """Parses, with the values that were told."""
    metrics = Metrics(CollectorRegistry())
    metrics.cycle(0.002, scheduled=2, unschedulable=1)
    metrics.bound(0.01, "bound")
    metrics.waited(3.0)
    metrics.waiting(candidates=5, parked=2, held=1)
    metrics.refused("Pod")
    metrics.watch({"links": lambda: 4, "dropped_events_total": lambda: 7})
    families = {
        family.name: family for family in text_string_to_metric_families(generate_latest(metrics.registry).decode())
    }
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert families["sublet_scheduler_dropped_events"].type == "counter"
    assert samples["sublet_scheduler_dropped_events_total",] == 7
    assert samples["sublet_scheduler_link_restarts_total",] == 0
    assert samples["sublet_scheduler_attempts_total", "scheduled"] == 2
    assert samples["sublet_scheduler_waiting_workloads", "ready"] == 3
    assert samples["sublet_scheduler_links",] == 4
    assert not [name for name, *_ in samples if name.endswith("_created")]
