"""Why a gang cannot be tried yet: what is missing, what is wrong with its definition, and who does not count."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from scheduler_builders import SCHEDULER, annotated, gang, in_group, members, pod

from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.reason import Reason
from model.workload import Gang, GangSource, MatchPolicy, TopologyLevel, WorkloadId
from scheduler.core.gangs.holds import why_held
from scheduler.core.gangs.minimum import GangPart, part_of
from scheduler.core.gangs.roster import roster

KEY = "default/train"
OWN = WorkloadId.gang(KEY)


def part(pods: list[Pod], group: Gang | None, key: str = KEY) -> GangPart:
    return part_of(key, roster(pods, (), (SCHEDULER, "second")), group)


def topologic(name: str, *levels: TopologyLevel) -> GangPart:
    group = msgspec.structs.replace(gang(1, name), spec=msgspec.structs.replace(gang(1, name).spec, topology=levels))
    return part(members(1, group=name, name=name), group, f"default/{name}")


LATE = pod("gone", gang=in_group(), deleting=True)
DEAD = pod("dead", gang=in_group(), phase=PodPhase.FAILED)
GATED = pod("gated", gang=in_group(), gated=True)
ELSEWHERE = pod("else", gang=in_group(), scheduler_name="default-scheduler")
CASES: dict[str, tuple[GangPart, tuple[Reason, str] | None]] = {
    "complete": (part(members(3), gang(3)), None),
    "more than enough": (part(members(4), gang(3)), None),
    "no PodGroup of that name": (
        part(members(3), None),
        (Reason.GANG_NOT_FOUND, "PodGroup default/train does not exist; create it, or correct the pods' label"),
    ),
    "nobody is in it": (part([], None), (Reason.GANG_NOT_FOUND, "of group default/train does not exist")),
    "a problem of the definition": (
        part([pod("a", gang=annotated(problem="the number is no number"))], None),
        (Reason.GANG_INVALID, "gang default/train: the number is no number"),
    ),
    "two schedulers": (
        part([*members(1), *members(1, name="v", scheduler_name="second")], gang(2)),
        (Reason.GANG_INVALID, f"its pods name 2 schedulers ({SCHEDULER}, second); give all of them one"),
    ),
    "two queues": (
        part([*members(1, queue="a"), *members(1, name="v", queue="b")], gang(2)),
        (Reason.GANG_INVALID, "its pods name 2 queues (a, b); give all of them one"),
    ),
    "many queues": (
        part([pod(f"p{i}", gang=in_group(), queue=f"q{i}") for i in range(9)], gang(2)),
        (Reason.GANG_INVALID, "its pods name 9 queues (q0, q1, q2); give all of them one"),
    ),
    "another queue where it runs": (
        part([*members(1, queue="a"), pod("there", gang=in_group(), queue="b", node_name="n1")], gang(2)),
        None,
    ),
    "too few": (part(members(2), gang(3)), (Reason.GANG_WAITING_FOR_MEMBERS, "2 of 3 members exist")),
    "who does not count is told": (
        part([*members(1), LATE, DEAD, GATED, ELSEWHERE], gang(3)),
        (
            Reason.GANG_WAITING_FOR_MEMBERS,
            "1 of 3 members exist (not counted: 1 gated, 1 of another scheduler, 1 being deleted, 1 failed)",
        ),
    ),
    "only those that wait count": (
        part([*members(1), pod("there", gang=in_group(), node_name="n1")], gang(2, match=MatchPolicy.ONLY_WAITING)),
        (
            Reason.GANG_WAITING_FOR_MEMBERS,
            "1 of 2 members wait, and by match policy only-waiting no others count",
        ),
    ),
}


@pytest.mark.parametrize(("found", "wanted"), CASES.values(), ids=CASES)
def test_why_a_gang_is_held(found: GangPart, wanted: tuple[Reason, str] | None) -> None:
    """The reason's code, and words that say what to mend."""
    held = why_held(OWN, found, (found,))
    if wanted is None or held is None:
        assert held == wanted
    else:
        assert held[0] is wanted[0]
        assert held[1].startswith(f"gang {KEY}") and held[1].endswith(wanted[1])


def test_an_upstream_gang_has_one_scheduler() -> None:
    """Kubernetes counts all its pods, so one of another scheduler would wait for ever."""
    group: Any = msgspec.structs.replace(gang(1), source=GangSource.UPSTREAM)
    found = part([*members(1), ELSEWHERE], group)
    held = why_held(OWN, found, (found,))
    assert held is not None and held[0] is Reason.GANG_INVALID
    assert "name another scheduler" in held[1]


def test_gangs_of_a_group_ask_for_one_topology() -> None:
    """The second is told, the first is not."""
    first, other = topologic("a", TopologyLevel("rack", True)), topologic("b", TopologyLevel("zone", True))
    subject = WorkloadId.gang("default/a", "default/b")
    both = tuple(
        msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, groups=subject.keys))
        for one in (first, other)
    )
    assert why_held(subject, both[0], both) is None
    held = why_held(subject, both[1], both)
    assert held is not None and "another topology than the gang before it" in held[1]


def test_a_gang_lists_the_group_that_lists_it() -> None:
    """Otherwise both lists are told."""
    found = topologic("a")
    held = why_held(WorkloadId.gang("default/a", "default/b"), found, (found,))
    assert held is not None
    assert held[1] == (
        "gang default/a: it is listed in group default/a,default/b but lists default/a itself; give all of them one list"
    )
