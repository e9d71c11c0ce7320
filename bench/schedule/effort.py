"""Effort of the scheduler's benchmark: how much of everything it does."""

from __future__ import annotations

import sys

import msgspec


class SchedulingEffort(msgspec.Struct, frozen=True):
    """Rounds are medians' samples; `greedy_seconds` is how long the slow baseline gets each time."""

    rounds: int = 5
    nodes: tuple[int, ...] = (100, 1_000, 5_000, 10_000)
    gangs: tuple[int, ...] = (1, 8, 64, 512)
    decisions: int = 2_000
    greedy_seconds: float = 1.0
    preemption_nodes: tuple[int, ...] = (100, 1_000, 5_000)
    preemptions: int = 200
    quality_cases: int = 400
    packing_seeds: int = 10
    packing_load: float = 1.3
    trace_jobs: int = 5_000
    cold_nodes: int = 5_000
    cold_pods: int = 140_000
    end_nodes: int = 100
    end_pods: int = 1_000
    end_burst: int = 5_000
    end_binds: tuple[int, ...] = (16, 32, 64, 128)
    end_rounds: int = 3
    jobs: int = 1_000
    queues: int = 500
    queued_jobs: int = 10_000
    queued_nodes: int = 5_000
    queued_gangs: tuple[int, ...] = (1, 8, 64)


QUICK = SchedulingEffort(
    rounds=2,
    nodes=(20, 40),
    gangs=(1, 8),
    decisions=20,
    greedy_seconds=0.05,
    preemption_nodes=(20,),
    preemptions=5,
    quality_cases=10,
    packing_seeds=1,
    packing_load=0.05,
    trace_jobs=50,
    cold_nodes=20,
    cold_pods=200,
    end_nodes=5,
    end_pods=20,
    end_burst=40,
    end_binds=(1, 8),
    end_rounds=1,
    jobs=4,
    queues=60,
    queued_jobs=100,
    queued_nodes=20,
    queued_gangs=(1, 8),
)


def tell(line: str) -> None:
    """One line on standard error before each part, since the whole takes minutes."""
    print(f"bench: {line}", file=sys.stderr, flush=True)
