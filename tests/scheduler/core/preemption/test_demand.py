"""What room is made for: the needed members and no more, the smallest of each gang first."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler_builders import SCHEDULER, candidate, gang, in_group, members, node, pod, snapshot

from model.resources import BATCH_CPU, PODS
from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Candidate, assemble_parts
from scheduler.core.gangs.minimum import part_of
from scheduler.core.gangs.roster import roster
from scheduler.core.preemption.demand import columns_of, needed_only, request_of

NODES = snapshot(node("n1", batch_cpu=10_000, amounts={"gpu": 4}))


def big(number: int, group: str = "train") -> list[Any]:
    return [
        pod(f"{group}-big{i}", batch_cpu=2000, gang=in_group(group), created_seconds=100.0 + i) for i in range(number)
    ]


def of_two_gangs() -> Candidate:
    keys = ("default/a", "default/b")
    parts = []
    for name, minimum in (("a", 1), ("b", 2)):
        pods = [*members(3, name=name, group=name), *big(1, name)]
        group = gang(minimum, name, groups=keys)
        parts.append(part_of(group.key, roster(pods, (), (SCHEDULER,)), group))
    found = assemble_parts(WorkloadId.gang(*keys), parts).candidate
    assert found is not None
    return found


CASES: dict[str, tuple[Candidate, list[str]]] = {
    "a lone pod": (candidate([pod("p")]), ["p"]),
    "all are needed": (candidate(members(3), gang(3)), ["w0", "w1", "w2"]),
    "the first of equals": (candidate(members(5), gang(2)), ["w0", "w1"]),
    "the smallest": (candidate([*big(2), *members(2)], gang(3)), ["train-big0", "w0", "w1"]),
    "by the largest share of any resource": (
        candidate(
            [
                pod("gpu", requests={"gpu": 2, BATCH_CPU: 100}, gang=in_group(), created_seconds=1.0),
                pod("cpu", requests={BATCH_CPU: 3000}, gang=in_group(), created_seconds=2.0),
            ],
            gang(1),
        ),
        ["cpu"],
    ),
    "of each gang its own number": (of_two_gangs(), ["a0", "b0", "b1"]),
}


@pytest.mark.parametrize(("wanted", "kept"), CASES.values(), ids=CASES)
def test_needed_only(wanted: Candidate, kept: list[str]) -> None:
    """Members by name; classes, sets and traits stay beside each other."""
    found = needed_only(NODES, wanted)
    assert sorted(uid.removeprefix("uid-") for uid in found.uids) == sorted(kept)
    assert found.pending == len(kept)
    assert len(found.classes) == len(found.workload.pod_sets) == len(found.member_traits)
    assert [len(member_traits) for member_traits in found.member_traits] == [
        pods.count for pods in found.workload.pod_sets
    ]
    assert found.subject == wanted.subject and found.needed == wanted.needed


def test_columns_and_requests() -> None:
    """Those that any member asks for; a class that does not ask for one takes none of it."""
    wanted = candidate(
        [pod("a", requests={"gpu": 1}, gang=in_group()), pod("b", requests={BATCH_CPU: 300}, gang=in_group())], gang(2)
    )
    columns = columns_of(NODES, wanted)
    names = [NODES.resources[column] for column in columns]
    assert sorted(names) == sorted([BATCH_CPU, "gpu", PODS])
    requests = {
        frozenset(zip(names, request_of(NODES, columns, each).tolist(), strict=True)) for each in wanted.classes
    }
    assert requests == {
        frozenset({(BATCH_CPU, 0), ("gpu", 1), (PODS, 1)}),
        frozenset({(BATCH_CPU, 300), ("gpu", 0), (PODS, 1)}),
    }


def test_a_resource_that_no_node_lists_has_no_column() -> None:
    """Placing says so; here it is nobody's."""
    wanted = candidate([pod(requests={"fpga": 1, BATCH_CPU: 1})])
    assert {NODES.resources[column] for column in columns_of(NODES, wanted)} == {BATCH_CPU, PODS}
