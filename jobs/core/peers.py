"""The pods of a job as its processes see each other: names, ranks and ports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar

import msgspec

from model.job.job import Job, Member

T = TypeVar("T")


class ElasticPeers(msgspec.Struct, frozen=True):
    """Of a job whose size changes: how many members it has at least and at most, and `meeting`, a name by which those
    find each other that were made since its last restart as a whole.
    """

    minimum: int
    maximum: int
    meeting: str


class Peers(msgspec.Struct, frozen=True, dict=True):
    """All members of a job in the order of their ranks; `slots` is how many processes one pod runs, `ports` are named
    ports of its containers. What is looked up for each of them is made once.
    """

    job: str
    members: tuple[Member, ...]
    slots: int = 1
    ports: Mapping[str, int] = {}
    elastic: ElasticPeers | None = None

    def rank(self, member: Member) -> int:
        """Its place among all, from 0 on."""
        return self._ranks[member]

    def of(self, task: str) -> tuple[Member, ...]:
        """Members of one task."""
        return self._of_task.get(task, ())

    def host(self, member: Member) -> str:
        """The name under which the others find it, by the job's headless Service."""
        return f"{pod_name(self.job, member)}.{self.job}"

    def port(self, name: str, default: int) -> int:
        """The container's port of that name."""
        return self.ports.get(name, default)

    def shared(self, made: Callable[[Peers], T]) -> T:
        """What `made` tells of these members, which is the same for all of them: made once."""
        if made not in self._shared:
            self._shared[made] = made(self)
        found: T = self._shared[made]
        return found

    @cached_property
    def _ranks(self) -> dict[Member, int]:
        return {member: rank for rank, member in enumerate(self.members)}

    @cached_property
    def _of_task(self) -> dict[str, tuple[Member, ...]]:
        found: dict[str, list[Member]] = {}
        for member in self.members:
            found.setdefault(member.task, []).append(member)
        return {task: tuple(members) for task, members in found.items()}

    @cached_property
    def _shared(self) -> dict[Callable[[Peers], Any], Any]:
        return {}


def pod_name(job: str, member: Member) -> str:
    """`JOB-TASK-INDEX`, as Volcano has it; also its host name."""
    return f"{job}-{member.text}"


def peers(job: Job, members: tuple[Member, ...], run: int = 0) -> Peers:
    """Of the members that the job is to have; `run` is the one with which it began as a whole."""
    return Peers(job.id.name, members, _slots(job), _ports(job), _elastic(job, run))


def _elastic(job: Job, run: int) -> ElasticPeers | None:
    elastic = job.elastic
    if elastic is None:
        return None
    others = sum(task.replicas for task in job.tasks if task.name != elastic.task)
    return ElasticPeers(others + elastic.minimum, others + elastic.maximum, f"{job.uid}-{run}")


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
