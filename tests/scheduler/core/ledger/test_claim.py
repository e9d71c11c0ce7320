"""Room that is kept, and terminating pods, by node and by queue, with one undo for all of it."""

from __future__ import annotations

import msgspec
import pytest
from scheduler_builders import pod

from model.placement import PlacementState
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.queue import ROOT_QUEUE
from model.resources import BATCH_CPU
from model.workload import WorkloadId
from scheduler.core.ledger.charge import ChargeChange, charge_of
from scheduler.core.ledger.claim import Claim, ClaimChange, ClaimedPod, ClaimKind
from scheduler.core.ledger.ledger import Ledger
from scheduler.core.snapshot.podclass import class_of

TRAIN = WorkloadId.gang("default/train")


def claim(*nodes: str, kind: ClaimKind = ClaimKind.NOMINATED, queue: str = "team", batch_cpu: int = 500) -> Claim:
    found = class_of(pod(batch_cpu=batch_cpu))
    return Claim(kind, TRAIN, 5, tuple(ClaimedPod(f"u{i}", name, found) for i, name in enumerate(nodes)), queue)


def charged(ledger: Ledger, found: Pod) -> tuple[ChargeChange, ...]:
    charge = charge_of(found)
    assert charge is not None
    return ledger.confirm(charge)


@pytest.mark.parametrize("kind", ClaimKind)
def test_a_claim_counts_once_until_it_is_given_up(kind: ClaimKind) -> None:
    """By node and by queue, beside what is used; a newer one of its kind takes its place; the undo brings it back."""
    ledger = Ledger()
    ledger.keep(claim("n1", kind=kind))
    undo = ledger.keep(claim("n1", "n2", "n2", kind=kind, queue="other"))
    account = ledger.claimed(kind)
    assert account.nodes == {"n1": {BATCH_CPU: 500, "pods": 1}, "n2": {BATCH_CPU: 1000, "pods": 2}}
    assert (account.of("team"), account.of("other")) == ({}, {BATCH_CPU: 1500, "pods": 3})
    assert (ledger.nodes, ledger.used("other"), len(ledger), ledger.keeping) == ({}, {}, 0, True)
    ledger.apply(undo)
    assert (account.of("team"), account.of("other")) == ({BATCH_CPU: 500, "pods": 1}, {})
    assert ledger.claims(kind) == (claim("n1", kind=kind),)
    again = ledger.give_up(kind, TRAIN)
    assert (account.nodes, account.of("team"), ledger.claim(kind, TRAIN), ledger.keeping) == ({}, {}, None, False)
    assert ledger.give_up(kind, TRAIN) == ()
    ledger.apply(again)
    assert ledger.claim(kind, TRAIN) == claim("n1", kind=kind)


def test_the_share_of_a_queue_counts_what_is_nominated_and_not_what_is_reserved() -> None:
    """A nomination's victims are going already; a reservation may go to others yet."""
    ledger = Ledger()
    charged(ledger, pod("a", node_name="n1", phase=PodPhase.RUNNING, batch_cpu=200, queue="team"))
    ledger.keep(claim("n1"))
    ledger.keep(claim("n1", kind=ClaimKind.RESERVED, batch_cpu=7))
    assert ledger.counted("team") == {("", BATCH_CPU): 700, ("", "pods"): 2}
    assert ledger.used("team") == {BATCH_CPU: 200, "pods": 1}


def test_a_pod_that_is_deleted_is_evicting_until_it_is_gone() -> None:
    """It counts as used meanwhile."""
    ledger = Ledger()
    charged(ledger, pod("a", node_name="n1", phase=PodPhase.RUNNING, batch_cpu=200))
    assert ledger.evicting.nodes == {}
    undo = charged(ledger, pod("a", node_name="n1", phase=PodPhase.RUNNING, batch_cpu=200, deleting=True))
    assert ledger.evicting.nodes == ledger.nodes == {"n1": {BATCH_CPU: 200, "pods": 1}}
    assert ledger.evicting.of(ROOT_QUEUE) == {BATCH_CPU: 200, "pods": 1}
    ledger.apply(undo)
    assert (ledger.evicting.nodes, ledger.evicting.of("default")) == ({}, {})
    ledger.apply(
        [
            ChargeChange(
                "uid-a", charge_of(pod("a", node_name="n1", phase=PodPhase.RUNNING, batch_cpu=200, deleting=True))
            )
        ]
    )
    ledger.forget("uid-a")
    assert (ledger.evicting.nodes, ledger.nodes) == ({}, {})


def test_a_pod_that_is_only_assumed_is_not_evicting() -> None:
    """It is not on the node yet; once it is bound there it is."""
    ledger, found = Ledger(), charge_of(pod("a", node_name="n1", phase=PodPhase.RUNNING, batch_cpu=200, deleting=True))
    assert found is not None
    ledger.assume([msgspec.structs.replace(found, state=PlacementState.ASSUMED)])
    assert ledger.evicting.nodes == {}
    ledger.confirm(found)
    assert ledger.evicting.nodes == {"n1": {BATCH_CPU: 200, "pods": 1}}


def test_one_transaction_holds_charges_and_claims() -> None:
    """What is nominated becomes what is used, and back, in one step each."""
    ledger = Ledger()
    ledger.keep(claim("n1"))
    bound = charge_of(pod("a", node_name="n1", phase=PodPhase.RUNNING, batch_cpu=500, queue="team"))
    undo = ledger.apply([ClaimChange(ClaimKind.NOMINATED, TRAIN, None), ChargeChange("uid-a", bound)])
    assert ledger.used("team") == {BATCH_CPU: 500, "pods": 1}
    assert ledger.counted("team") == {("", BATCH_CPU): 500, ("", "pods"): 1}
    ledger.apply(undo)
    assert (ledger.used("team"), ledger.counted("team")) == ({}, {("", BATCH_CPU): 500, ("", "pods"): 1})


def test_a_table_started_again_has_the_same_amounts() -> None:
    """Classes and nodes of long ago are forgotten, nothing that is kept or terminating."""
    ledger = Ledger()
    charged(ledger, pod("a", node_name="n1", phase=PodPhase.RUNNING, batch_cpu=200, deleting=True))
    ledger.keep(claim("n2"))
    before = [dict(each) for each in (ledger.nodes, ledger.evicting.nodes, ledger.claimed(ClaimKind.NOMINATED).nodes)]
    ledger.restart_table()
    after = [dict(each) for each in (ledger.nodes, ledger.evicting.nodes, ledger.claimed(ClaimKind.NOMINATED).nodes)]
    assert before == after and all(before)
