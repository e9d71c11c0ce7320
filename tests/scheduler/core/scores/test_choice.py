"""The scores of a choice: what the table's rows say of the chosen node and of the next best, when it was made."""

from __future__ import annotations

from load_builders import arrays_of, load, measured
from scheduler_builders import candidate, gang, members, node, pod

from model.node import Node
from model.placement import Scored, ScoreTerm
from model.pod.affinity import Affinity, NodeTerm, PreferredNodes
from model.pod.pod import Pod
from model.resources import BATCH_CPU, CPU, MEMORY, ResourceVector
from model.scoring import ScorePlugin
from model.selector import Operator, Requirement
from scheduler.core.placement.place import Placed, place
from scheduler.core.placement.working_snapshot import Background, WorkingSnapshot
from scheduler.core.scores.choice import SCORES
from scheduler.core.scores.policy import SchedulerProfile, ScoredResource, ScorePolicy
from scheduler.core.snapshot.snapshot import take

FAST = PreferredNodes(60, NodeTerm((Requirement("disk", Operator.IN, ("fast",)),)))
POLICY = ScorePolicy(resources=(ScoredResource(BATCH_CPU),), balance_weight=0, load_weight=0, affinity_weight=3)
PROFILES = (SchedulerProfile(("koord-scheduler",), POLICY),)
NODES = [node("n1", batch_cpu=1000), node("n2", batch_cpu=2000), node("n3", batch_cpu=4000)]


def working_with(nodes: list[Node]) -> WorkingSnapshot:
    return WorkingSnapshot(take({each.name: each for each in nodes}, {}), (), Background(profiles=PROFILES))


def scored(working: WorkingSnapshot, found: Pod) -> Scored | None:
    outcome = place(working, candidate([found]))
    assert isinstance(outcome, Placed)
    working.put(outcome.assignments)
    return outcome.choice.scored() if outcome.choice else None


def test_the_chosen_node_and_the_next_best() -> None:
    """One row a score that counts, by its plugin's name, with the points at the moment of the choice."""
    working = working_with(NODES)
    first = place(working, candidate([pod("a", batch_cpu=1000)]))
    assert isinstance(first, Placed) and first.choice is not None
    working.put(first.assignments)
    assert first.choice.scored() == Scored("n3", "n2", (ScoreTerm("NodeResourcesFit", 1, 75, 50),))
    assert scored(working, pod("b", batch_cpu=1000)) == Scored("n2", "n3", (ScoreTerm("NodeResourcesFit", 1, 50, 50),))


def test_a_score_that_compares_nodes_is_a_row_too() -> None:
    """With its weight; it tells why the emptier node was not taken."""
    fast = [*NODES[:2], node("n3", batch_cpu=4000), node("n4", batch_cpu=1000, labels={"disk": "fast"})]
    told = scored(working_with(fast), pod("a", batch_cpu=500, affinity=Affinity(preferred_nodes=(FAST,))))
    assert told == Scored("n4", "n3", (ScoreTerm("NodeResourcesFit", 1, 50, 87), ScoreTerm("NodeAffinity", 3, 100, 0)))


def test_the_only_node_with_room_has_no_next_best() -> None:
    told = scored(working_with([node("n1", batch_cpu=100), node("n2", batch_cpu=1000)]), pod("a", batch_cpu=500))
    assert told == Scored("n2", "", (ScoreTerm("NodeResourcesFit", 1, 50),))


def test_points_sum_to_what_decided() -> None:
    """Weighted points of the winner are no less than the next best's, with every score of a node by itself."""
    policy = ScorePolicy(load_weight=2)
    machines = [
        Node(name, allocatable=ResourceVector({CPU: 8000 * size, MEMORY: 16 << 30, "pods": 110}))
        for size, name in enumerate("abc", 1)
    ]
    background = Background(
        load=arrays_of(*(load(measured(cpus=used)) for used in (1, 9, 2))),
        profiles=(SchedulerProfile(("koord-scheduler",), policy),),
    )
    working = WorkingSnapshot(take({each.name: each for each in machines}, {}), (), background)
    asking = pod("a", batch_cpu=0, requests={CPU: 1000, MEMORY: 1 << 30})
    assert sorted(SCORES) == sorted(ScorePlugin), (
        "a score that no configuration can name, or one that nothing works out"
    )
    told = scored(working, asking)
    assert told is not None and [term.name for term in told.terms] == list(SCORES[:3])
    assert told.terms[2].weight == 2 and told.node == "c" and told.runner_up == "a"
    sums = [
        sum(term.weight * points for term, points in zip(told.terms, each, strict=True))
        for each in ([term.chosen for term in told.terms], [term.runner_up for term in told.terms])
    ]
    assert sums[0] > sums[1] > 0


def test_a_gang_is_packed_and_has_no_choice() -> None:
    outcome = place(working_with(NODES), candidate(members(2), gang(2)))
    assert isinstance(outcome, Placed) and outcome.choice is None
