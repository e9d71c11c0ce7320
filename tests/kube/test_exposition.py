"""What Prometheus reads of a table: each row with its type and help, numbers counted here or kept elsewhere."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from kube.exposition import Instruments, registry_of
from model.metrics import ADMISSION, AGENT, SCHEDULER, TABLES, MetricSample, MetricTable, MetricType


def families(registry: CollectorRegistry) -> Mapping[str, Family]:
    text = generate_latest(registry).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def values(registry: CollectorRegistry) -> dict[tuple[str, ...], float]:
    """Name and label values → number."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families(registry).values()
        for sample in family.samples
    }


def filled(table: MetricTable) -> CollectorRegistry:
    """Every row with a number."""
    if table is AGENT:
        one = {row.name: [MetricSample(1, tuple("x" for _ in row.labels))] for row in table.rows}
        return registry_of(table, lambda: one)
    made = Instruments(table)
    for row in table.rows:
        labels = tuple("x" for _ in row.labels)
        if row.type is MetricType.COUNTER:
            made.count(row.name, *labels)
        elif row.type is MetricType.GAUGE:
            made.set(row.name, 1, *labels)
        else:
            made.observe(row.name, 1, *labels)
    return made.registry


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.program)
def test_each_row_has_its_help_and_type(table: MetricTable) -> None:
    """And its labels; the process itself is described too, and nothing else."""
    found = families(filled(table))
    rows = {table.full_name(row).removesuffix("_total"): row for row in table.rows}
    assert {name for name in found if not name.startswith("process_")} == rows.keys()
    assert "process_cpu_seconds" in found
    for name, row in rows.items():
        family = found[name]
        assert (family.documentation, family.type) == (row.help, row.type.value)
        assert {label for sample in family.samples for label in sample.labels} - {"le"} == set(row.labels)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.program)
def test_promtool_finds_nothing_to_criticise(table: MetricTable) -> None:
    """`promtool check metrics` knows Prometheus' naming."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool: Debian package prometheus")
    text = generate_latest(filled(table))
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, timeout=30)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_numbers_are_read_at_each_scrape() -> None:
    """A number that is not known has no series; label values are what they are."""
    now = {row.name: [] for row in AGENT.rows} | {
        "ticks_total": [MetricSample(3)],
        "cpu_usage_cores": [MetricSample(1.5, ("node",)), MetricSample(2, ('a"b\\c',))],
    }
    registry = registry_of(AGENT, lambda: now)
    assert values(registry)["sublet_agent_ticks_total",] == 3
    assert values(registry)["sublet_agent_cpu_usage_cores", 'a"b\\c'] == 2
    assert families(registry)["sublet_agent_limit"].samples == []
    now["ticks_total"] = [MetricSample(4)]
    assert values(registry)["sublet_agent_ticks_total",] == 4


def test_numbers_are_counted() -> None:
    """By labels; rows without labels begin at 0, and no series says when it was made."""
    made = Instruments(SCHEDULER)
    made.count("attempts_total", "scheduled", by=2)
    made.count("attempts_total", "scheduled")
    made.observe("preemption_victims", 3)
    made.set("waiting_workloads", 5, "ready")
    found = values(made.registry)
    assert found["sublet_scheduler_attempts_total", "scheduled"] == 3
    assert found["sublet_scheduler_preemption_victims_sum",] == 3
    assert found["sublet_scheduler_preemption_victims_bucket", "2.0"] == 0
    assert found["sublet_scheduler_preemption_victims_bucket", "4.0"] == 1
    assert found["sublet_scheduler_waiting_workloads", "ready"] == 5
    assert found["sublet_scheduler_link_restarts_total",] == 0
    assert not [name for name, *_ in found if name.endswith("_created")]


def test_what_is_kept_elsewhere_is_read() -> None:
    """A counter stays one; the newest of several readers counts."""
    made = Instruments(ADMISSION)
    numbers = [4.0]
    made.watch({"leader": lambda: 1.0})
    made.watch({"leader": lambda: numbers[0]})
    scheduler = Instruments(SCHEDULER)
    scheduler.watch({"dropped_events_total": lambda: numbers[0]})
    assert families(scheduler.registry)["sublet_scheduler_dropped_events"].type == "counter"
    for number in (4.0, 7.0):
        numbers[0] = number
        assert values(made.registry)["sublet_admission_leader",] == number
        assert values(scheduler.registry)["sublet_scheduler_dropped_events_total",] == number


def test_series_that_are_read_together() -> None:
    """What is not given any more has no series; the other rows are counted as before."""
    made, row = Instruments(SCHEDULER), "training_job_queue_length"
    now: dict[str, list[MetricSample]] = {row: [MetricSample(2, ("a", "1")), MetricSample(1, ("b", "1"))]}
    made.follow(lambda: now, row)
    made.count("gang_timeouts_total")
    assert (values(made.registry)[row, "1", "a"], values(made.registry)["sublet_scheduler_gang_timeouts_total",]) == (
        2,
        1,
    )
    now[row] = [MetricSample(3, ("b", "1"))]
    assert {key: value for key, value in values(made.registry).items() if key[0] == row} == {(row, "1", "b"): 3}
