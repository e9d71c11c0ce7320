"""The PriorityClass of a job's pods."""

from __future__ import annotations

import pytest
from job_cases import job

from jobs.core.policy import JobFacts
from jobs.core.priority import priority_class
from model.job.job import GroupTerms

CLASSES = JobFacts({"high": 1000, "also-high": 1000, "low": -5})
CASES = {
    "none": (GroupTerms(), "", ""),
    "by name": (GroupTerms(priority_class="low"), "low", ""),
    "by name before the number": (GroupTerms(priority_class="low", priority=1000), "low", ""),
    "by number, the first by name": (GroupTerms(priority=1000), "also-high", ""),
    "below nothing": (GroupTerms(priority=-5), "low", ""),
    "a name that is none": (GroupTerms(priority_class="no"), "", "there is no PriorityClass no; create it"),
    "a number of no class": (GroupTerms(priority=7), "", "no PriorityClass has the value 7; create one, or write"),
}


@pytest.mark.parametrize(("terms", "name", "problem"), CASES.values(), ids=CASES)
def test_classes(terms: GroupTerms, name: str, problem: str) -> None:
    found = priority_class(job(group=terms), CLASSES)
    assert found.name == name and problem in found.problem and bool(problem) == bool(found.problem)
