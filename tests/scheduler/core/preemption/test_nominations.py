"""Room that is kept: for whom, against whom, and until when."""

from __future__ import annotations

import pytest
from preemption_builders import Arena, members, node, resident, waiting
from scheduler_builders import candidate, gang

from model.node import Node
from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.core.ledger.ledger import Ledger
from scheduler.core.preemption.facts import PreemptionPlan
from scheduler.core.preemption.nominations import Nominations
from tests.pods import with_fields

TWO = (node("n1"), node("n2"))
BUSY = (resident("a", "n1"), resident("b", "n2"))


def planned(pods: list[Pod], minimum: int = 2, nodes: tuple[Node, ...] = TWO) -> tuple[Arena, PreemptionPlan]:
    arena = Arena(nodes, [pod for pod in BUSY if pod.spec.node_name in {found.name for found in nodes}])
    outcome = arena.ask(pods, gang(minimum) if pods[0].spec.gang else None)
    assert isinstance(outcome, PreemptionPlan)
    return arena, outcome


def test_held_as_assignments_of_any_snapshot() -> None:
    """Rows follow the nodes' names."""
    arena, plan = planned([waiting()])
    kept = Nominations(Ledger())
    assert kept.add(plan, arena.snapshot, 99.0, "q") == ()
    wider = Arena((node("n0"), *TWO)).snapshot
    (held,) = kept.as_nominated(wider)
    assert held.subject == WorkloadId.pod("default/hp") and held.priority == 100
    assert [wider.names[assignment.row] for assignment in held.assignments] == [plan.eviction.placements[0].node]


@pytest.mark.parametrize("inside", [True, False], ids=["batch", "online"])
def test_room_made_for_batch_work_keeps_no_online_pod_waiting(inside: bool) -> None:
    """Whatever the numbers: its victims may take as long to end as their maker likes. After a restart as well."""
    going, asks = resident("a", "n1", below_prod=inside), waiting(below_prod=inside)
    arena = Arena((node("n1"),), [going])
    plan = arena.ask([asks])
    assert isinstance(plan, PreemptionPlan)
    kept, anew = Nominations(Ledger()), Nominations(Ledger())
    kept.add(plan, arena.snapshot, 99.0, "q")
    told = with_fields(asks, nominated_node="n1")
    assert anew.restore(candidate([told]), {told.uid: told}, arena.snapshot, 99.0)
    for (held,) in (kept.as_nominated(arena.snapshot), anew.as_nominated(arena.snapshot)):
        assert held.spares_online is inside


def test_a_higher_one_takes_the_nodes() -> None:
    """The lower one loses all it has, and is told."""
    arena, low = planned(members(2, priority=50))
    kept = Nominations(Ledger())
    kept.add(low, arena.snapshot, 99.0, "q")
    _, high = planned([waiting(priority=60)])
    (dropped,) = kept.add(high, arena.snapshot, 99.0, "q")
    assert dropped.subject == WorkloadId.gang("default/train") and set(dropped.uids) == {"uid-w0", "uid-w1"}
    assert [held.subject for held in kept.as_nominated(arena.snapshot)] == [WorkloadId.pod("default/hp")]


def test_equals_stay() -> None:
    arena, one = planned(members(2))
    kept = Nominations(Ledger())
    kept.add(one, arena.snapshot, 99.0, "q")
    _, other = planned([waiting()])
    assert kept.add(other, arena.snapshot, 99.0, "q") == ()
    assert len(kept.as_nominated(arena.snapshot)) == 2


def test_swept() -> None:
    """Gone, too late, node gone, node no longer open to it; untouched otherwise."""
    arena, plan = planned(members(2))
    subject = WorkloadId.gang("default/train")
    closed = (node("n1", unschedulable=True), node("n2"))
    cases = {
        "still waiting": ({subject}, TWO, 98.0, False),
        "gone": (set[str](), TWO, 98.0, True),
        "too late": ({subject}, TWO, 99.0, True),
        "node gone": ({subject}, TWO[:1], 98.0, True),
        "node cordoned": ({subject}, closed, 98.0, True),
    }
    for name, (alive, nodes, now, out) in cases.items():
        kept = Nominations(Ledger())
        kept.add(plan, arena.snapshot, 99.0, "q")
        assert bool(kept.sweep(alive, Arena(nodes).snapshot, now)) is out, name
        assert (kept.get(subject) is None) is out, name


def test_restored_from_status() -> None:
    """All needed members must be nominated to nodes that are still there."""
    named = [with_fields(pod, nominated_node=f"n{i}") for i, pod in enumerate(members(2), 1)]
    half = [named[0], with_fields(named[1], nominated_node="")]
    lost = [named[0], with_fields(named[1], nominated_node="n9")]
    for pods, expected in ((named, True), (half, False), (lost, False)):
        kept = Nominations(Ledger())
        found = candidate(pods, gang(2))
        assert kept.restore(found, {pod.uid: pod for pod in pods}, Arena(TWO).snapshot, 99.0) is expected
        assert len(kept.as_nominated(Arena(TWO).snapshot)) == expected
