"""What the scheduler counts."""

from __future__ import annotations

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from model.metrics import QUEUE_ROWS, MetricSample
from model.reason import Reason
from scheduler.edge.metrics import SchedulerMetrics


def test_what_is_counted() -> None:
    """Each word of scheduler.ports.Meter in its row."""
    metrics = SchedulerMetrics()
    metrics.cycle(0.002, scheduled=2, unschedulable=1)
    metrics.bound(0.01, "bound")
    metrics.waited(3.0)
    metrics.waiting(candidates=5, parked=2, held=1)
    metrics.timed_out(3)
    metrics.set_aside(4)
    metrics.considered(Reason.GANG_DOES_NOT_FIT)
    metrics.preempted(6)
    metrics.evicted("done")
    metrics.refused("Pod")
    metrics.job_ended_waiting(0.5, "train", "Job", "scheduled")
    metrics.gang_ended_waiting("timeout", timed_out=True)
    metrics.job_preempted("train", "batch", Reason.RECLAIMING)
    metrics.lost_work("train", 12.0)
    metrics.checkpoint("ml/bert", "notice", "complete")
    metrics.job_completed(90.0, "train", "PyTorchJob", "succeeded")
    queues = ("train", "batch")
    metrics.queues(queues, {**dict.fromkeys(QUEUE_ROWS, ()), QUEUE_ROWS[0]: [MetricSample(9, ("gone", "1"))]})
    metrics.queues(queues, {**dict.fromkeys(QUEUE_ROWS, ()), QUEUE_ROWS[0]: [MetricSample(2, ("train", "100"))]})
    metrics.watch({"links": lambda: 4, "dropped_events_total": lambda: 7})
    families = text_string_to_metric_families(generate_latest(metrics.registry).decode())
    found = {
        (sample.name.removeprefix("sublet_scheduler_"), *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if sample.name.startswith(("sublet_", "training_")) and not sample.name.endswith("_bucket") and sample.value
    }
    assert found == {
        ("cycle_duration_seconds_count",): 1,
        ("cycle_duration_seconds_sum",): 0.002,
        ("attempts_total", "scheduled"): 2,
        ("attempts_total", "unschedulable"): 1,
        ("binding_duration_seconds_count", "bound"): 1,
        ("binding_duration_seconds_sum", "bound"): 0.01,
        ("pod_wait_seconds_count",): 1,
        ("pod_wait_seconds_sum",): 3,
        ("waiting_workloads", "ready"): 3,
        ("waiting_workloads", "parked"): 2,
        ("waiting_workloads", "held"): 1,
        ("gang_timeouts_total",): 3,
        ("set_aside_total",): 4,
        ("preemption_outcomes_total", "GangDoesNotFit"): 1,
        ("preemption_attempts_total",): 1,
        ("preemption_victims_count",): 1,
        ("preemption_victims_sum",): 6,
        ("evictions_total", "done"): 1,
        ("refused_objects_total", "Pod"): 1,
        ("lost_work_seconds_total", "train"): 12,
        ("training_checkpoint_saves_total", "ml/bert", "notice", "complete"): 1,
        ("links",): 4,
        ("training_job_scheduling_duration_seconds_count", "Job", "train", "scheduled"): 1,
        ("training_job_scheduling_duration_seconds_sum", "Job", "train", "scheduled"): 0.5,
        ("training_job_completion_seconds_count", "PyTorchJob", "train", "succeeded"): 1,
        ("training_job_completion_seconds_sum", "PyTorchJob", "train", "succeeded"): 90,
        ("training_job_queue_length", "100", "train"): 2,
        ("training_gang_scheduling_total", "timeout", "true"): 1,
        ("training_job_preemptions_total", "train", "Reclaiming", "batch"): 1,
        ("dropped_events_total",): 7,
    }


def test_what_was_counted_of_queues_that_are_gone() -> None:
    """It goes with them: who makes queues and deletes them does not take memory for good."""
    metrics, nothing = SchedulerMetrics(), dict.fromkeys(QUEUE_ROWS, ())
    for name in ("stays", "goes"):
        metrics.job_ended_waiting(0.5, name, "Job", "scheduled")
        metrics.job_preempted(name, "stays", Reason.RECLAIMING)
        metrics.job_preempted("stays", name, Reason.RECLAIMING)
    assert 'queue="goes"' in generate_latest(metrics.registry).decode()
    metrics.queues({"stays"}, nothing)
    text = generate_latest(metrics.registry).decode()
    assert "goes" not in text and 'victim_queue="stays"} 2' in text
    metrics.job_ended_waiting(0.5, "goes", "Job", "scheduled")
    assert 'queue="goes"' in generate_latest(metrics.registry).decode()


def saves(metrics: SchedulerMetrics) -> set[str]:
    """Jobs whose checkpoints are counted."""
    families = text_string_to_metric_families(generate_latest(metrics.registry).decode())
    return {each.labels["job"] for family in families for each in family.samples if "checkpoint_saves" in each.name}


def test_checkpoints_are_counted_as_long_as_their_job_is_there() -> None:
    """And of no more than the last thousand jobs: their names are any text."""
    metrics = SchedulerMetrics()
    for number in range(1001):
        metrics.checkpoint(f"ml/{number}", "interval", "complete")
    assert len(saves(metrics)) == 1000 and "ml/0" not in saves(metrics)
    metrics.job_gone("ml/7")
    metrics.job_gone("ml/unheard-of")
    assert "ml/7" not in saves(metrics) and len(saves(metrics)) == 999
