"""What no history of turns, nodes and pods may lead to: one working snapshot after the other, with everything at once."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_builders import candidate, gang, in_group, node, pod

from model.node import Node
from model.pod.affinity import Affinity, HostPort, PodTerm, SpreadConstraint
from model.pod.pod import Pod
from model.resources import BATCH_CPU
from model.selector import Operator, Requirement, Selector
from model.workload import TopologyLevel, WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.ledger import Charge, Ledger
from scheduler.core.ledger.live_pod_index import LivePodIndex
from scheduler.core.placement.place import Placed, place
from scheduler.core.placement.working_snapshot import Assignment, Background, Nominated, WorkingSnapshot
from scheduler.core.snapshot.podclass import class_of
from scheduler.core.snapshot.snapshot import ClusterSnapshot, take

APP = Selector((Requirement("app", Operator.IN, ("a",)),))
LIKE = {"labels": {"app": "a"}}
KINDS: tuple[dict[str, Any], ...] = (
    {},
    LIKE,
    {**LIKE, "affinity": Affinity(anti_pods=(PodTerm("zone", APP),))},
    {**LIKE, "affinity": Affinity(pods=(PodTerm("zone", APP),))},
    {**LIKE, "spread": (SpreadConstraint("zone", 1, hard=True, selector=APP),)},
    {"host_ports": (HostPort(80),)},
)


class Story:
    """A cluster that changes by chance, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.by_chance = Random(seed)
        self.nodes = {f"n{i}": self._node(f"n{i}") for i in range(self.by_chance.randint(1, 7))}
        self.ledger = Ledger()
        self.changed: set[str] = set()

    def _node(self, name: str) -> Node:
        chance = self.by_chance
        labels = {"zone": chance.choice("abc"), "rack": chance.choice("xy")}
        kept = {key: value for key, value in labels.items() if chance.random() < 0.9}
        return node(name, batch_cpu=chance.choice([0, 700, 1500, 3000]), pods=chance.randint(1, 8), labels=kept)

    def nominated(self, snapshot: ClusterSnapshot) -> list[Nominated]:
        """Room that another workload keeps, mostly none."""
        chance = self.by_chance
        if chance.random() < 0.6:
            return []
        small = class_of(pod(batch_cpu=200))
        assignments = tuple(
            Assignment(f"z{i}", chance.randrange(len(snapshot.names)), small) for i in range(chance.randint(1, 3))
        )
        return [Nominated(WorkloadId.gang("default/zz"), chance.randint(0, 3), assignments)]

    def workload(self, name: str) -> tuple[list[Pod], Candidate]:
        chance = self.by_chance
        mixed, alike = chance.random() < 0.3, chance.choice(KINDS)
        members = [
            pod(
                f"{name}-{i}",
                batch_cpu=chance.choice([100, 300, 600]) if mixed else 300,
                gang=in_group(name),
                created_seconds=float(i),
                **(chance.choice(KINDS) if mixed else alike),
            )
            for i in range(chance.randint(1, 6))
        ]
        found = candidate(members, gang(chance.randint(1, len(members)), name=name))
        levels = (TopologyLevel("rack", required=chance.random() < 0.5),) if chance.random() < 0.3 else ()
        workload = msgspec.structs.replace(found.workload, priority=chance.randint(0, 3), topology=levels)
        return members, msgspec.structs.replace(found, workload=workload)

    def go_on(self) -> None:
        """Pods end, nodes come, go and change."""
        for charge in tuple(self.ledger.charges()):
            if self.by_chance.random() < 0.3:
                self.ledger.forget(charge.uid)
        name = f"n{self.by_chance.randint(0, 8)}"
        if name in self.nodes and len(self.nodes) > 1 and self.by_chance.random() < 0.5:
            del self.nodes[name]
        else:
            self.nodes[name] = self._node(name)
        self.changed = {name}


def charge(assignment: Assignment, snapshot: ClusterSnapshot, members: list[Pod]) -> Charge:
    owner = next(member for member in members if member.uid == assignment.uid)
    return Charge(assignment.uid, snapshot.names[assignment.row], assignment.pod_class, assignment.pod_traits, owner)


def assert_sound(working: WorkingSnapshot, wanted: Candidate, outcome: Placed) -> None:
    """No member twice, no part of what is needed, no node with less than nothing of what the members take."""
    assert len({assignment.uid for assignment in outcome.assignments}) == len(outcome.assignments)
    assert max(wanted.needed, 1) <= len(outcome.assignments) <= wanted.pending
    columns = [working.snapshot.resources.index(name) for name in (BATCH_CPU, "pods")]
    for assignment in outcome.assignments:
        assert (working.free[assignment.row, columns] >= 0).all()
    racks = {working.snapshot.traits.labels[assignment.row].get("rack") for assignment in outcome.assignments}
    if any(level.required for level in wanted.workload.topology):
        assert len(racks) == 1
        assert None not in racks


@settings(max_examples=10)
@given(st.integers(0, 1 << 32))
def test_following_workings_place_as_new_ones(seed: int) -> None:
    """With all they took over they decide as a working snapshot without a past, leave no trace, and never over-commit."""
    story = Story(seed)
    background = Background(LivePodIndex(story.ledger))
    snapshot: ClusterSnapshot | None = None
    working: WorkingSnapshot | None = None
    for turn in range(5):
        snapshot = take(story.nodes, story.ledger.nodes, snapshot, story.changed)
        nominated = story.nominated(snapshot)
        working = WorkingSnapshot(snapshot, nominated, background, following=working)
        new = WorkingSnapshot(snapshot, nominated, Background(LivePodIndex(story.ledger)))
        for number in range(4):
            members, wanted = story.workload(f"g{turn}-{number}")
            before = working.free.tolist()
            outcome = place(working, wanted)
            assert outcome == place(new, wanted)
            assert working.free.tolist() == before
            if isinstance(outcome, Placed):
                story.ledger.assume(charge(assignment, snapshot, members) for assignment in outcome.assignments)
                working.put(outcome.assignments)
                new.put(outcome.assignments)
                assert_sound(working, wanted, outcome)
        story.go_on()
