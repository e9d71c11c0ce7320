"""The victims' sums level by level, and the first victim of a gang that can spare some."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from scheduler_builders import in_group, node, pod

from model.workload import WorkloadId
from scheduler.core.ledger.ledger import Ledger, charge_of
from scheduler.core.ledger.residents import Residents
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.facts import GangFacts, PreemptionFacts
from scheduler.core.preemption.victim_groups import one_by_one
from scheduler.core.preemption.victims import Victims, victims_of
from scheduler.core.snapshot.snapshot import take
from tests.pods import with_fields

_NOW = 100.0


def _world() -> tuple[Residents, Victims]:
    ledger, nodes = Ledger(), {name: node(name) for name in ("n1", "n2", "n3")}
    for number in range(9):
        gang = in_group("g") if number % 2 else None
        each = pod(
            f"p{8 - number}", node_name=f"n{1 + number % 3}", batch_cpu=100 + number, priority=number // 4, gang=gang
        )
        charge = charge_of(with_fields(each, started_seconds=5.0 * (number == 3)))
        assert charge is not None
        ledger.confirm(charge)
    snapshot = take(nodes, ledger.nodes)
    residents = ledger.residents(snapshot)
    facts = {WorkloadId.gang("default/g"): GangFacts(2, 4)}
    return residents, victims_of(residents, residents.rows >= 0, [0, 1], facts, 3)


@pytest.mark.parametrize("chosen", [[0], [0, 1, 2, 3], [1, 2, 3, 4], list(range(8)), list(range(9)), [4, 5, 6, 7, 8]])
def test_freed_is_the_sum_by_row_whatever_is_known_already(chosen: list[int]) -> None:
    """Sets that are a whole level are read from what is kept, others are summed; both say the same."""
    _, victims = _world()
    wanted = np.zeros((3, 2), np.int64)
    for index in chosen:
        wanted[victims.rows[index]] += victims.amounts[index]
    assert victims.freed(np.array(chosen, np.int64), 3).tolist() == wanted.tolist()


@pytest.mark.parametrize("started", [None, [5.0], [7.0, 5.0, 5.0, 300.0, 200.0]], ids=["some", "together", "all"])
@pytest.mark.parametrize("saved", [{}, {"uid-p5": 90.0}], ids=["", "saved"])
def test_a_gang_loses_its_least_important_first(saved: dict[str, float], started: list[float] | None) -> None:
    """As `importance` orders them one by one: names decide only where priority, loss and age are the same."""
    residents, victims = _world()
    if started is not None:
        residents = msgspec.structs.replace(residents, started=np.resize(np.array(started), 9))
    costs = VictimCosts(victims, residents, PreemptionFacts(saved=saved), _NOW)
    members = [index for index in range(9) if victims.gangs[index] >= 0]
    spared = sorted(sorted(members, key=costs.importance)[:2])
    alone = [index for index in range(9) if victims.gangs[index] < 0]
    assert one_by_one(np.arange(9), costs).tolist() == sorted(alone + spared)
    assert costs.ranks(np.arange(9)).argsort().tolist() == sorted(range(9), key=costs.importance)
