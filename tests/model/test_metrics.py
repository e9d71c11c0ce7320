"""Rows are named as Prometheus asks for, and say what they mean."""

from __future__ import annotations

import re

import pytest

from model.metrics import SCHEDULER, TABLES, Metric, MetricTable, MetricType, MetricUnit

ROWS = [(table, row) for table in TABLES for row in table.rows]
UNITS = (MetricUnit.SECONDS, MetricUnit.BYTES, MetricUnit.CORES, MetricUnit.RATIO)


@pytest.mark.parametrize(("table", "row"), ROWS, ids=[table.full_name(row) for table, row in ROWS])
def test_a_row(table: MetricTable, row: Metric) -> None:
    """A counter ends in _total and nothing else does; what only grows is a counter, so that a rate can be taken of it.

    A name ends in its base unit, a histogram has one or counts things; the help is a sentence that leaves tables whole.
    """
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", row.name)
    assert row.name.endswith("_total") == (row.type is MetricType.COUNTER)
    grows = re.search(r"dropped|restarts|failures", row.name) or re.search(r"since the start|^Times", row.help)
    assert row.type is MetricType.COUNTER or not grows
    last = row.name.removesuffix("_total").rpartition("_")[2]
    assert {unit.value for unit in UNITS} & {last, row.unit.value} in (set(), {last})
    assert bool(row.buckets) == (row.type is MetricType.HISTOGRAM) and list(row.buckets) == sorted(set(row.buckets))
    assert row.help.endswith(".") and not {"|", "\n"} & set(row.help)
    assert len(set(row.labels)) == len(row.labels) and "le" not in row.labels


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.program)
def test_each_name_stands_once(table: MetricTable) -> None:
    """Under the program's name."""
    assert len(table.by_name) == len(table.rows) > 5
    prefixed = {row.name for row in table.rows if row.prefixed}
    told = {table.full_name(row) for row in table.rows}
    assert told == {f"sublet_{table.program}_{name}" for name in prefixed} | (table.by_name.keys() - prefixed)


def test_metrics_of_training_clusters() -> None:
    """Names, types, labels and buckets are those that boards ask for: 0.1 s, or a minute, doubled fourteen times."""
    found = {row.name: (row.type, row.labels) for row in SCHEDULER.rows if not row.prefixed}
    assert found == {
        "training_job_scheduling_duration_seconds": (MetricType.HISTOGRAM, ("queue", "job_type", "result")),
        "training_job_queue_length": (MetricType.GAUGE, ("queue", "priority")),
        "training_cluster_resource_utilization": (MetricType.GAUGE, ("resource_type", "queue")),
        "training_job_preemptions_total": (MetricType.COUNTER, ("preemptor_queue", "victim_queue", "reason")),
        "training_queue_fairshare_deviation": (MetricType.GAUGE, ("queue",)),
        "training_gang_scheduling_total": (MetricType.COUNTER, ("result", "timeout")),
        "training_job_completion_seconds": (MetricType.HISTOGRAM, ("queue", "job_type", "status")),
        "training_checkpoint_saves_total": (MetricType.COUNTER, ("job", "reason", "status")),
    }
    ends = {"training_job_scheduling_duration_seconds": (0.1, 1638.4), "training_job_completion_seconds": (60, 983040)}
    for name, (first, last) in ends.items():
        buckets = SCHEDULER.by_name[name].buckets
        assert (buckets[0], buckets[-1], len(buckets)) == (first, pytest.approx(last), 15)


def test_the_programs() -> None:
    assert [table.program for table in TABLES] == ["agent", "scheduler", "admission"]
