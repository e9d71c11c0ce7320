"""What a workload asks of its queue, and what is kept for it already."""

from __future__ import annotations

from scheduler_builders import candidate, gang, in_group, pod

from model.resources import BATCH_CPU
from model.workload import WorkloadId
from scheduler.core.ledger.claim import Claim, ClaimedPod, ClaimKind
from scheduler.core.ledger.ledger import Ledger
from scheduler.core.snapshot.podclass import class_of
from scheduler.core.snapshot.snapshot import ClusterSnapshot, take
from scheduler.steps.asked_amounts import AskedAmounts, kept_for

CELL = ("", BATCH_CPU)


def snapshot() -> ClusterSnapshot:
    return take({}, Ledger().nodes)


def test_all_of_it_and_what_it_must_have_at_once() -> None:
    """A gang of three that needs two; it asks for as much as another of pods that are alike, in another turn, too."""
    asked = AskedAmounts(snapshot())
    members = [pod(f"w{i}", batch_cpu=500, gang=in_group()) for i in range(3)]
    group = candidate(members, gang(2))
    assert (asked.in_all(group)[CELL], asked.at_once(group)[CELL], asked.needed(group)) == (1500, 1000, [2])
    alike = candidate([pod(f"v{i}", batch_cpu=500, gang=in_group("other")) for i in range(3)], gang(2, "other"))
    assert asked.in_all(alike) == asked.in_all(group)
    before = dict(asked.in_all(group))
    asked.begin(snapshot())
    assert asked.at_once(group)[CELL] == 1000 and asked.in_all(group) == before


def test_one_above_the_minimum() -> None:
    """A gang that has its minimum asks for one more at a time."""
    asked = AskedAmounts(snapshot())
    bound = pod("w0", batch_cpu=500, gang=in_group(), node_name="n1")
    more = candidate([bound, *(pod(f"w{i}", batch_cpu=500, gang=in_group()) for i in (1, 2))], gang(1))
    assert (asked.in_all(more)[CELL], asked.at_once(more)[CELL], asked.needed(more)) == (1000, 500, [0])


def test_what_is_kept_for_it() -> None:
    """By nomination and for an admitted job, in the queue in whose name; a reservation is no quota."""
    ledger, waiting = Ledger(), candidate([pod("w", batch_cpu=500, queue="team")])
    room = ClaimedPod("u", "n1", class_of(pod(batch_cpu=500)))
    for kind in ClaimKind:
        ledger.keep(Claim(kind, waiting.subject, 5, (room,), "team"))
    ledger.keep(Claim(ClaimKind.NOMINATED, WorkloadId.pod("default/other"), 5, (room,), "team"))
    assert {queue: amounts[CELL] for queue, amounts in kept_for(ledger, waiting).items()} == {"team": 1000}
    assert kept_for(ledger, candidate([pod("x")])) == {}
