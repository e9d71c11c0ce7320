"""Last resort: what the brake's thread may kill between two ticks, and when memory is so short that nothing may wait.

The kernel's own OOM killer chooses by size and may hit an online pod; a best-effort pod that was chosen beforehand
goes first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

from agent.core.evict.departed import DepartedPods
from agent.core.evict.tick_facts import exceeds_limit, held_bytes, memory_bytes
from agent.core.evict.victims import GangAccount
from agent.core.limit.memory_headroom import last_resort_bytes, memory_levels, node_memory_bytes
from agent.core.limit.watch import LastResort, PreparedVictim
from agent.core.observe.observation import CgroupPressure, CgroupSample, Missing, Observation, Stall
from model.decision import Decision
from model.explain import amount
from model.node import Node
from model.pod.pod import Pod
from model.reason import Reason
from model.report import EvictionCost
from model.strategy import EvictionStrategy

_MOST_VICTIMS = 8
_MOST_TERMINATING = 4
"""Of these, where others could take the place: who terminates may never end, and be killed in vain."""
_NO_GANG = 0, 0.0


def last_resort(
    observation: Observation,
    node: Node,
    pods: DepartedPods,
    strategy: EvictionStrategy,
    costs: Mapping[str, EvictionCost],
    terminating: frozenset[str],
) -> LastResort | None:
    """When to kill, and whom in which order; None where that is switched off or the node's memory is not known.

    A pod that terminates anyway comes first, and one that nobody lists any more; then as an eviction for memory would
    choose, a pod that forbids such an eviction last, unless it holds more than its own limit: the kernel would not ask
    it either.
    """
    percent, capacity = strategy.last_resort_pct, node_memory_bytes(node)
    if not strategy.enable or percent is None or capacity <= 0:
        return None
    limit = observation.kubepods_memory_limit_bytes
    node_bytes = last_resort_bytes(capacity, percent)
    room_bytes = None if limit is None else last_resort_bytes(limit, percent)
    gangs = GangAccount(costs, terminating)
    candidates = (*_listed(observation, pods.listed, gangs, terminating), *_departed(observation, pods.gone))
    helps_bytes = max(node_bytes, room_bytes or 0) * strategy.least_help_pct // 100
    return LastResort(
        node_available_bytes=node_bytes,
        kubepods_room_bytes=room_bytes,
        kubepods_limit_bytes=limit,
        victims=tuple(victim for _, victim in _first(candidates, helps_bytes)),
        least_help_pct=strategy.least_help_pct,
    )


_Key = tuple[bool, bool, bool, int, tuple[int, float], int, str]
_Candidate = tuple[_Key, PreparedVictim]


def _first(candidates: tuple[_Candidate, ...], helps_bytes: int) -> list[_Candidate]:
    """So many as are prepared, in order: of those that terminate, then of all others."""
    stay = [each for each in candidates if each[0][0]]
    going = [each for each in candidates if not each[0][0]]
    first = _helpful(going, max(_MOST_VICTIMS - len(stay), _MOST_TERMINATING), helps_bytes)
    return first + _helpful(stay, _MOST_VICTIMS - len(first), helps_bytes)


def _helpful(candidates: list[_Candidate], most: int, helps_bytes: int) -> list[_Candidate]:
    """The first. Where those would hardly help together nobody of them would be killed: then they are those that hold
    most, who may stand behind many small ones."""
    first = heapq.nsmallest(most, candidates)
    if sum(victim.frees_bytes for _, victim in first) >= helps_bytes:
        return first
    return sorted(heapq.nlargest(most, candidates, key=lambda each: each[1].frees_bytes))


def _listed(
    observation: Observation, pods: Mapping[str, Pod], gangs: GangAccount, terminating: frozenset[str]
) -> Iterator[_Candidate]:
    """Sort key and victim, of those that hold memory."""
    for path, pod in pods.items():
        held = memory_bytes(observation, pod.uid)
        if not held:
            continue
        features = pod.colocation.eviction.features
        spared = features is not None and Reason.BE_MEMORY_EVICT.value not in features
        stays = not pod.deleting and pod.uid not in terminating
        within = stays and not exceeds_limit(pod, held)
        key = stays, within, within and spared, pod.spec.priority, gangs.key(pod.uid), -held, pod.uid
        yield key, PreparedVictim(pod.uid, pod.namespace, pod.name, path, held)


def _departed(observation: Observation, pods: Mapping[str, Pod]) -> Iterator[_Candidate]:
    """The same of those that nobody lists any more, which nothing else ends."""
    for path, pod in pods.items():
        if held := held_bytes(observation, observation.unlisted_best_effort.get(path)):
            key = False, False, False, pod.spec.priority, _NO_GANG, -held, pod.uid
            yield key, PreparedVictim(pod.uid, pod.namespace, pod.name, path, held)


def urgency(observation: Observation, node: Node, strategy: EvictionStrategy, refaulted: Decision | None = None) -> str:
    """Why memory cannot wait for grace, notice and rest, in words; empty where it can.

    `refaulted` is what online pods read back (core.evict.thrashing): newer kernels hardly count such waits as stalls.
    """
    percent = strategy.thrash_full_pct
    stalls = {"the node": observation.node_pressure, "all pods": _pressure(observation.kubepods)}
    for who, pressure in stalls.items():
        full = pressure.memory_full if pressure else None
        if percent is not None and _at_least(full, percent) and _online_waits(observation, percent):
            return f"every task of {who} waits for memory at least {percent} % of the time, online pods too"
    if refaulted is not None and refaulted.reason is Reason.THRASHING:
        read = amount(refaulted.value, refaulted.unit)
        return f"online pods read back {read} of what was taken from them, {refaulted.detail}"
    return "memory is about to run out" if _at_last_resort(observation, node, strategy) else ""


def _online_waits(observation: Observation, percent: int) -> bool:
    """Best effort that waits at its own memory.high, while nobody else has work to do, is every task of the node.

    Where no online pod's pressure is known, the node's must do.
    """
    below = frozenset(observation.places.best_effort)
    online = [observation.pods.get(uid) for uid, place in observation.places.pods.items() if place.path not in below]
    pressures = (_pressure(sample) for sample in (observation.burstable, *online))
    waits = [pressure.memory_some for pressure in pressures if pressure and pressure.memory_some]
    return not waits or any(_at_least(some, percent) for some in waits)


def _pressure(sample: CgroupSample | Missing | None) -> CgroupPressure | None:
    return sample.pressure if isinstance(sample, CgroupSample) else None


def _at_least(stall: Stall | None, percent: int) -> bool:
    return stall is not None and stall.avg10_pct > 0 and stall.avg10_pct >= percent


def _at_last_resort(observation: Observation, node: Node, strategy: EvictionStrategy) -> bool:
    percent = strategy.last_resort_pct
    if percent is None:
        return False
    return any(
        level.whole - level.used <= last_resort_bytes(level.whole, percent)
        for level in memory_levels(observation, node)
    )
