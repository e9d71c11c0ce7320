"""What Prometheus reads of the agent."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from agent.edge.metrics import registry
from agent.report.metrics import ROWS, MetricSample


def read() -> Mapping[str, list[MetricSample]]:
    """A counter, a gauge with labels; nothing is known of the other rows."""
    return {row.name: [] for row in ROWS} | {
        "sublet_agent_ticks_total": [MetricSample(3)],
        "sublet_agent_cpu_usage_cores": [MetricSample(1.5, ("node",)), MetricSample(2, ('a"b\\c',))],
    }


def test_metrics() -> None:
    """Each row with its help and type and its series; an unknown number has no series."""
    text = generate_latest(registry(read)).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert "process_cpu_seconds" in families
    for row in ROWS:
        counter = row.name.endswith("_total")
        family = families[row.name.removesuffix("_total")]
        assert (family.documentation, family.type) == (row.help, "counter" if counter else "gauge")
    assert families["sublet_agent_ticks"].samples[0].value == 3
    labels = {s.labels["consumer"]: s.value for s in families["sublet_agent_cpu_usage_cores"].samples}
    assert labels == {"node": 1.5, 'a"b\\c': 2}
    assert families["sublet_agent_limit"].samples == []
