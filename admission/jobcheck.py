"""Checks of TrainingJobs. Where Volcano runs itself, its webhooks check its Jobs, and ours say nothing of them."""

from __future__ import annotations

from admission.check_result import CheckContext, CheckResult
from kube.dialects.jobs.training_job import training_job
from kube.dialects.queues.membership import unknown_queue
from kube.objects import TrainingJob
from model.queue import DEFAULT_QUEUE


def check_training_job(source: TrainingJob, surroundings: CheckContext) -> CheckResult:
    """What no pods could be made of is refused; what is not acted on, or waits for something, is told."""
    job = training_job(source)
    where = job.id.text
    if job.problem:
        return CheckResult((job.problem,))
    told = [f"{where}: nothing acts on {each}" for each in job.unmet]
    known, queue = surroundings.queues(), job.group.queue
    if known is not None and queue not in ("", DEFAULT_QUEUE) and queue not in known:
        told.append(unknown_queue(where, "spec.schedulingConfig.queue", queue))
    classes = surroundings.classes()
    if job.group.priority_class and job.group.priority_class not in classes:
        name = job.group.priority_class
        told.append(f"{where}: spec.schedulingConfig.priorityClassName: there is no PriorityClass {name} yet: it waits")
    return CheckResult((), tuple(told))
