"""Gangs as arrays by number of their subject, whatever changed since the last question."""

from __future__ import annotations

import numpy as np
import pytest
from preemption_builders import Arena, node, resident

from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.core.ledger.charge import Charge
from scheduler.core.ledger.ledger import ChargeChange, Ledger, charge_of
from scheduler.core.ledger.residents import Residents
from scheduler.core.preemption.facts import GangFacts
from scheduler.core.preemption.gang_store import GangStore, stored
from scheduler.core.snapshot.snapshot import take


def _told(store: GangStore, residents: Residents) -> dict[WorkloadId, int]:
    """Surplus of those that are gangs, by subject."""
    known, surplus = store.arrays(residents)
    names = residents.subject_names
    assert len(known) == len(surplus) == max(len(names), 1)
    return {names[number]: int(surplus[number]) for number in np.flatnonzero(known).tolist()}


def _charge(pod: Pod) -> Charge:
    charge = charge_of(pod)
    assert charge is not None
    return charge


def _running(*groups: str) -> list[Pod]:
    return [resident(f"{group}-{number}", group=group) for group in groups for number in range(2)]


def test_says_what_the_facts_say() -> None:
    arena = Arena([node(cpu=99)], [*_running("a", "b", "c"), resident("lone")])
    store = GangStore(
        {WorkloadId.gang("default/a"): GangFacts(1, 3), WorkloadId.gang("default/b"): GangFacts(1, 3, whole=True)}
    )
    assert _told(store, arena.residents()) == {WorkloadId.gang("default/a"): 2, WorkloadId.gang("default/b"): 0}


def test_an_empty_cluster_has_one_number_that_is_no_gang() -> None:
    assert _told(GangStore({WorkloadId.gang("default/a"): GangFacts(1, 3)}), Arena([node()]).residents()) == {}


@pytest.mark.parametrize("others", [0, 20], ids=["few gangs", "many that do not run"])
def test_changes_are_seen(others: int) -> None:
    """What is set, what goes, and gangs whose pods come later than what is known of them."""
    nodes, ledger = {"n1": node(cpu=99)}, Ledger()
    idle = {WorkloadId.gang(f"default/idle-{number}"): GangFacts(1, 1) for number in range(others)}
    store = GangStore(
        idle | {WorkloadId.gang("default/a"): GangFacts(1, 2), WorkloadId.gang("default/c"): GangFacts(2, 5)}
    )

    def residents() -> Residents:
        return ledger.residents(take(nodes, ledger.nodes))

    for pod in _running("a", "b"):
        ledger.confirm(_charge(pod))
    assert _told(store, residents()) == {WorkloadId.gang("default/a"): 1}
    store[WorkloadId.gang("default/b")] = GangFacts(1, 9)
    store[WorkloadId.gang("default/a")] = GangFacts(1, 4)
    assert _told(store, residents()) == {WorkloadId.gang("default/a"): 3, WorkloadId.gang("default/b"): 8}
    del store[WorkloadId.gang("default/a")]
    assert _told(store, residents()) == {WorkloadId.gang("default/b"): 8}
    for pod in _running("c"):
        ledger.confirm(_charge(pod))
    assert _told(store, residents()) == {WorkloadId.gang("default/b"): 8, WorkloadId.gang("default/c"): 3}


def test_numbers_given_once_more_are_read_again() -> None:
    """The ledger numbers subjects from the beginning when most of them are gone."""
    nodes, ledger = {"n1": node(cpu=99)}, Ledger()
    store = GangStore({WorkloadId.gang("default/a"): GangFacts(1, 3)})
    early = [resident(f"lone-{number}") for number in range(1200)]
    ledger.apply([ChargeChange(pod.uid, _charge(pod)) for pod in early])
    before = ledger.residents(take(nodes, ledger.nodes))
    assert _told(store, before) == {}
    ledger.apply([ChargeChange(pod.uid, None) for pod in early])
    rounds = 0
    while ledger.residents(take(nodes, ledger.nodes)).subject_names is before.subject_names and rounds < 20:
        rounds += 1
        late = [resident(f"late-{rounds}-{number}") for number in range(200)]
        ledger.apply([ChargeChange(pod.uid, _charge(pod)) for pod in late])
        ledger.residents(take(nodes, ledger.nodes))
        ledger.apply([ChargeChange(pod.uid, None) for pod in late])
    for pod in _running("a"):
        ledger.confirm(_charge(pod))
    after = ledger.residents(take(nodes, ledger.nodes))
    assert after.subject_names is not before.subject_names
    assert len(before.subject_names) >= len(early)
    assert _told(store, after) == {WorkloadId.gang("default/a"): 2}


def test_a_store_is_used_as_it_is() -> None:
    store = GangStore()
    assert stored(store) is store
    assert dict(stored({WorkloadId.gang("default/a"): GangFacts(1, 3)})) == {
        WorkloadId.gang("default/a"): GangFacts(1, 3)
    }
