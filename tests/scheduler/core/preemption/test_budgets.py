"""Which victims break a disruption budget, and which would if all went."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from preemption_builders import Arena, node, resident
from preemption_reference import budget

from model.budget import DisruptionBudget
from model.selector import Selector
from scheduler.core.preemption.budgets import DisruptionBudgets
from scheduler.core.preemption.victims import victims_of

APPS = ("x", "y", "x", "", "x")
BUDGETS = {
    "none": ((), [], [], []),
    "closed": ((budget("x"),), [0, 2, 4], [0, 2, 4], [0, 2, 4]),
    "allows one": ((budget("x", 1),), [2, 4], [], [0, 2]),
    "allows all": ((budget("x", 3),), [], [], []),
    "two": ((budget("x", 2), budget("y")), [1, 4], [1], [0, 1]),
    "of another namespace": ((msgspec.structs.replace(budget("x"), namespace="other"),), [], [], []),
    "without a selector": ((DisruptionBudget("default", "all", Selector()),), [], [], []),
    "counted already": ((msgspec.structs.replace(budget("x"), disrupted=frozenset({"p0"})),), [2, 4], [2, 4], [2, 4]),
    "more broken than allowed": ((msgspec.structs.replace(budget("x"), allowed=-1),), [0, 2, 4], [0, 2, 4], [0, 2, 4]),
}


@pytest.mark.parametrize(("budgets", "broken", "closed", "pressed"), BUDGETS.values(), ids=BUDGETS.keys())
def test_budget(
    budgets: tuple[DisruptionBudget, ...], broken: list[int], closed: list[int], pressed: list[int]
) -> None:
    """Budgets are used up in the order given; of those that may be evicted the lowest ranks, here the last pods, are left out."""
    arena = Arena([node(cpu=8)], [resident(f"p{i}", cpu=1, labels={"app": app}) for i, app in enumerate(APPS)])
    residents = arena.residents()
    budgets = DisruptionBudgets(victims_of(residents, residents.rows >= 0, [0], {}, 1), residents, budgets)
    every = np.arange(len(APPS))
    assert sorted(budgets.broken_by(every.tolist())) == broken
    assert np.flatnonzero(budgets.closed).tolist() == closed
    assert np.flatnonzero(budgets.pressed(every, every[::-1])).tolist() == pressed
