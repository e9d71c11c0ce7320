"""Tasks of a gang, each with a minimum."""

from __future__ import annotations

import pytest

from model.pod.pod import Pod
from model.pod.spec import PodSpec
from model.workload import GangSpec, MatchPolicy
from scheduler.core.gangs.minimum import GangPart
from scheduler.core.gangs.roster import Roster
from scheduler.core.gangs.tasks import lacking, place_key, place_needs

TASKS = (("master", 1), ("worker", 2))


def pods(task: str, number: int) -> tuple[Pod, ...]:
    return tuple(Pod("ns", f"{task}{i}", f"{task}{i}", PodSpec(task=task)) for i in range(number))


def part(members: Roster, minimum: int = 3, tasks: tuple[tuple[str, int], ...] = TASKS) -> GangPart:
    spec = GangSpec(minimum, match=MatchPolicy.WAITING_AND_RUNNING, tasks=tasks)
    return GangPart("ns/g", members, None, spec, met=False)


WAITING = (*pods("master", 1), *pods("worker", 4))
NEEDS: dict[str, tuple[GangPart, dict[str, int]]] = {
    "its minimum of each": (part(Roster(WAITING)), {"ns/g#master": 1, "ns/g#worker": 2, "ns/g#": 0}),
    "what the whole lacks comes from who has most": (
        part(Roster((*WAITING, *pods("other", 1))), 5), {"ns/g#master": 1, "ns/g#worker": 4, "ns/g#": 0},
    ),
    "pods of other tasks fill up": (
        part(Roster((*pods("master", 1), *pods("worker", 2), *pods("other", 3))), 5),
        {"ns/g#master": 1, "ns/g#worker": 2, "ns/g#": 2},
    ),
    "those that have a node count": (
        part(Roster(WAITING, pods("worker", 1))), {"ns/g#master": 1, "ns/g#worker": 1, "ns/g#": 0},
    ),
    "a lost master is needed, whoever runs": (
        part(Roster(pods("master", 1), pods("worker", 4))), {"ns/g#master": 1, "ns/g#worker": 0, "ns/g#": 0},
    ),
    "without tasks the gang itself": (part(Roster(WAITING), tasks=()), {"ns/g": 3}),
}  # fmt: skip


@pytest.mark.parametrize("case", NEEDS)
def test_needs(case: str) -> None:
    given, wanted = NEEDS[case]
    assert dict(place_needs(given)) == wanted
    assert all(place_key(given, pod) in wanted for pod in given.members.pending)


LACKING = {
    "a task without members": (Roster(pods("worker", 4)), "0 of 1 members of task master exist"),
    "a task with too few": (Roster((*pods("master", 1), *pods("worker", 1))), "1 of 2 members of task worker exist"),
    "enough of each": (Roster(WAITING), ""),
    "one completed": (Roster(pods("worker", 2), (), pods("master", 1)), ""),
}


@pytest.mark.parametrize("case", LACKING)
def test_what_lacks(case: str) -> None:
    members, words = LACKING[case]
    assert lacking(part(members)) == words
