"""Builders for evictions: a node of 2 CPUs and 10 GiB, and best-effort pods that hold what a case is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from agent.core.evict.decide import EvictionFacts, EvictionMemory, Evictions, decide_evictions
from agent.core.evict.tick_facts import TickFacts
from agent.core.observe.observation import CgroupSample, NodeSample, Observation, Places, PodPlace
from agent.core.observe.usage import Averages, NodeUsage
from model.decision import Decision
from model.node import Node
from model.pod.pod import Pod
from model.pod.spec import Container
from model.pod.status import PodPhase
from model.qos import KubernetesQoS, PriorityBand, QoSClass
from model.report import EvictionCost, Usage
from model.resources import BATCH_MEMORY, CPU, MEMORY, ResourceVector
from model.strategy import EvictionStrategy
from tests.pods import make_pod

MIB = 1 << 20
GIB = 1 << 30
NOW = 1000.0
ROOT = "/kubepods/besteffort"


class Holding(msgspec.Struct, frozen=True):
    """A pod and what it uses: milli-CPU, and memory in MiB (None: it was not read), `kernel` in pipes and the like."""

    pod: Pod
    cpu: int = 100
    memory: int | None = 1024
    kernel: int = 0


def batch(name: str, memory: int | None = 1024, cpu: int = 100, **more: Any) -> Holding:
    """A pod labelled BE."""
    fields = {
        "priority": 5000,
        "phase": PodPhase.RUNNING,
        "qos": QoSClass.BE,
        "qos_label": QoSClass.BE,
        "kubernetes_qos": KubernetesQoS.BEST_EFFORT,
        "band": PriorityBand.BATCH,
    }
    return Holding(make_pod("d", name, name, **{**fields, **more}), cpu, memory)


def piping(name: str, memory: int, kernel: int, **more: Any) -> Holding:
    """One that holds most of its memory in pipes."""
    return msgspec.structs.replace(batch(name, memory, **more), kernel=kernel)


def limited(name: str, memory: int, limit: int, **more: Any) -> Holding:
    """One that may hold `limit` MiB by its own spec."""
    amounts = ResourceVector({BATCH_MEMORY: limit * MIB})
    return batch(name, memory, containers=(Container("c", amounts, amounts),), limits=amounts, **more)


def online(name: str, memory: int | None = 1024, cpu: int = 100, **more: Any) -> Holding:
    return Holding(make_pod("d", name, name, **{"phase": PodPhase.RUNNING, **more}), cpu, memory)


def node(memory: int = 10 * GIB, cpu: int = 2000, **allocatable: int) -> Node:
    amounts = {f"kubernetes.io/{name.replace('_', '-')}": amount for name, amount in allocatable.items()}
    capacity = {CPU: cpu, MEMORY: memory}
    return Node("n", ResourceVector(capacity), ResourceVector({**capacity, **amounts}))


def seen(*holdings: Holding, used: int = 0, at: float = NOW, **more: Any) -> Observation:
    """`used` is the node's memory in MiB."""
    pods = {
        each.pod.uid: CgroupSample(0, each.memory * MIB, kernel_bytes=each.kernel * MIB)
        for each in holdings
        if each.memory is not None
    }
    below = [each.pod for each in holdings if each.pod.status.kubernetes_qos is KubernetesQoS.BEST_EFFORT]
    paths = {pod.uid: f"{ROOT}/pod{pod.uid}" for pod in below}
    places = Places({uid: PodPlace(path) for uid, path in paths.items()}, tuple(paths.values()))
    fields: dict[str, Any] = {
        "at_seconds": at,
        "monotonic_seconds": at,
        "node_sample": NodeSample(0, used * MIB, 2),
        "kubepods": CgroupSample(0, 0),
        "best_effort": CgroupSample(0, 0),
        "pods": pods,
        "places": places,
    }
    return Observation(**{**fields, **more})


def steady(cpu: int) -> Averages:
    return Averages(Usage(cpu), Usage(cpu), Usage(cpu))


def usage(*holdings: Holding, **more: Any) -> NodeUsage:
    fields: dict[str, Any] = {
        "at_seconds": NOW,
        "node": steady(1000),
        "system": steady(0),
        "unlisted_system": steady(0),
        "online": steady(0),
        "best_effort": steady(0),
        "pods": {each.pod.uid: steady(each.cpu) for each in holdings if each.memory is not None},
        "live_seconds": 10.0,
        "live_span_seconds": 10.0,
    }
    return NodeUsage(**{**fields, **more})


def known(*holdings: Holding, strategy: EvictionStrategy | None = None, **more: Any) -> TickFacts:
    fields: dict[str, Any] = {
        "node": node(),
        "pods": tuple(each.pod for each in holdings),
        "observation": seen(*holdings),
        "usage": usage(*holdings),
        "strategy": strategy or EvictionStrategy(),
        "best_effort_millis": None,
        "lent": {},
        "costs": {},
    }
    return TickFacts(**{**fields, **more})


def costs(*told: EvictionCost) -> Mapping[str, EvictionCost]:
    return {cost.pod_uid: cost for cost in told}


class Play:
    """One agent's evictions, tick after tick: pods are removed and levels change between two of them."""

    def __init__(self, *holdings: Holding, strategy: EvictionStrategy | None = None, **facts: Any) -> None:
        self.holdings = list(holdings)
        self.strategy = strategy or EvictionStrategy()
        self.facts = facts
        self.memory = EvictionMemory()

    def tick(self, used: int, at: float = 0.0, *, look: Mapping[str, Any] | None = None, **facts: Any) -> Evictions:
        """`used` MiB of the node at NOW + `at`; `look` changes the observation."""
        told = {
            "node": node(),
            "pods": tuple(each.pod for each in self.holdings),
            "strategy": self.strategy,
            **self.facts,
            **facts,
        }
        measured = usage(*self.holdings) if "usage" not in told else told.pop("usage")
        observed = seen(*self.holdings, used=used, at=NOW + at, **(look or {}))
        self.memory, evictions = decide_evictions(self.memory, observed, measured, EvictionFacts(**told))
        return evictions

    def remove(self, *names: str) -> None:
        self.holdings = [each for each in self.holdings if each.pod.name not in names]

    def change(self, name: str, **fields: Any) -> None:
        """Fields of a pod."""
        self.holdings = [
            Holding(msgspec.structs.replace(each.pod, **fields), each.cpu, each.memory)
            if each.pod.name == name
            else each
            for each in self.holdings
        ]


def names(evictions: Evictions) -> list[str]:
    """`kind name` of each order."""
    return [f"{order.kind.value} {order.name}" for order in evictions.requests]


def terms(decision: Decision) -> dict[str, int]:
    return {term.name: term.value for term in decision.terms}


def by_rule(needs: Iterable[Decision]) -> dict[str, Decision]:
    return {need.policy: need for need in needs}
