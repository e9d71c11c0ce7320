"""The pods of a job as its processes see each other: names, ranks and ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from model.job.job import Job, Member


class Peers(msgspec.Struct, frozen=True):
    """All members of a job in the order of their ranks; `slots` is how many processes one pod runs, `ports` are named
    ports of its containers.
    """

    job: str
    members: tuple[Member, ...]
    slots: int = 1
    ports: Mapping[str, int] = {}

    def rank(self, member: Member) -> int:
        """Its place among all, from 0 on."""
        return self.members.index(member)

    def of(self, task: str) -> tuple[Member, ...]:
        """Members of one task."""
        return tuple(member for member in self.members if member.task == task)

    def host(self, member: Member) -> str:
        """The name under which the others find it, by the job's headless Service."""
        return f"{pod_name(self.job, member)}.{self.job}"

    def port(self, name: str, default: int) -> int:
        """The container's port of that name."""
        return self.ports.get(name, default)


def pod_name(job: str, member: Member) -> str:
    """`JOB-TASK-INDEX`, as Volcano has it; also its host name."""
    return f"{job}-{member.text}"


def peers(job: Job, members: tuple[Member, ...]) -> Peers:
    """Of the members that the job is to have."""
    return Peers(job.id.name, members, _slots(job), _ports(job))


def _slots(job: Job) -> int:
    """One process for each GPU of a pod of the last task, where the workers are; one without GPUs."""
    limits = _first(job.tasks[-1].template).get("resources", {}).get("limits", {}) if job.tasks else {}
    told = str(limits.get("nvidia.com/gpu", "") if isinstance(limits, dict) else "")
    return max(1, int(told)) if told.isascii() and told.isdigit() and len(told) < 10 else 1


def _ports(job: Job) -> dict[str, int]:
    found: dict[str, int] = {}
    for task in job.tasks:
        for port in _first(task.template).get("ports") or ():
            number = port.get("containerPort") if isinstance(port, dict) else None
            if isinstance(number, int) and port.get("name"):
                found.setdefault(str(port["name"]), number)
    return found


def _first(template: Mapping[str, Any]) -> dict[str, Any]:
    container = template["spec"]["containers"][0]
    return container if isinstance(container, dict) else {}
