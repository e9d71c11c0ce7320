"""Packing of openb's GPU nodes, by the procedure of the trace's data README, beside random and best fit.

GPU nodes only. The pods are shuffled; more are drawn at random from the same list until what they ask for reaches 130 %
of all GPUs; they are placed in order, nothing leaves, and what does not fit is dropped. Pods that share a GPU are left
out. Best fit takes the node where the least is left, in shares of the largest node summed over CPU, memory and GPUs;
ties go to the first node. Random fit takes any node with room.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from bench.schedule.cluster import GPU, TracePod, amounts, openb_nodes, openb_pods, workload
from bench.schedule.decider import Decider
from bench.schedule.effort import SchedulingEffort, tell
from model.node import Node
from model.resources import CPU, MEMORY
from model.scoring import ScoringStrategyType
from scheduler.core.placement.place import Placed
from scheduler.core.scores.policy import SchedulerProfile, ScoredResource, ScorePolicy
from scheduler.core.snapshot.snapshot import Amounts, Mask

BINPACK = "ours, binpack"
_HALF = 0.5
_RESOURCES = (CPU, MEMORY, GPU)
_PACK = ScorePolicy(
    strategy=ScoringStrategyType.BINPACK, resources=tuple(ScoredResource(name) for name in _RESOURCES), balance_weight=0
)
Choose = Callable[[Amounts, Mask], int]


class Packing(msgspec.Struct, frozen=True):
    """One policy, seed by seed: GPUs allocated at the end, and nodes in use once half of all GPUs were asked for."""

    policy: str
    allocated_pct: tuple[float, ...]
    nodes_at_half: tuple[int, ...]


def measure_packing(effort: SchedulingEffort, data: Path) -> Iterator[Packing]:
    """Ours as it comes and with MostAllocated, and the two others, on the same pods in the same order."""
    nodes, pods = openb_nodes(data, gpu_only=True), openb_pods(data)
    tell(f"packing openb, {effort.packing_seeds} seeds")
    orders = [drawn(pods, nodes, seed, effort.packing_load) for seed in range(effort.packing_seeds)]
    policies: dict[str, Callable[[int, Sequence[TracePod]], tuple[float, int]]] = {
        "random fit": lambda seed, order: _plain(nodes, order, _random(seed)),
        "best fit": lambda seed, order: _plain(nodes, order, _best(nodes)),
        "ours": lambda seed, order: _ours(nodes, order, ScorePolicy()),
        BINPACK: lambda seed, order: _ours(nodes, order, _PACK),
    }
    for name, run in policies.items():
        found = [run(seed, order) for seed, order in enumerate(orders)]
        yield Packing(name, tuple(pct for pct, _ in found), tuple(used for _, used in found))


def drawn(pods: Sequence[TracePod], nodes: Sequence[Node], seed: int, load: float) -> list[TracePod]:
    """The shuffled pods, and others drawn until `load` times all GPUs are asked for; cut there."""
    chance = random.Random(seed)
    order = list(pods)
    chance.shuffle(order)
    wanted, asked = load * _gpus(nodes), 0
    found: list[TracePod] = []
    while asked < wanted:
        each = order[len(found)] if len(found) < len(order) else chance.choice(pods)
        found.append(each)
        asked += each.gpus
    return found


def _gpus(nodes: Sequence[Node]) -> int:
    return sum(node.allocatable[GPU] for node in nodes)


def _plain(nodes: Sequence[Node], order: Sequence[TracePod], choose: Choose) -> tuple[float, int]:
    free = np.array([[node.allocatable[name] for name in _RESOURCES] for node in nodes], np.int64)
    used, asked, allocated, at_half = np.zeros(len(nodes), bool), 0, 0, 0
    for each in order:
        request = np.array([amounts(each).get(name, 0) for name in _RESOURCES], np.int64)
        fits: Mask = np.asarray((free >= request).all(axis=1))
        if fits.any():
            row = choose(free - request, fits)
            free[row] -= request
            used[row] = True
            allocated += each.gpus
        if asked < _HALF * _gpus(nodes) <= asked + each.gpus:
            at_half = int(used.sum())
        asked += each.gpus
    return 100 * allocated / _gpus(nodes), at_half


def _random(seed: int) -> Choose:
    chance = random.Random(seed)
    return lambda left, fits: int(chance.choice(np.flatnonzero(fits).tolist()))


def _best(nodes: Sequence[Node]) -> Choose:
    largest = np.array([max(node.allocatable[name] for node in nodes) for name in _RESOURCES], float)
    return lambda left, fits: int(np.where(fits, (left / largest).sum(axis=1), np.inf).argmin())


def _ours(nodes: Sequence[Node], order: Sequence[TracePod], policy: ScorePolicy) -> tuple[float, int]:
    """Lone pods, as these are; ties to the first node by name."""
    decider = Decider(nodes, profiles=(SchedulerProfile(("koord-scheduler",), policy),))
    used: set[int] = set()
    asked, allocated, at_half = 0, 0, 0
    for number, each in enumerate(order):
        outcome = decider.decide(workload(f"openb-{number}", 1, amounts(each)))
        if isinstance(outcome, Placed):
            used.add(outcome.assignments[0].row)
            allocated += each.gpus
        if asked < _HALF * _gpus(nodes) <= asked + each.gpus:
            at_half = len(used)
        asked += each.gpus
    return 100 * allocated / _gpus(nodes), at_half
