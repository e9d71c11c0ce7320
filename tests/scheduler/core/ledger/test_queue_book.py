"""What queues count, from charge to the last of a pod, with undo."""

from __future__ import annotations

import pytest
from scheduler_builders import in_group, pod

from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.queue import ROOT_QUEUE, Queue
from model.resources import BATCH_CPU
from model.workload import WorkloadId
from scheduler.core.ledger.charge import charge_of
from scheduler.core.ledger.claim import Claim, ClaimedPod, ClaimKind
from scheduler.core.ledger.ledger import Ledger
from scheduler.core.ledger.queue_book import QueueBook, cells, cells_of
from scheduler.core.queues.shares import ShareRules
from scheduler.core.queues.tree import tree_of
from scheduler.core.queues.turn_quota import TurnQuota
from scheduler.core.snapshot.podclass import class_of

CELL = ("", BATCH_CPU)
TREE = tree_of([Queue("company"), Queue("team", parent="company")])


def book() -> QueueBook:
    return QueueBook(TurnQuota(TREE, ShareRules()))


def charge(ledger: Ledger, found: Pod) -> object:
    charged = charge_of(found)
    assert charged is not None
    return ledger.confirm(charged)


def used(opened: QueueBook) -> tuple[int, int, int]:
    return (opened.quota.used("team", CELL), opened.quota.used("company", CELL), opened.quota.used("default", CELL))


def test_amounts_as_cells() -> None:
    """Of so many pods of a class, and of amounts by resource; all of no flavour."""
    assert cells_of(class_of(pod(batch_cpu=500)), 3) == {("", BATCH_CPU): 1500, ("", "pods"): 3}
    assert cells({"cpu": 5}) == {("", "cpu"): 5}


def test_a_charge_counts_along_the_path_until_the_pod_is_gone() -> None:
    """A deletion that is asked for changes nothing; the end does, and undo brings all back."""
    ledger, opened = Ledger(), book()
    ledger.open_book(opened)
    charge(ledger, pod("a", node_name="n1", phase=PodPhase.RUNNING, batch_cpu=200, queue="team"))
    assert (used(opened), opened.running("team")) == ((200, 200, 0), 1)
    charge(ledger, pod("a", node_name="n1", phase=PodPhase.RUNNING, batch_cpu=200, queue="team", deleting=True))
    assert (used(opened), opened.running("team")) == ((200, 200, 0), 1)
    undo = ledger.forget("uid-a")
    assert (used(opened), opened.running("team")) == ((0, 0, 0), 0)
    ledger.apply(undo)
    assert (used(opened), opened.running("team")) == ((200, 200, 0), 1)


def test_a_book_that_is_opened_later_has_what_stands() -> None:
    """As when the first queue is made while pods run and room is nominated; closed, nothing counts any more."""
    ledger = Ledger()
    charge(ledger, pod("a", node_name="n1", phase=PodPhase.RUNNING, batch_cpu=200, queue="team"))
    room = ClaimedPod("u", "n1", class_of(pod(batch_cpu=50)))
    ledger.keep(Claim(ClaimKind.NOMINATED, WorkloadId.pod("default/w"), 5, (room,), "team"))
    ledger.keep(Claim(ClaimKind.RESERVED, WorkloadId.pod("default/r"), 5, (room,), "team"))
    opened = book()
    ledger.open_book(opened)
    assert used(opened) == (250, 250, 0)
    ledger.give_up(ClaimKind.NOMINATED, WorkloadId.pod("default/w"))
    assert used(opened) == (200, 200, 0)
    ledger.open_book(None)
    ledger.forget("uid-a")
    assert used(opened) == (200, 200, 0)


def test_members_of_a_gang_are_one_job() -> None:
    """It runs until its last member is gone."""
    ledger, opened = Ledger(), book()
    ledger.open_book(opened)
    for name in "ab":
        charge(ledger, pod(name, node_name="n1", phase=PodPhase.RUNNING, queue="team", gang=in_group("train")))
    assert (opened.running("team"), list(opened.jobs("team"))) == (1, [WorkloadId.gang("default/train")])
    ledger.forget("uid-a")
    assert opened.running("team") == 1
    ledger.forget("uid-b")
    assert opened.running("team") == 0


@pytest.mark.parametrize(
    ("below_prod", "queue", "expected"),
    [(True, "default", "default"), (False, "default", ROOT_QUEUE), (False, "team", "team"), (True, "team", "team")],
)
def test_who_is_governed(below_prod: bool, queue: str, expected: str) -> None:
    """All but online pods that name no queue; those count to nobody's quota."""
    found = charge_of(
        pod("a", node_name="n1", phase=PodPhase.RUNNING, batch_cpu=200, queue=queue, below_prod=below_prod)
    )
    assert found is not None and found.governed_by == expected
    ledger, opened = Ledger(), book()
    ledger.open_book(opened)
    ledger.confirm(found)
    assert sum(used(opened)[::2]) == (200 if expected else 0)
