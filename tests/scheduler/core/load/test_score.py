"""The load score, with Koordinator's own examples (loadaware/load_aware_test.go TestScore)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from load_builders import NOW, arrays_of, assigned, load, measured, nodes, prod_class, usage

from model.qos import PriorityBand
from scheduler.core.load.node import NodeLoad
from scheduler.core.load.policy import LoadPolicy
from scheduler.core.load.score import load_scores

P1 = "default/p1"
CASES: dict[str, tuple[NodeLoad, dict[str, Any], int]] = {
    "an empty node": (load(measured()), {}, 90),
    "32 CPUs and 10 GiB in use": (load(measured(32, 10)), {}, 72),
    "and another pod that is not reported": (load(measured(32, 10), None, [assigned()]), {}, 63),
    "and another pod that is reported": (load(measured(32, 10, {P1: usage(13, 22)}), None, [assigned()]), {}, 72),
    "more than there is of both": (load(measured(96, 512)), {}, 0),
    "more CPU than there is": (load(measured(96, 0)), {}, 47),
    "never measured": (NodeLoad(), {}, 0),
    "expired": (load(measured(at=NOW - 300)), {}, 0),
    "a second before it expires": (load(measured(at=NOW - 299)), {}, 90),
    "never expires": (load(measured(at=0.0)), {"expiry_seconds": 0.0}, 90),
    "CPU alone": (load(measured(32, 10)), {"memory_weight": 0}, 52),
    "memory weighs three times": (load(measured(32, 10)), {"memory_weight": 3}, 82),
    "the scarcer one counts once more": (load(measured(32, 10)), {"dominant_weight": 1}, 65),
    "nothing has weight": (load(measured(32, 10)), {"cpu_weight": 0, "memory_weight": 0, "dominant_weight": 1}, 0),
    "prod pods by prod usage": (
        load(measured(90, 500, {P1: usage(32, 10)}, prods=[P1]), None, [assigned(prod=True)], LoadPolicy(score_prod_usage=True)),
        {"score_prod_usage": True},
        72,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("one", "policy", "score"), CASES.values(), ids=CASES.keys())
def test_score(one: NodeLoad, policy: dict[str, Any], score: int) -> None:
    drawn = arrays_of(one, policy=LoadPolicy(**policy))
    assert load_scores(drawn, nodes(), prod_class()).tolist() == [score]


def test_only_prod_pods_are_scored_by_prod_usage() -> None:
    policy = LoadPolicy(score_prod_usage=True)
    drawn = arrays_of(load(measured(32, 10), None, [], policy), policy=policy)
    prod, mid = prod_class(), prod_class(band=PriorityBand.FREE)
    assert [load_scores(drawn, nodes(), one).tolist() for one in (prod, mid)] == [[90], [72]]


def test_rows_are_scored_alike_alone() -> None:
    drawn = arrays_of(*(load(measured(cpus, 10)) for cpus in (0, 32, 64)))
    every = load_scores(drawn, nodes(3), prod_class())
    assert load_scores(drawn, nodes(3), prod_class(), np.array([2, 0])).tolist() == [every[2], every[0]]


def test_an_expired_node_never_looks_emptier_than_a_fresh_one() -> None:
    drawn = arrays_of(load(measured(95, 500)), load(measured(at=NOW - 301)))
    full, stale = load_scores(drawn, nodes(2), prod_class())
    assert stale <= full


def test_a_node_without_cpu_or_memory() -> None:
    assert load_scores(arrays_of(load(measured())), nodes(cpus=0, gib=0), prod_class()).tolist() == [0]


def test_pods_that_go_leave_a_node_no_emptier_than_empty() -> None:
    drawn = arrays_of(load(measured()))
    drawn.put(0, prod_class(), -3)
    assert load_scores(drawn, nodes(), prod_class()).tolist() == [90]
