"""Whoever asks for a very short wait hears that it does not count."""

from __future__ import annotations

import pytest
from job_cases import job

from jobs.core.policy import JobFacts
from jobs.core.waiting import told_wait
from model.job.job import GroupTerms, JobDialect

FACTS = JobFacts(shortest_wait_seconds=600.0)
CASES: dict[str, tuple[JobDialect, float, tuple[str, ...]]] = {
    "no wait": (JobDialect.TRAINING, 0.0, ()),
    "one that is long enough": (JobDialect.TRAINING, 600.0, ()),
    "a short one": (
        JobDialect.TRAINING,
        1.0,
        ("spec.schedulingConfig.maxWaitTime: in the order 1 s count as 600 s (ageing.shortest_wait_seconds)",),
    ),
    "a short one of Volcano's": (
        JobDialect.VOLCANO,
        90.0,
        ("annotation volcano.sh/sla-waiting-time: in the order 90 s count as 600 s (ageing.shortest_wait_seconds)",),
    ),
}


@pytest.mark.parametrize(("dialect", "seconds", "unmet"), CASES.values(), ids=CASES)
def test_what_is_told(dialect: JobDialect, seconds: float, unmet: tuple[str, ...]) -> None:
    of = job(dialect=dialect, group=GroupTerms(minimum=2, wait_seconds=seconds))
    assert told_wait(of, FACTS).unmet == unmet and told_wait(of, JobFacts()).unmet == ()
