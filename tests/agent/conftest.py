"""Builders for the agent's tests: every value valid by default."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from agent.core.evict.decide import EvictionMemory, Evictions
from agent.core.lend.reclaimable import NodeLending
from agent.core.limit.decide import NodeLimits
from agent.core.observe.knobs import RootKnobs
from agent.core.observe.layout import Layout
from agent.core.observe.observation import CgroupSample, Knob, KnobReading, NodeSample, Observation
from agent.core.observe.usage import Averages, NodeUsage, UsageState
from agent.edge import executor
from agent.ports import ClusterFacts, TickResult
from model.decision import Decision, Term, Unit
from model.node import Node
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.qos import KubernetesQoS, PriorityBand, QoSClass
from model.reason import Reason
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY, ResourceVector
from tests.agent.playing import Scenario
from tests.pods import make_pod

GIB = 1 << 30
LAYOUT = Layout("/kubepods")
KNOBS = RootKnobs.of(LAYOUT)
PERIOD, WEIGHT = (fixed.knob for fixed in KNOBS.fixed)


class Build:
    """Valid-by-default values; keyword arguments say what a case is about."""

    layout = LAYOUT
    knobs = KNOBS
    period = PERIOD
    weight = WEIGHT

    def node(self, cpu: int = 2000, memory: int = 8 * GIB, reserved: int = 0, reserved_memory: int = 0) -> Node:
        capacity = ResourceVector({CPU: cpu, MEMORY: memory})
        return Node("n", capacity, ResourceVector({CPU: cpu - reserved, MEMORY: memory - reserved_memory}))

    def pod(
        self,
        name: str = "web",
        *,
        cpu: int = 0,
        memory: int = 0,
        batch_cpu: int = 0,
        batch_memory: int = 0,
        qos: QoSClass = QoSClass.LS,
        band: PriorityBand = PriorityBand.PROD,
        phase: PodPhase = PodPhase.RUNNING,
        kubernetes: KubernetesQoS | None = None,
    ) -> Pod:
        default = KubernetesQoS.BEST_EFFORT if qos is QoSClass.BE else KubernetesQoS.BURSTABLE
        amounts = {CPU: cpu, MEMORY: memory, BATCH_CPU: batch_cpu, BATCH_MEMORY: batch_memory}
        return make_pod(
            namespace="default",
            name=name,
            uid=f"uid-{name}",
            cgroup_uid=f"uid-{name}",
            requests=ResourceVector({key: value for key, value in amounts.items() if value}),
            qos=qos,
            qos_label=qos,
            kubernetes_qos=kubernetes or default,
            band=band,
            phase=phase,
        )

    def batch(self, name: str = "batch", **more: Any) -> Pod:
        return self.pod(name, qos=QoSClass.BE, band=PriorityBand.BATCH, **more)

    def averages(
        self, cpu: int = 0, memory: int = 0, live: int | None = None, aggregate: int | None = None
    ) -> Averages:
        return Averages(
            Usage(cpu, memory),
            Usage(cpu if live is None else live, memory),
            Usage(cpu if aggregate is None else aggregate, memory),
        )

    def usage(self, pods: Mapping[str, Averages] | None = None, **parts: Any) -> NodeUsage:
        fields: dict[str, Any] = {
            "at_seconds": 100.0,
            "node": self.averages(700, GIB),
            "system": self.averages(100, GIB // 2),
            "unlisted_system": self.averages(100, GIB // 2),
            "online": self.averages(400, GIB // 2),
            "best_effort": self.averages(200, 0),
            "pods": pods or {},
            "live_seconds": 10.0,
            "live_span_seconds": 10.0,
        }
        return NodeUsage(**{**fields, **parts})

    def readings(
        self, quota: KnobReading | None = None, weight: int = 2, period: int = 100_000
    ) -> dict[Knob, KnobReading]:
        return {
            KNOBS.quota: quota or KnobReading(-1),
            PERIOD: KnobReading(period),
            WEIGHT: KnobReading(weight),
        }

    def seen(self, at: float = 0.0, **parts: Any) -> Observation:
        fields: dict[str, Any] = {
            "at_seconds": 1000.0 + at,
            "monotonic_seconds": at,
            "node_sample": NodeSample(0, GIB, 2),
            "kubepods": CgroupSample(0, GIB // 2),
            "best_effort": CgroupSample(0, 0),
            "knobs": self.readings(),
            "node": self.node(),
            "listed": (),
        }
        return Observation(**{**fields, **parts})

    def decision(self, name: str, value: int, reason: Reason = Reason.COMPUTED) -> Decision:
        unit = Unit.MILLI_CPU if name in (BATCH_CPU, MID_CPU) else Unit.BYTES
        return Decision("node/n", name, value, unit, reason, (Term("x", value),))

    def lending(
        self, cpu: int = 0, memory: int = 0, *, mid: tuple[int, int] = (0, 0), reason: Reason = Reason.COMPUTED
    ) -> NodeLending:
        """Lent as computed; with another reason nothing is, and nothing is to stand on the node."""
        amounts = {BATCH_CPU: cpu, BATCH_MEMORY: memory, MID_CPU: mid[0], MID_MEMORY: mid[1]}
        if reason is not Reason.COMPUTED:
            return NodeLending(tuple(self.decision(name, 0, reason) for name in amounts), degraded=reason)
        computed = tuple(self.decision(name, amount) for name, amount in amounts.items())
        return NodeLending(computed, prepared=computed)

    def facts(self, *pods: Pod, **parts: Any) -> ClusterFacts:
        return ClusterFacts(**{"node": self.node(), "pods": pods, **parts})

    def result(self, at: float = 0.0, **parts: Any) -> TickResult:
        fields: dict[str, Any] = {
            "observation": self.seen(at),
            "facts": self.facts(),
            "used": UsageState(),
            "usage": self.usage(),
            "prediction": None,
            "lending": self.lending(),
            "limits": NodeLimits({}, None),
            "evictions": Evictions(),
            "evicting": EvictionMemory(),
            "brake_cuts": (),
            "kills": (),
            "ordered": (),
            "outcomes": (),
            "report": None,
            "degraded_reason": "",
        }
        return TickResult(**{**fields, **parts})


@pytest.fixture(autouse=True)
def patient_with_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick waits 0.2 s for it, which one that others use may need for a single line."""
    monkeypatch.setattr(executor, "_DISK_SECONDS", 30.0)


@pytest.fixture(autouse=True)
def closed_scenarios() -> Iterator[None]:
    """A run of many tests would be out of descriptors."""
    yield
    while Scenario.opened:
        Scenario.opened.pop().close()


@pytest.fixture
def build() -> Build:
    return Build()


@pytest.fixture
def terms() -> Callable[[Any], dict[str, int]]:
    """A decision's terms by name."""
    return lambda decision: {term.name: term.value for term in decision.terms}
