"""All charged pods as arrays, in rows and columns of a snapshot."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from scheduler_builders import in_group, node, pod

from model.placement import PlacementState
from model.resources import BATCH_CPU
from model.workload import WorkloadId
from scheduler.core.ledger.ledger import ChargeChange, Ledger, charge_of
from scheduler.core.ledger.residents import Flag
from scheduler.core.snapshot.snapshot import take

NODES = {name: node(name) for name in ("n1", "n2", "n3")}


def test_what_is_told_of_a_resident() -> None:
    """Row, class, priority, job, start and flags; a pod on a node nobody knows has no row."""
    ledger = Ledger()
    member = charge_of(pod("a", node_name="n2", gang=in_group("g"), priority=7, started_seconds=3.0, deleting=True))
    other = charge_of(pod("b", node_name="n9", preemptible=False, disrupted=True, below_prod=True, gang=in_group("g")))
    assert member is not None
    assert other is not None
    ledger.confirm(member)
    ledger.confirm(other)
    ledger.assume([msgspec.structs.replace(member, uid="x", node="n3", state=PlacementState.ASSUMED)])
    found = ledger.residents(take(NODES, ledger.nodes))
    assert found.rows.tolist() == [1, -1, 2]
    assert [found.subject_names[number] for number in found.subjects] == [WorkloadId.gang("default/g")] * 3
    assert found.flags.tolist() == [
        Flag.DELETING,
        Flag.PROTECTED | Flag.DISRUPTED | Flag.BELOW_PROD,
        Flag.ASSUMED | Flag.DELETING,
    ]
    assert (found.priorities.tolist(), found.started.tolist()) == ([7, 0, 7], [3.0, 0.0, 3.0])
    assert found.class_requests[found.classes].tolist() == [[500, 1]] * 3
    assert ledger.members_by_node(WorkloadId.gang("default/g")) == {"n2": 1, "n9": 1, "n3": 1}
    ledger.forget("uid-a")
    again = ledger.residents(take(NODES, ledger.nodes))
    assert (again.rows.tolist(), again.pods[0], again.charges[0]) == ([-1, -1, 2], None, None)
    assert ledger.members_by_node(WorkloadId.gang("default/none")) == {}


steps = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(["n1", "n2", "n3", "n9", ""]), st.integers(1, 5)), max_size=30
)


@given(steps, st.integers(0, 30))
def test_sums_and_arrays_agree(history: list[tuple[str, str, int]], looked: int) -> None:
    """After any history the arrays, the mapping by node and the snapshot say the same, however often one looked."""
    ledger, charged = Ledger(), dict[str, tuple[str, int]]()
    snapshot = take(NODES, ledger.nodes)
    for step, (name, where, size) in enumerate(history):
        charge = charge_of(pod(name, node_name=where, batch_cpu=size))
        ledger.apply([ChargeChange(f"uid-{name}", charge)])
        charged.pop(name, None)
        if where:
            charged[name] = (where, size)
        if step == looked:
            ledger.residents(snapshot)
    snapshot = take(NODES, ledger.nodes, snapshot)
    found = ledger.residents(snapshot)
    column = snapshot.resources.index(BATCH_CPU)
    told = {
        charge.uid.removeprefix("uid-"): (charge.node, int(found.class_requests[found.classes[slot], column]))
        for slot, charge in enumerate(found.charges)
        if charge is not None
    }
    assert told == charged
    for row, name in enumerate(snapshot.names):
        total = sum(size for where, size in charged.values() if where == name)
        assert snapshot.requested[row, column] == total
        assert ledger.nodes.get(name, {}).get(BATCH_CPU, 0) == total
        assert total == sum(charged[c.uid[4:]][1] for s, c in enumerate(found.charges) if c and found.rows[s] == row)
    assert len(ledger) == len(charged)
    assert set(ledger.nodes) == {where for where, _ in charged.values()}
