"""The Ledger's transactions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler_builders import pod

from model.placement import PlacementState
from model.resources import BATCH_CPU
from model.workload import WorkloadId
from scheduler.core.ledger.ledger import Charge, ChargeChange, Ledger, charge_of
from scheduler.core.snapshot.podclass import class_of


def charge(uid: str, node: str = "n1", batch_cpu: int = 500) -> Charge:
    return Charge(uid, node, class_of(pod(uid, batch_cpu=batch_cpu)))


def test_assumed_counts_at_once_and_confirming_changes_nothing() -> None:
    """An assumed pod counts against node and queue; its confirmation is not counted again."""
    ledger = Ledger()
    ledger.assume([charge("a"), charge("b")])
    ledger.confirm(charge("a"))
    assert ledger.nodes == {"n1": {BATCH_CPU: 1000, "pods": 2}}
    assert ledger.used("default") == {BATCH_CPU: 1000, "pods": 2}
    assert [c.state for c in (ledger.charge("a"), ledger.charge("b")) if c] == [
        PlacementState.BOUND,
        PlacementState.ASSUMED,
    ]


def test_bound_elsewhere_moves_the_charge() -> None:
    """The API server's word on the node wins over what was assumed."""
    ledger = Ledger()
    ledger.assume([charge("a")])
    ledger.confirm(charge("a", node="n2"))
    assert ledger.nodes == {"n2": {BATCH_CPU: 500, "pods": 1}}


def test_assuming_twice_is_a_bug() -> None:
    """A pod is never charged twice, and the refused transaction changes nothing."""
    ledger = Ledger()
    ledger.assume([charge("a")])
    with pytest.raises(ValueError, match="charged already"):
        ledger.assume([charge("b"), charge("a")])
    assert ledger.nodes == {"n1": {BATCH_CPU: 500, "pods": 1}}


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, False),
        ({"node_name": "n1"}, True),
        ({"node_name": "n1", "deleting": True}, True),
        ({"node_name": "n1", "phase": "Succeeded"}, False),
        ({"node_name": "n1", "phase": "Failed"}, False),
        ({"node_name": "n1", "scheduler_name": "default-scheduler"}, True),
    ],
)
def test_who_is_charged(changes: dict[str, object], counts: bool) -> None:
    """Every pod on a node until it is terminal or gone, whoever bound it."""
    assert (charge_of(pod(**changes)) is not None) is counts


uids = st.sampled_from("abc")
steps = st.lists(st.tuples(uids, st.sampled_from(["n1", "n2", ""]), st.integers(1, 9)), max_size=12)


@given(steps, steps)
def test_undo_restores(before: list[tuple[str, str, int]], after: list[tuple[str, str, int]]) -> None:
    """Any transaction followed by its undo leaves exactly what was."""
    ledger = Ledger()
    ledger.apply(ChargeChange(uid, charge(uid, node, size) if node else None) for uid, node, size in before)
    nodes = {name: dict(amounts) for name, amounts in ledger.nodes.items()}
    charges = {uid: ledger.charge(uid) for uid in "abc"}
    undo = ledger.apply(ChargeChange(uid, charge(uid, node, size) if node else None) for uid, node, size in after)
    ledger.apply(undo)
    assert ledger.nodes == nodes
    assert {uid: ledger.charge(uid) for uid in "abc"} == charges


def test_what_is_long_gone_is_not_carried_along() -> None:
    """However many classes and nodes come and go, the table stays small and the sums right."""
    ledger = Ledger()
    ledger.assume([charge("stays", "n1", 7)])
    for number in range(9000):
        ledger.assume([charge("a", f"n{number}", number + 1)])
        ledger.forget("a")
    assert ledger.nodes.classes < 9000
    assert ledger.nodes.height < 9000
    assert ledger.nodes == {"n1": {BATCH_CPU: 7, "pods": 1}}
    assert ledger.members_by_node(WorkloadId.pod("stays")) == {"n1": 1}
