"""Which budgets cover a pod, of few and of very many."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from preemption_reference import budget
from scheduler_builders import pod

from model.budget import DisruptionBudget
from model.selector import Operator, Requirement, Selector
from scheduler.core.preemption.budget_index import MOST_ASKED, MOST_COVERING, BudgetIndex, index_of
from scheduler.core.snapshot.podclass import pod_traits_of


def without(*apps: str, allowed: int = 0) -> DisruptionBudget:
    """Of all pods but those of these apps."""
    return DisruptionBudget("default", "b", Selector((Requirement("app", Operator.NOT_IN, apps),)), allowed)


def covering(budgets: Iterable[DisruptionBudget], namespace: str = "default") -> tuple[int, ...]:
    return BudgetIndex(tuple(budgets)).covering(pod_traits_of(pod("p", namespace=namespace, labels={"app": "x"})))


CASES = {
    "by a label": ([budget("y"), budget("x")], (1,)),
    "by another operator": ([without("y"), without("x")], (0,)),
    "both": ([budget("x"), without("y")], (0, 1)),
    "nobody": ([DisruptionBudget("default", "b", Selector())], ()),
    "by many labels": (
        [DisruptionBudget("default", "b", Selector((Requirement("app", Operator.IN, ("x", *"abc" * 50)),)))],
        (0,),
    ),
    "of many those that allow least": ([without("y", allowed=20 - n) for n in range(20)], tuple(range(12, 20))),
    "beyond those asked": ([without("x")] * (MOST_ASKED + 5), (MOST_ASKED,)),
}


@pytest.mark.parametrize(("budgets", "found"), CASES.values(), ids=CASES)
def test_covering(budgets: list[DisruptionBudget], found: tuple[int, ...]) -> None:
    """By namespace and labels; of thousands a few count, and a pod that is not asked about is covered."""
    assert covering(budgets) == found
    assert len(found) <= MOST_COVERING
    assert covering(budgets, "other") == ()


def test_the_index_of_the_same_budgets_is_made_once() -> None:
    """Each preemptor asks, and pods alike are looked up once for all of them."""
    assert index_of((budget("x"), without("y"))) is index_of((budget("x"), without("y")))
    assert index_of((budget("x"),)).watched == {"default"}
