"""The wait after which a job goes before others: as short as the scheduler allows, whatever it asks for."""

from __future__ import annotations

import msgspec

from jobs.core.policy import JobFacts
from model.job.job import Job, JobDialect
from model.job.labels import WAITING_TIME

_FIELDS = {
    JobDialect.TRAINING: "spec.schedulingConfig.maxWaitTime",
    JobDialect.VOLCANO: f"annotation {WAITING_TIME}",
}


def told_wait(job: Job, facts: JobFacts) -> Job:
    """The job, which says where its wait is shorter than what counts in the order."""
    wanted, least = job.group.wait_seconds, facts.shortest_wait_seconds
    if not 0 < wanted < least:
        return job
    told = f"{_FIELDS[job.id.dialect]}: in the order {wanted:g} s count as {least:g} s (ageing.shortest_wait_seconds)"
    return msgspec.structs.replace(job, unmet=(*job.unmet, told))
