"""CPUs of all nodes within a turn: no CPU is given twice, and what goes gives back what it had."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import msgspec
import numpy as np
from cpu_builders import cpus, machine
from scheduler_builders import node, snapshot

from model.cpubinding import BindPolicy, BoundCpus, CpuRequest, NodeCpus
from scheduler.core.cpus.free_cpus import INVALID_TOPOLOGY, NOT_ENOUGH
from scheduler.core.ledger.charge import Charge
from scheduler.core.ledger.ledger import Ledger
from scheduler.core.placement.cpu_table import CpuTable
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import ClusterSnapshot, RelatedObjects

LAYOUT = machine(1, 2, 2)
"""Cores {0,2} {1,3}."""
TWO = CpuRequest(2)


def nodes() -> ClusterSnapshot:
    """n1 and n2 have four CPUs, n2 one of them reserved; n3 says nothing."""
    taken = snapshot(node("n1"), node("n2"), node("n3"))
    related = RelatedObjects(cpus={"n1": NodeCpus(LAYOUT), "n2": NodeCpus(LAYOUT, kept=cpus("0"))})
    return msgspec.structs.replace(taken, traits=msgspec.structs.replace(taken.traits, related=related))


def ledger(uid: str = "there", of: str = "0,2") -> Ledger:
    made = Ledger()
    made.assume([Charge(uid, "n1", PodClass(), cpus=BoundCpus(cpus(of)))])
    return made


def test_room_by_row() -> None:
    """What the ledger's pods have is not free; a node without a layout has its own word."""
    found = CpuTable(nodes(), ledger()).room(TWO)
    assert found.most.tolist() == [1, 1, 0]
    assert [(rows.tolist(), why) for rows, why in found.refused] == [([False, False, True], INVALID_TOPOLOGY)]


def test_put_and_remove() -> None:
    """Rooms that were asked for before follow; who is there already keeps what he has."""
    table = CpuTable(nodes(), ledger())
    table.room(TWO)
    assert table.put(0, "new", TWO) == cpus("1,3")
    assert table.put(0, "new", TWO) == cpus("1,3")
    assert table.put(0, "more", TWO) == 0
    found = table.room(TWO)
    assert found.most.tolist() == [0, 1, 0]
    assert [why for rows, why in found.refused if rows[0]] == [NOT_ENOUGH]
    table.remove(0, "there")
    table.remove(0, "nobody")
    assert table.room(TWO).most.tolist() == [1, 1, 0]
    assert table.put(0, "more", TWO) == cpus("0,2")


def calls(asked: Callable[[], object]) -> int:
    """So many functions were called."""
    counted = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event == "call"

    sys.setprofile(count)
    try:
        asked()
    finally:
        sys.setprofile(None)
    return counted


def test_what_is_not_asked_for_is_not_worked_out() -> None:
    """However many other requests there were; and in a copy only what changes there."""
    table, asked = CpuTable(nodes(), ledger()), CpuRequest(1, BindPolicy.SPREAD_BY_PCPUS, required=True)
    assert table.room(asked).most.tolist() == [2, 3, 0]
    for count in range(1, 200):
        table.room(CpuRequest(count))
    assert calls(lambda: table.put(0, "new", TWO)) < 100
    assert table.room(asked).most.tolist() == [0, 3, 0]
    assert table.copy().room(asked).most is table.room(asked).most


def test_a_copy_is_apart() -> None:
    """What is tried there is not so here."""
    table = CpuTable(nodes(), None)
    other = table.copy()
    assert other.put(0, "a", CpuRequest(4)) == cpus("0-3")
    assert (other.room(TWO).most[0], table.room(TWO).most[0]) == (0, 2)


def test_a_request_that_nobody_serves() -> None:
    """It gets no CPUs anywhere, and the reason is its own."""
    table = CpuTable(nodes(), None)
    asked = CpuRequest(1, problem="cannot be read")
    found = table.room(asked)
    assert not found.most.any()
    assert [(bool(np.all(rows)), why) for rows, why in found.refused] == [(True, "cannot be read")]
    assert table.put(0, "a", asked) == 0
