"""The PriorityClass of a job's pods: by name, or the one that has the number that a TrainingJob names."""

from __future__ import annotations

import msgspec

from jobs.core.policy import JobFacts
from model.job.job import Job


class PriorityName(msgspec.Struct, frozen=True):
    """The name of a class, empty for none; `problem` says why there is none."""

    name: str = ""
    problem: str = ""


def priority_class(job: Job, facts: JobFacts) -> PriorityName:
    """Nobody gets a priority that no class gives: quotas of namespaces and rights are about classes."""
    terms = job.group
    if terms.priority_class:
        if terms.priority_class in facts.classes:
            return PriorityName(terms.priority_class)
        told = f"there is no PriorityClass {terms.priority_class}"
        return PriorityName(problem=f"{job.id.text}: {told}; create it, or name another")
    if terms.priority is None:
        return PriorityName()
    names = sorted(name for name, value in facts.classes.items() if value == terms.priority)
    if names:
        return PriorityName(names[0])
    told = f"no PriorityClass has the value {terms.priority}"
    fix = "create one, or write schedulingConfig.priorityClassName"
    return PriorityName(problem=f"{job.id.text}: spec.schedulingConfig.priority: {told}; {fix}")
