"""Row scores: which resources count for whom, and that a row scores the same however it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from load_builders import GIB, arrays_of, load, measured
from scheduler_builders import node, pod, snapshot

from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, ResourceVector
from model.scoring import ScoringStrategyType
from scheduler.core.scores.node_scores import ScoreAsk, row_scores
from scheduler.core.scores.policy import ScoredResource, ScorePolicy
from scheduler.core.snapshot.podclass import class_of

GPU = "nvidia.com/gpu"
FIT = ScorePolicy(balance_weight=0, load_weight=0)
BALANCE = ScorePolicy(fit_weight=0, load_weight=0)
EVEN_GPU = ScorePolicy(fit_weight=0, load_weight=0, balanced=(CPU, GPU))
PACK = ScorePolicy(strategy=ScoringStrategyType.BINPACK, balance_weight=0, load_weight=0)
WITH_GPU = ScorePolicy(
    resources=(ScoredResource(CPU), ScoredResource(MEMORY), ScoredResource(GPU, 2)), balance_weight=0, load_weight=0
)
HALF_BATCH = {BATCH_CPU: 2000, BATCH_MEMORY: 8 * GIB}


def ask(
    requests: dict[str, int], policy: ScorePolicy, scored: dict[str, int] | None = None, **amounts: int
) -> ScoreAsk:
    """One node of 4 CPUs and 16 GiB that lends as much and has 4 GPUs; `amounts` are used: cpu, memory, scored_cpu."""
    listed = {CPU: 4000, MEMORY: 16 * GIB, BATCH_CPU: 4000, BATCH_MEMORY: 16 * GIB, GPU: 4}
    taken = snapshot(node(amounts=listed))
    used, counted = np.zeros_like(taken.allocatable), np.zeros_like(taken.allocatable)
    for name, amount in amounts.items():
        counted[0, taken.resources.index(name.removeprefix("scored_"))] = amount
        if not name.startswith("scored_"):
            used[0, taken.resources.index(name)] = amount
    one = class_of(pod(requests=requests, scored=ResourceVector(requests if scored is None else scored)))
    return ScoreAsk(taken, taken.allocatable - used, counted, one, policy)


CASES: dict[str, tuple[ScoreAsk, int]] = {
    "cpu and memory": (ask({CPU: 1000, MEMORY: 8 * GIB}, FIT), 62),
    "a resource not asked for does not count": (ask({CPU: 4000, MEMORY: 16 * GIB}, FIT), 0),
    "batch resources beside cpu and memory": (ask(HALF_BATCH, FIT), 75),
    "batch resources with what the pod is scored by": (ask(HALF_BATCH, FIT, HALF_BATCH | {CPU: 400, MEMORY: 0}), 72),
    "packing turns it round": (ask(HALF_BATCH, PACK), 25),
    "extended resources that the pod asks for": (ask({CPU: 1000, GPU: 3}, WITH_GPU), 56),
    "extended resources that it does not ask for": (ask({CPU: 1000}, WITH_GPU), 87),
    "nothing asked for counts by defaults": (ask({"pods": 1}, FIT, {CPU: 100, MEMORY: 200 << 20}), 97),
    "others count by what they are scored by": (ask({CPU: 1000}, FIT, None, scored_cpu=2000), 62),
    "balance counts requests alone": (ask({CPU: 1000, MEMORY: 8 * GIB}, BALANCE, None, scored_cpu=2000), 87),
    "balance counts those there": (ask({CPU: 1000, MEMORY: 8 * GIB}, BALANCE, None, cpu=1000), 100),
    "balance of other resources": (ask({CPU: 1000, MEMORY: 16 * GIB, GPU: 2}, EVEN_GPU), 87),
    "balance of a pod that asks for neither": (ask(HALF_BATCH, BALANCE), 0),
    "weights": (ask({CPU: 1000, MEMORY: 8 * GIB}, ScorePolicy(fit_weight=3, balance_weight=2, load_weight=0)), 3 * 62 + 2 * 87),
    "all off": (ask({CPU: 1000}, ScorePolicy(fit_weight=0, balance_weight=0, load_weight=0)), 0),
}  # fmt: skip


@pytest.mark.parametrize(("one", "score"), CASES.values(), ids=CASES.keys())
def test_score(one: ScoreAsk, score: int) -> None:
    assert row_scores(one).tolist() == [score]


def test_load_is_added() -> None:
    """14 of 96 CPUs and 22 of 512 GiB, with the pod: 90, as Koordinator's example, of half the size."""
    taken = snapshot(node(amounts={CPU: 96_000, MEMORY: 512 * GIB}))
    one = class_of(pod(requests={CPU: 16_000, MEMORY: 32 * GIB}))
    policy = ScorePolicy(fit_weight=0, balance_weight=0, load_weight=2)
    asked = ScoreAsk(taken, taken.free, np.zeros_like(taken.free), one, policy, arrays_of(load(measured())))
    assert row_scores(asked).tolist() == [2 * 90]


@st.composite
def asks(draw: st.DrawFn) -> ScoreAsk:
    amounts = st.integers(0, 1 << 40)
    number = draw(st.integers(1, 6))
    names = (CPU, MEMORY, BATCH_CPU, BATCH_MEMORY, GPU)
    taken = snapshot(*(node(f"n{i}", amounts={name: draw(amounts) for name in names}) for i in range(number)))
    shape = taken.allocatable.shape
    free = taken.allocatable - np.array(
        draw(st.lists(amounts, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    ).reshape(shape)
    requests: dict[str, Any] = draw(st.dictionaries(st.sampled_from(names), amounts))
    policy = draw(st.sampled_from((ScorePolicy(), ScorePolicy(strategy=ScoringStrategyType.RATIO), PACK, WITH_GPU)))
    loads = arrays_of(*(load(measured(draw(st.integers(0, 100)))) for _ in range(number)))
    return ScoreAsk(taken, free, taken.allocatable - free, class_of(pod(requests=requests)), policy, loads)  # fmt: skip


@given(asks(), st.data())
def test_a_row_scores_the_same_however_it_is_asked_for(one: ScoreAsk, data: st.DataObject) -> None:
    every = row_scores(one)
    rows = np.array(data.draw(st.lists(st.integers(0, len(every) - 1), min_size=1)))
    assert row_scores(one, rows).tolist() == every[rows].tolist()


@given(asks())
def test_scores_stay_in_range(one: ScoreAsk) -> None:
    assert all(0 <= score <= 300 for score in row_scores(one))


def test_amounts_beyond_any_machine() -> None:
    """Cut, so that percentages do not overflow."""
    taken = snapshot(node(amounts={CPU: 1 << 60, MEMORY: 1 << 60}))
    asked = ScoreAsk(taken, taken.free, np.zeros_like(taken.free), class_of(pod(requests={CPU: 1 << 62})), PACK)
    assert row_scores(asked).tolist() == [50]
