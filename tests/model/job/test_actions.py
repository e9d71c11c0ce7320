"""What is to be done for a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from model.job.actions import CreatePod
from model.job.job import Member


def test_the_object_of_a_pod_is_made_when_it_is_asked_for() -> None:
    """Not with the plan, which may have thousands."""
    asked: list[Member] = []

    def made(member: Member) -> Mapping[str, Any]:
        asked.append(member)
        return {"name": member.text}

    action = CreatePod(Member("worker", 2), made)
    assert asked == [] and action.body == {"name": "worker-2"} and asked == [Member("worker", 2)]
