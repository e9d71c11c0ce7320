"""What the admission program counts."""

from __future__ import annotations

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from admission.edge.metrics import AdmissionMetrics


def test_what_is_counted() -> None:
    """Reviews with their time, selected pods, writes of certificates; the rest is read at each scrape."""
    metrics = AdmissionMetrics()
    metrics.reviewed("Pod", "changed", 0.25)
    metrics.reviewed("Pod", "changed", 0.5)
    metrics.profiled("batch", "Applied")
    metrics.wrote("Secret")
    metrics.watch({"cluster_silent_seconds": lambda: 9.0})
    families = text_string_to_metric_families(generate_latest(metrics.registry).decode())
    found = {
        (sample.name.removeprefix("sublet_admission_"), *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if sample.name.startswith("sublet_") and not sample.name.endswith("_bucket") and sample.value
    }
    assert found == {
        ("reviews_total", "Pod", "changed"): 2,
        ("review_duration_seconds_count",): 2,
        ("review_duration_seconds_sum",): 0.75,
        ("profile_pods_total", "batch", "Applied"): 1,
        ("certificate_writes_total", "Secret"): 1,
        ("cluster_silent_seconds",): 9,
    }
