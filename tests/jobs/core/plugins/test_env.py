"""The index of a pod in its task."""

from __future__ import annotations

from jobs.core.plugins.env import environment
from model.job.job import Member


def test_the_index_in_its_task() -> None:
    assert environment(Member("worker", 2)) == {"VC_TASK_INDEX": "2", "VK_TASK_INDEX": "2"}
