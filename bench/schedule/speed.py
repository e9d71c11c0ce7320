"""Decisions a second and their latencies, beside both baselines on the same cluster in the same round."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from bench.schedule.baselines import Bare, Greedy, bare_requests
from bench.schedule.cluster import (
    GPU,
    openb_candidates,
    openb_nodes,
    openb_pods,
    philly_gangs,
    residents,
    synthetic_gangs,
    synthetic_nodes,
)
from bench.schedule.decider import Decider, DecisionTimes
from bench.schedule.effort import SchedulingEffort, tell
from model.node import Node
from model.pod.pod import Pod
from model.resources import CPU, MEMORY, PODS
from scheduler.core.gangs.assembly import Candidate

SYNTHETIC, OPENB, PHILLY = "synthetic", "openb", "Philly on openb"
_MOST_PODS = 40_000
_RESIDENT_SHARE = 0.4


class Speed(msgspec.Struct, frozen=True):
    """One workload on one cluster: pods placed a second, round by round, and the latencies of all rounds in µs.

    `members` is the size of the gangs, 0 where they differ. `greedy` has what the slow baseline did in its time.
    """

    cluster: str
    nodes: int
    members: int
    decisions: int
    ours: tuple[float, ...]
    bare: tuple[float, ...]
    greedy: tuple[float, ...]
    p50_us: float
    p99_us: float
    placed: int


class _Case(msgspec.Struct, frozen=True, eq=False):
    cluster: str
    nodes: Sequence[Node]
    residents: Sequence[Pod]
    candidates: Sequence[Candidate]
    members: int
    columns: tuple[str, ...] = (CPU, MEMORY, PODS)


def measure_speed(effort: SchedulingEffort) -> Iterator[Speed]:
    """Synthetic clusters about two fifths full, of every size, with gangs of every size."""
    for count in effort.nodes:
        nodes = synthetic_nodes(count)
        pods = list(residents(nodes, 1, _RESIDENT_SHARE))
        for members in effort.gangs:
            tell(f"deciding on gangs of {members} with {count} nodes")
            number = max(1, min(effort.decisions, _MOST_PODS // members, count * 8 // members))
            yield _measured(_Case(SYNTHETIC, nodes, pods, synthetic_gangs(number, members, 2), members), effort)


def measure_traces(effort: SchedulingEffort, data: Path) -> Iterator[Speed]:
    """openb's pods in order, which stay; Philly's jobs in order, where the oldest end when the next does not fit."""
    tell("deciding on openb's pods in order")
    pods = openb_candidates(openb_pods(data)[: effort.trace_jobs * 2])
    columns = (CPU, MEMORY, GPU, PODS)
    yield _measured(_Case(OPENB, openb_nodes(data), (), pods, 1, columns), effort)
    tell("deciding on Philly's jobs in order")
    yield _philly(openb_nodes(data, gpu_only=True), philly_gangs(data, effort.trace_jobs), effort)


def _measured(case: _Case, effort: SchedulingEffort) -> Speed:
    requests = bare_requests(case.candidates, case.columns)
    free = _free(Decider(case.nodes, case.residents), case.columns)
    ours, bare, greedy = [], [], []
    for number in range(effort.rounds):
        decider = Decider(case.nodes, case.residents)
        gc.collect()
        ours.append(decider.run(case.candidates))
        bare.append(Bare(free).run(requests))
        if number < 2:
            greedy.append(Greedy(case.nodes, case.residents).run(case.candidates, effort.greedy_seconds))
    return _speed(case, ours, bare, greedy)


def _free(decider: Decider, columns: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    snapshot = decider.snapshot
    return np.ascontiguousarray(snapshot.free[:, [snapshot.resources.index(name) for name in columns]])


def _speed(
    case: _Case, ours: Sequence[DecisionTimes], bare: Sequence[DecisionTimes], greedy: Sequence[DecisionTimes]
) -> Speed:
    latencies = sorted(each for taken in ours for each in taken.nanoseconds)
    return Speed(
        case.cluster,
        len(case.nodes),
        case.members,
        len(case.candidates),
        tuple(rate(taken) for taken in ours),
        tuple(rate(taken) for taken in bare),
        tuple(rate(taken) for taken in greedy),
        rank_us(latencies, 50),
        rank_us(latencies, 99),
        ours[0].pods,
    )


def rate(taken: DecisionTimes) -> float:
    """Pods that got a node, a second."""
    return taken.pods / taken.seconds if taken.seconds else 0.0


def rank_us(ranked_ns: Sequence[int], pct: int) -> float:
    """Nearest rank."""
    return ranked_ns[max(1, -(-len(ranked_ns) * pct // 100)) - 1] / 1000


def _philly(nodes: Sequence[Node], jobs: Sequence[Candidate], effort: SchedulingEffort) -> Speed:
    """A full cluster that changes: the figure holds refusals and the snapshots of new turns, not only placements."""
    columns = (CPU, MEMORY, GPU, PODS)
    requests, free = bare_requests(jobs, columns), _free(Decider(nodes), columns)
    case = _Case(PHILLY, nodes, (), jobs, 0, columns)
    ours, bare, greedy = [], [], []
    for number in range(effort.rounds):
        ours.append(_churned(nodes, jobs))
        bare.append(Bare(free).run(requests))
        if number < 2:
            greedy.append(Greedy(nodes).run(jobs, effort.greedy_seconds))
    return _speed(case, ours, bare, greedy)


def _churned(nodes: Sequence[Node], jobs: Sequence[Candidate]) -> DecisionTimes:
    decider, pods = Decider(nodes), 0
    taken: list[int] = []
    running: list[Candidate] = []
    for job in jobs:
        found = decider.run([job])
        taken += found.nanoseconds
        while found.pods == 0 and running:
            begun = time.perf_counter_ns()
            decider.forget(decider.where.pop(running.pop(0).subject))
            taken.append(time.perf_counter_ns() - begun)
            found = decider.run([job])
            taken += found.nanoseconds
        pods += found.pods
        if found.pods:
            running.append(job)
    return DecisionTimes(tuple(taken), pods)
