"""Scores of what is asked for come out as Kubernetes' own tests have them (plugins/noderesources/*_test.go)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from model.scoring import ScoringStrategyType
from scheduler.core.scores.allocation import balanced, capacity_ratio, fit_scores, least_allocated, most_allocated
from scheduler.core.scores.policy import ScorePolicy, ShapePoint
from scheduler.core.snapshot.snapshot import Amounts

EVEN = (1, 1)
FALLING = (ShapePoint(0, 10), ShapePoint(100, 0))
RISING = (ShapePoint(0, 0), ShapePoint(100, 10))

# name, (cpu, memory) asked for in all, (cpu, memory) of the node, weights, score
LEAST = [
    ("nothing asked for", (0, 0), (4000, 10000), EVEN, 100),
    ("differently sized nodes, the smaller", (3000, 5000), (4000, 10000), EVEN, 37),
    ("differently sized nodes, the larger", (3000, 5000), (6000, 10000), EVEN, 50),
    ("pods there with cpu only", (6000, 0), (10000, 20000), EVEN, 70),
    ("pods there with cpu and memory", (6000, 5000), (10000, 20000), EVEN, 57),
    ("more there", (6000, 10000), (10000, 20000), EVEN, 45),
    ("more memory on the node", (6000, 10000), (10000, 50000), EVEN, 60),
    ("cpu overcommitted counts as none left", (6000, 0), (4000, 10000), EVEN, 50),
    ("cpu overcommitted and memory half used", (6000, 5000), (4000, 10000), EVEN, 25),
    ("a node without anything", (3000, 5000), (0, 0), EVEN, 0),
    ("memory weighs double", (3000, 5000), (4000, 10000), (1, 2), 41),
    ("a resource the node lacks does not count", (3000, 5000), (4000, 0), EVEN, 25),
]
MOST = [
    ("nothing asked for", (0, 0), (4000, 10000), EVEN, 0),
    ("the smaller node", (3000, 5000), (4000, 10000), EVEN, 62),
    ("the larger node", (3000, 5000), (6000, 10000), EVEN, 50),
    ("pods there", (6000, 5000), (10000, 20000), EVEN, 42),
    ("more there", (6000, 10000), (10000, 20000), EVEN, 55),
    ("overcommitted counts as full", (6000, 5000), (4000, 10000), EVEN, 75),
    ("memory weighs double", (3000, 5000), (4000, 10000), (1, 2), 58),
    ("a resource the node lacks does not count", (3000, 5000), (4000, 0), EVEN, 75),
]
RATIO = [
    ("nothing asked for, falling", (0, 0), (4000, 10000), FALLING, 100),
    ("the smaller node is rounded, not cut", (3000, 5000), (4000, 10000), FALLING, 38),
    ("the larger node", (3000, 5000), (6000, 10000), FALLING, 50),
    ("rising packs", (3000, 5000), (6000, 10000), RISING, 50),
    ("a resource that scores 0 does not count", (0, 5000), (6000, 10000), RISING, 50),
    ("nothing scores", (0, 0), (6000, 10000), RISING, 0),
    ("overcommitted is at the end of the line", (9000, 5000), (6000, 10000), RISING, 75),
    (
        "a corner in the line",
        (4000, 4000),
        (10000, 10000),
        (ShapePoint(0, 2), ShapePoint(40, 10), ShapePoint(100, 0)),
        100,
    ),
    ("beyond the corner", (7000, 7000), (10000, 10000), (ShapePoint(0, 2), ShapePoint(40, 10), ShapePoint(100, 0)), 50),
    ("before the first point", (500, 500), (10000, 10000), (ShapePoint(10, 1), ShapePoint(90, 9)), 10),
    ("after the last point", (9900, 9900), (10000, 10000), (ShapePoint(10, 1), ShapePoint(90, 9)), 90),
]
BALANCED = [
    ("three quarters and a half", (3000, 5000), (4000, 10000), 87),
    ("both half", (3000, 5000), (6000, 10000), 100),
    ("0.6 and 0.25", (6000, 5000), (10000, 20000), 82),
    ("0.6 and 0.5", (6000, 10000), (10000, 20000), 95),
    ("0.6 and 0.2", (6000, 10000), (10000, 50000), 80),
    ("cpu full, memory empty", (6000, 0), (6000, 10000), 50),
    ("cpu full, memory half", (6000, 5000), (6000, 10000), 75),
    ("three resources", (3000, 5000, 4), (3500, 40000, 8), 70),
    ("three resources, less of the third", (3000, 5000, 1), (3500, 40000, 8), 65),
    ("one that the node lacks is left out", (3000, 5000, 1), (3500, 40000, 0), 63),
    ("overcommitted counts as full", (9000, 10000), (6000, 10000), 100),
    ("one resource is in balance with itself", (3000,), (4000,), 100),
]


def column(values: tuple[int, ...]) -> Amounts:
    return np.array(values, np.int64)[:, None]


@pytest.mark.parametrize(("asked", "node", "weights", "score"), [c[1:] for c in LEAST], ids=[c[0] for c in LEAST])
def test_least_allocated(asked: Any, node: Any, weights: Any, score: int) -> None:
    assert least_allocated(column(asked), column(node), np.array(weights)).tolist() == [score]


@pytest.mark.parametrize(("asked", "node", "weights", "score"), [c[1:] for c in MOST], ids=[c[0] for c in MOST])
def test_most_allocated(asked: Any, node: Any, weights: Any, score: int) -> None:
    assert most_allocated(column(asked), column(node), np.array(weights)).tolist() == [score]


@pytest.mark.parametrize(("asked", "node", "shape", "score"), [c[1:] for c in RATIO], ids=[c[0] for c in RATIO])
def test_capacity_ratio(asked: Any, node: Any, shape: Any, score: int) -> None:
    assert capacity_ratio(column(asked), column(node), np.array(EVEN), shape).tolist() == [score]


@pytest.mark.parametrize(("asked", "node", "score"), [c[1:] for c in BALANCED], ids=[c[0] for c in BALANCED])
def test_balanced(asked: Any, node: Any, score: int) -> None:
    assert balanced(column(asked), column(node)).tolist() == [score]


@pytest.mark.parametrize(
    ("strategy", "score"),
    [(ScoringStrategyType.SPREAD, 37), (ScoringStrategyType.BINPACK, 62), (ScoringStrategyType.RATIO, 63)],
)
def test_the_policy_chooses_the_strategy(strategy: ScoringStrategyType, score: int) -> None:
    """The default shape packs as MostAllocated does, but rounds."""
    policy = ScorePolicy(strategy=strategy)
    assert fit_scores(policy, column((3000, 5000)), column((4000, 10000)), np.array(EVEN)).tolist() == [score]
