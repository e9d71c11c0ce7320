"""What the brake's thread may kill between two ticks, and when memory is so short that nothing may wait.

The kernel's own OOM killer chooses by size and may hit an online pod; a best-effort pod that was chosen beforehand
goes first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

from agent.core.evict_known import memory_bytes
from agent.core.evict_needs import memory_levels
from agent.core.evict_victims import GangAccount
from agent.core.memoryroom import last_resort_bytes
from agent.core.observation import CgroupSample, Observation, Stall
from agent.core.watch import LastResort, PreparedVictim
from model.node import Node
from model.pod import Pod
from model.reason import Reason
from model.report import EvictionCost
from model.resources import MEMORY
from model.strategy import EvictionStrategy

_MOST_VICTIMS = 8


def last_resort(
    seen: Observation,
    node: Node,
    pods: tuple[Pod, ...],
    strategy: EvictionStrategy,
    costs: Mapping[str, EvictionCost],
    leaving: frozenset[str],
) -> LastResort | None:
    """When to kill, and whom in which order; None where that is switched off or the node's memory is not known.

    Whoever is on the way out anyway goes first, then as an eviction for memory would choose, a pod that forbids such
    an eviction last: the kernel would not ask it either.
    """
    percent, capacity = strategy.last_resort_pct, node.capacity[MEMORY]
    if not strategy.enable or percent is None or capacity <= 0:
        return None
    limit = seen.kubepods_memory_limit_bytes
    candidates = _candidates(seen, pods, GangAccount(costs, leaving), leaving)
    best = heapq.nsmallest(_MOST_VICTIMS, candidates, key=lambda each: each[0])
    return LastResort(
        node_available_bytes=last_resort_bytes(capacity, percent),
        kubepods_room_bytes=None if limit is None else last_resort_bytes(limit, percent),
        kubepods_limit_bytes=limit,
        victims=tuple(
            PreparedVictim(pod.uid, pod.namespace, pod.name, path, memory_bytes(seen, pod.uid)) for _, pod, path in best
        ),
    )


_Key = tuple[bool, bool, int, tuple[int, float], int, str]


def _candidates(
    seen: Observation, pods: tuple[Pod, ...], gangs: GangAccount, leaving: frozenset[str]
) -> Iterator[tuple[_Key, Pod, str]]:
    """Sort key, pod and cgroup of what lives below the best-effort root and holds memory."""
    below = frozenset(seen.places.best_effort)
    for pod in pods:
        place, held = seen.places.pods.get(pod.uid), memory_bytes(seen, pod.uid)
        if place is None or place.path not in below or not held or not pod.best_effort or pod.terminal:
            continue
        features = pod.eviction.features
        spared = features is not None and Reason.BE_MEMORY_EVICT.value not in features
        stays = not pod.deleting and pod.uid not in leaving
        yield (stays, stays and spared, pod.priority, gangs.key(pod.uid), -held, pod.uid), pod, place.path


def urgency(seen: Observation, node: Node, strategy: EvictionStrategy) -> str:
    """Why memory cannot wait for grace, notice and rest, in words; empty where it can."""
    percent = strategy.thrash_full_pct
    pods = seen.kubepods.pressure if isinstance(seen.kubepods, CgroupSample) else None
    stalls = {"the node": seen.node_pressure, "all pods": pods}
    for who, pressure in stalls.items():
        if pressure is not None and percent is not None and _thrashes(pressure.memory_full, percent):
            return f"every task of {who} waits for memory at least {percent} % of the time"
    return "memory is about to run out" if _at_last_resort(seen, node, strategy) else ""


def _thrashes(full: Stall | None, percent: int) -> bool:
    return full is not None and full.avg10_pct > 0 and full.avg10_pct >= percent


def _at_last_resort(seen: Observation, node: Node, strategy: EvictionStrategy) -> bool:
    percent = strategy.last_resort_pct
    if percent is None:
        return False
    return any(
        level.whole - level.used <= last_resort_bytes(level.whole, percent) for level in memory_levels(seen, node)
    )
