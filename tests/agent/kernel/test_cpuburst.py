"""Bursts of a real online pod on this host's cgroup v1: the kernel takes what is written, and the kubelet its resize."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.core.limit.decide import LimitFacts, LimitMemory, claims_due, decide_limits, knobs_to_read
from agent.core.limit.plan import plan
from agent.core.observe.knobs import burst_knob, quota_knob
from agent.core.observe.observation import CgroupSample, CpuThrottling, Knob
from agent.edge.executor import KnobExecutor
from agent.files.statefile import StateFile
from model.pod.pod import Pod
from model.strategy import BurstPolicy, BurstStrategy, EvictionStrategy, SuppressStrategy
from tests.agent.core.limit.online_kernel import online, placed
from tests.agent.kernel.v1_tree import MOUNT, V1Tree, needs_v1

pytestmark = [pytest.mark.kernel, needs_v1]
ON, OFF = BurstStrategy(BurstPolicy.CPU_BURST), BurstStrategy()
TICKS = 11


@pytest.fixture
def tree() -> Iterator[V1Tree]:
    made = V1Tree()
    if made.files.path(burst_knob(made.layout, made.root)).exists():
        yield made
        made.remove()
    else:
        made.remove()
        pytest.skip("needs bursts; run on a kernel with cpu.cfs_burst_us")


class Agent:
    """Ticks about one pod whose cgroups the kubelet makes and writes here."""

    def __init__(self, tree: V1Tree, state: Path, build: Any) -> None:
        self.tree, self.build, self.layout, self.at = tree, build, tree.layout, 0.0
        self.memory, self.executor = LimitMemory(), KnobExecutor(MOUNT, StateFile(state / "agent.json"))
        self.pod: Pod = online(build, app=500)
        self.places = placed(self.layout, self.pod)
        place = self.places.pods[self.pod.uid]
        self.cgroups = (place.path, place.containers["app"])
        for cgroup in self.cgroups:
            (MOUNT / "cpu" / cgroup.lstrip("/")).mkdir(parents=True)
        self.kubelet(50_000)
        self.throttled = False

    def kubelet(self, quota_us: int) -> None:
        """Widening from the pod down, narrowing from the container up, as it does."""
        now = int(self.tree.said(self.knob(self.cgroups[0], quota_knob))[0])
        order = self.cgroups if quota_us > now > 0 or now < 0 else self.cgroups[::-1]
        self.tree.say({self.knob(cgroup, quota_knob): quota_us for cgroup in order})

    def knob(self, cgroup: str, of: Any) -> Knob:
        found: Knob = of(self.layout, cgroup)
        return found

    def ticks(self, strategy: BurstStrategy, count: int = 1) -> None:
        facts = LimitFacts(SuppressStrategy(), EvictionStrategy(), (self.pod,), burst=strategy)
        for _ in range(count):
            self.at += 1.0
            about = (self.memory, self.layout, self.places, facts)
            read = self.executor.readings(knobs_to_read(*about), claims_due(*about))
            counters = CpuThrottling(10 * int(self.at), int(self.at) if self.throttled else 0)
            samples = {self.pod.uid: {"app": CgroupSample(int(self.at * 5e8), 0, throttling=counters)}}
            seen = self.build.seen(self.at, knobs=read.readings, places=self.places, containers=samples)
            self.memory, limits = decide_limits(self.memory, self.layout, seen, self.build.usage(), facts)
            writes = [write for write in plan(limits.limits, read.readings) if write.knob.cgroup in self.cgroups]
            outcomes = self.executor.apply(tuple(writes), read.brake_cuts)
            assert [outcome.error for outcome in outcomes if outcome.error] == [] and self.executor.idle(20)

    def quotas(self) -> list[int]:
        return [int(text) for text in self.tree.said(*(self.knob(cgroup, quota_knob) for cgroup in self.cgroups))]

    def bursts(self) -> list[str]:
        return self.tree.said(*(self.knob(cgroup, burst_knob) for cgroup in self.cgroups))


def test_on_resized_and_off(tree: V1Tree, tmp_path: Path, build: Any) -> None:
    """Pod and container get one period's limit; a smaller limit is taken after the burst, a larger one follows; off and
    restoring leave what was there."""
    agent = Agent(tree, tmp_path, build)
    before = tree.snapshot()
    agent.ticks(ON, 2)
    assert agent.bursts() == ["50000", "50000"]
    with pytest.raises(OSError, match="Invalid argument"):
        agent.kubelet(20_000)
    agent.pod = online(build, app=200)
    agent.ticks(ON)
    agent.kubelet(20_000)
    assert agent.bursts() == ["20000", "20000"]
    agent.kubelet(50_000)
    agent.pod = online(build, app=500)
    agent.ticks(ON, TICKS)
    assert agent.bursts() == ["50000", "50000"]
    agent.ticks(OFF, TICKS)
    assert tree.snapshot() == before
    agent.ticks(ON, TICKS)
    assert agent.executor.restore().changed == 2 and tree.snapshot() == before


def test_a_quota_is_raised_beside_a_burst(tree: V1Tree, tmp_path: Path, build: Any) -> None:
    """The pod's before the container's, and back the other way round; a resize while it is raised stands, and so does
    one that came while no agent ran; then as before, by the switch and by restoring."""
    agent, both = Agent(tree, tmp_path, build), BurstStrategy(BurstPolicy.AUTO)
    before = tree.snapshot()
    agent.throttled = True
    agent.ticks(both, 6)
    pod, container = agent.quotas()
    assert 50_000 < container <= pod <= 150_000 and agent.bursts() == ["50000", "50000"]
    agent.throttled = False
    agent.ticks(OFF, TICKS)
    assert tree.snapshot() == before
    agent.throttled = True
    agent.ticks(both, 6)
    agent.kubelet(80_000)
    agent.pod = online(build, app=800)
    agent.throttled = False
    agent.ticks(both, TICKS)
    assert agent.quotas() == [80_000, 80_000]
    agent.throttled = True
    agent.ticks(both, 6)
    assert min(agent.quotas()) > 80_000
    agent.executor.lower_raised()
    assert agent.quotas() == [80_000, 80_000], "an agent that is stopped leaves what the kubelet granted last"
    agent.ticks(both, 6)
    assert min(agent.quotas()) > 80_000
    agent.kubelet(90_000)
    agent.executor.lower_raised()
    assert agent.executor.restore().changed == 2, "the bursts"
    assert agent.quotas() == [90_000, 90_000]
    agent.kubelet(50_000)
    assert tree.snapshot() == before
