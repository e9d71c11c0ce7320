"""CPU QoS on this host's cgroup v1: batch pods are idle and get their weights back; what the kernel lacks is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.core.limit.decide import LimitFacts, LimitMemory, NodeLimits, claims_due, decide_limits, knobs_to_read
from agent.core.limit.plan import plan
from agent.core.observe.knobs import CPU_QOS_FILES, RootKnobs, cpu_qos_knob
from agent.core.observe.observation import Places, PodPlace
from agent.edge.executor import KnobExecutor
from agent.files.statefile import StateFile
from model.pod.spec import Container
from model.qos import USUAL_CPU, CpuQos, CpuQosStrategy, UclampStrategy
from model.resources import BATCH_CPU, ResourceVector
from model.strategy import EvictionStrategy, SuppressStrategy
from tests.agent.kernel.v1_tree import MOUNT, V1Tree, needs_v1
from tests.pods import with_fields

pytestmark = [pytest.mark.kernel, needs_v1]
IDLE = CpuQosStrategy(be=CpuQos(idle=True))
OFF = SuppressStrategy(enable=False), EvictionStrategy(enable=False)


@pytest.fixture
def tree() -> Iterator[V1Tree]:
    made = V1Tree()
    made.make("podjob/main")
    # As the kubelet leaves a BestEffort pod.
    made.say({made.shares(): 2, made.shares("podjob"): 2, made.shares("podjob/main"): 2})
    yield made
    made.remove()


class Agent:
    """Ticks about one batch pod of half a CPU."""

    def __init__(self, tree: V1Tree, state: Path, build: Any) -> None:
        self.tree, self.build, self.at = tree, build, 0.0
        self.memory, self.executor = LimitMemory(), KnobExecutor(MOUNT, StateFile(state / "agent.json"))
        half = ResourceVector({BATCH_CPU: 500})
        self.pod = with_fields(build.batch("job"), containers=(Container("main", half, half),))
        place = PodPlace(tree.cgroup("podjob"), {"main": tree.cgroup("podjob/main")})
        self.places = Places({self.pod.uid: place})

    def ticks(self, count: int, **strategies: Any) -> NodeLimits:
        limits = NodeLimits({}, None)
        for _ in range(count):
            self.at += 1.0
            facts = LimitFacts(*OFF, (self.pod,), **strategies)
            about = (self.memory, self.tree.layout, self.places, facts)
            read = self.executor.readings(knobs_to_read(*about), claims_due(*about))
            seen = self.build.seen(self.at, knobs=read.readings, places=self.places, listed=facts.pods)
            self.memory, limits = decide_limits(self.memory, self.tree.layout, seen, self.build.usage(), facts)
            root = RootKnobs.of(self.tree.layout).all
            writes = [write for write in plan(limits.limits, read.readings) if write.knob not in root]
            outcomes = self.executor.apply(tuple(writes), read.brake_cuts)
            assert [outcome.error for outcome in outcomes if outcome.error] == [] and self.executor.idle(20)
        return limits

    @property
    def said(self) -> list[str]:
        """`cpu.idle` and the weight of the pod."""
        idle = cpu_qos_knob(self.tree.layout, self.tree.cgroup("podjob"), "cpu.idle")
        return self.tree.said(idle, self.tree.shares("podjob"))


def test_idle_on_and_off(tree: V1Tree, tmp_path: Path, build: Any) -> None:
    """While a pod is idle its weight is the kernel's; when that ends it is written in the same tick; restoring too."""
    agent, before = Agent(tree, tmp_path, build), tree.snapshot()
    agent.ticks(2)
    assert agent.said == ["0", "512"]
    agent.ticks(12, cpu_qos=IDLE)
    assert agent.said == ["1", "3"]
    with pytest.raises(OSError, match="Invalid argument"):
        tree.say({tree.shares("podjob"): 100})
    agent.ticks(1)
    assert agent.said == ["0", "512"]
    agent.ticks(12, cpu_qos=IDLE)
    assert agent.said == ["1", "3"]
    agent.executor.restore()
    assert tree.snapshot() == before


def test_what_this_kernel_lacks(tree: V1Tree, tmp_path: Path, build: Any) -> None:
    """Group identity is one vendor's, clamps are built in or not; wanted, each is looked for and named."""
    agent, before = Agent(tree, tmp_path, build), tree.snapshot()
    clamps = UclampStrategy(ls_min_pct=20, be_max_pct=40)
    agent.ticks(2)
    limits = agent.ticks(12, cpu_qos=USUAL_CPU, uclamp=clamps)
    folder = MOUNT / "cpu" / tree.layout.root.lstrip("/")
    wanted = CPU_QOS_FILES - {"cpu.uclamp.min"}
    assert set(limits.absent_files) == {file for file in wanted if not (folder / file).exists()}
    agent.executor.restore()
    assert tree.snapshot() == before
