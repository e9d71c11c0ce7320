"""What a plan costs, written down a second time, and the least that clearing nodes of like pods can cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log2

from preemption_builders import NOW

from model.budget import DisruptionBudget
from model.pod.pod import Pod
from model.selector import Operator, Requirement, Selector
from model.workload import WorkloadId
from scheduler.core.preemption.facts import GangFacts

Budgets = tuple[DisruptionBudget, ...]
Cost = tuple[bool, int, tuple[bool, int], int, int, int, int, int, int]
NODE = 256
_Sum = tuple[int, int, int, int, int]


def budget(app: str, allowed: int = 0) -> DisruptionBudget:
    """Over the pods with this label `app`."""
    return DisruptionBudget("default", app, Selector((Requirement("app", Operator.IN, (app,)),)), allowed=allowed)


def cost(chosen: Sequence[Pod], kept: Budgets, gangs: Mapping[WorkloadId, GangFacts] | None = None) -> Cost:
    """Outside the bands at all, budgets broken, who is highest, how many outside whose jobs do not go on, how many
    outside, how many whose jobs do not go on, how many, priorities, nodes and loss.
    """
    standings = [(not pod.colocation.below_prod, pod.spec.priority) for pod in chosen]
    covered = (sum(pod.labels["app"] == budget.name for pod in chosen) - budget.allowed for budget in kept)
    loss = sum(map(_loss, chosen))
    ended = _ended(chosen, gangs or {})
    return (
        any(outside for outside, _ in standings),
        sum(max(0, over) for over in covered),
        max(standings, default=(False, 0)),
        sum(not pod.colocation.below_prod for pod in ended),
        sum(outside for outside, _ in standings),
        len(ended),
        len(chosen),
        sum(pod.spec.priority for pod in chosen),
        NODE * len({pod.spec.node_name for pod in chosen}) + loss,
    )


def _ended(chosen: Sequence[Pod], gangs: Mapping[WorkloadId, GangFacts]) -> list[Pod]:
    jobs = Counter(pod.own_workload for pod in chosen)
    needed = {pod.own_workload for pod in chosen if pod.colocation.minimum_member}
    spared = {job for job in jobs if job in gangs and jobs[job] <= gangs[job].surplus and job not in needed}
    return [pod for pod in chosen if pod.own_workload not in spared]


def least_cost(pods: Sequence[Pod], closed: str, members: int, each: int) -> Cost | None:
    """On nodes without room, full of pods of one size: so many members, for each of whom so many pods of a node go.

    `closed` is the app whose budget allows nothing. All but the highest standing are sums over nodes, so that for each
    height the cheapest choice is put together node by node.
    """
    found = []
    for height in {_standing(pod) for pod in pods}:
        cheapest = _cheapest([pod for pod in pods if _standing(pod) <= height], closed, members, each)
        if cheapest is not None:
            closed_ones, outside, number, *rest = cheapest
            found.append((height[0], closed_ones, height, outside, outside, number, number, *rest))
    return min(found, default=None)


def _cheapest(pods: Iterable[Pod], closed: str, members: int, each: int) -> _Sum | None:
    nodes: dict[str, list[_Sum]] = {}
    for pod in pods:
        own = (int(pod.labels["app"] == closed), int(not pod.colocation.below_prod), 1, pod.spec.priority, _loss(pod))
        nodes.setdefault(pod.spec.node_name, []).append(own)
    best: dict[int, _Sum] = {0: (0, 0, 0, 0, 0)}
    for prices in nodes.values():
        prices.sort()
        bought = dict(best)
        for number in range(1, len(prices) // each + 1):
            price = _plus((0, 0, 0, 0, NODE), *prices[: number * each])
            for had, before in best.items():
                after = _plus(before, price)
                bought[had + number] = min(bought.get(had + number, after), after)
        best = bought
    return min((sums for had, sums in best.items() if had >= members), default=None)


def _plus(*sums: _Sum) -> _Sum:
    closed, outside, number, priority, spread = (sum(column) for column in zip(*sums, strict=True))
    return closed, outside, number, priority, spread


def _standing(pod: Pod) -> tuple[bool, int]:
    return (not pod.colocation.below_prod, pod.spec.priority)


def _loss(pod: Pod) -> int:
    return round(NODE * log2(1 + (NOW - pod.status.started_seconds) / 60))
