"""The executor on real cgroup v2: nested limits, other files, restoring, and a memory limit that comes too late."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agent.core.limit.plan import plan
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import RootKnobs, cpuset_knob, memory_knob, quota_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob, Missing, Value
from agent.edge.executor import KnobExecutor
from agent.edge.nodelock import NodeLock
from agent.files.statefile import StateFile
from agent.ports import WriteOutcome
from cgroup_fixtures.live import MOUNT
from model.decision import Decision, Term, Unit
from model.fault import ConfigurationFault
from model.reason import Reason
from model.topology import parse_cpus
from tests.guest.inside.conftest import Pods
from tests.guest.inside.live_node import HOLD, SPIN, eventually

MIB = 1 << 20
STEADY = ("cpu.max", "cpu.weight", "cpu.idle", "cpuset.cpus", "memory.max", "memory.high", "memory.low")


class Agent:
    """Decides what the test says, does it as the tick would."""

    def __init__(self, pods: Pods, state: Path) -> None:
        self.pods = pods
        self.layout = Layout(pods.root, 2)
        self.knobs = RootKnobs.of(self.layout)
        self.pod = pods.best_effort.rsplit("/", 1)[0]
        self.state = StateFile(state / "agent.json")
        self.executor = KnobExecutor(MOUNT, self.state)

    def turn(self, wanted: Mapping[Knob, Value]) -> list[WriteOutcome]:
        readings = self.executor.readings(tuple(wanted))
        limits = {knob: limit(knob, value) for knob, value in wanted.items()}
        outcomes = self.executor.apply(plan(limits, readings.readings), readings.brake_cuts)
        assert self.executor.idle(20)
        return list(outcomes)

    def hold(self, wanted: Mapping[Knob, Value]) -> None:
        assert [outcome.error for outcome in self.turn(wanted) if outcome.error or outcome.dropped] == []
        assert {knob: self.executor.read(knob) for knob in wanted} == wanted

    def value(self, knob: Knob) -> Value:
        """What the kernel holds."""
        found = self.executor.read(knob)
        assert not isinstance(found, Missing), (knob, found)
        return found

    def said(self, file: str, cgroup: str = "") -> str:
        return self.pods.read(cgroup or self.layout.best_effort, file).decode().strip()

    def snapshot(self) -> dict[str, bytes]:
        groups = (self.layout.best_effort, self.pod, self.pods.best_effort)
        return {f"{group}/{file}": self.pods.read(group, file) for group in groups for file in STEADY}


def limit(knob: Knob, value: Value) -> Limit:
    number = len(parse_cpus(value)) if isinstance(value, str) else value
    decision = Decision(knob.subject, knob.file, number, Unit.BYTES, Reason.BATCH_RESOURCES, (Term("x", number),))
    return Limit(knob, value, decision)


@pytest.fixture
def agent(pods: Pods, tmp_path: Path) -> Iterator[Agent]:
    made = Agent(pods, tmp_path)
    yield made
    made.state.close()


def test_nested_quotas_need_no_order(agent: Agent) -> None:
    """A child may have more than its parent; the brake cuts the root alone."""
    root, pod = agent.knobs.quota, quota_knob(agent.layout, agent.pod)
    for values in ((100_000, 150_000), (20_000, 10_000), (-1, 50_000), (30_000, -1)):
        agent.hold(dict(zip((root, pod), values, strict=True)))
    assert agent.executor.lower(root, 5000) == 30_000 and agent.said("cpu.max") == "5000 100000"


def test_the_roots_cpus_bind_everything_below(agent: Agent) -> None:
    """One write; children are clipped by the kernel, and an empty list is all CPUs.

    While processes run the kernel takes no empty list back: then all CPUs stand for it, written once.
    """
    process = agent.pods.tree.run(agent.pods.best_effort, SPIN)
    for cpus, allowed in (("1", {1}), ("0", {0}), ("", {0, 1})):
        agent.hold({agent.knobs.cpuset: cpus})
        assert os.sched_getaffinity(process.pid) == allowed
    assert agent.said("cpuset.cpus") == "0-1" and agent.turn({agent.knobs.cpuset: ""}) == []
    agent.hold({agent.knobs.cpuset: "0"})
    assert agent.executor.restore().changed == 1 and agent.said("cpuset.cpus") == "0-1"


def test_restore_brings_every_byte_back(agent: Agent) -> None:
    """Odd periods, empty lists, limits that were there; idle ends before the weight is written."""
    root = agent.layout.best_effort
    agent.pods.write(root, "cpu.max", "30000 50000")
    agent.pods.write(root, "cpu.weight", "39")
    agent.pods.write(agent.pod, "memory.max", str(256 * MIB))
    before = agent.snapshot()
    high = agent.knobs.memory_high
    assert high is not None
    memory = memory_knob(agent.layout, agent.pod)
    weight = agent.knobs.fixed[0].knob
    agent.hold({agent.knobs.quota: 60_001, weight: 1, agent.knobs.cpuset: "1"})
    agent.hold({agent.knobs.idle: 1, high: 512 * MIB, memory: 128 * MIB, cpuset_knob(agent.layout, agent.pod): "0-1"})
    assert agent.said("cpu.weight") == "0"
    agent.hold({agent.knobs.idle: 0, weight: 1})
    agent.hold({agent.knobs.idle: 1})
    assert agent.snapshot() != before
    assert agent.executor.restore().gone == 0 and agent.snapshot() == before


PIPES = f"""
import fcntl, os, time
held = []
for _ in range(32):
    pipe = os.pipe()
    fcntl.fcntl(pipe[1], fcntl.F_SETPIPE_SZ, {MIB})
    for _ in range(16):
        os.write(pipe[1], bytes(1 << 16))
    held.append(pipe)
time.sleep(600)
"""


def grown(agent: Agent) -> bool:
    """The pod has its memory and wants no more: whoever goes on growing beyond its limit is killed by right."""
    before = int(agent.said("memory.current", agent.pod))
    time.sleep(0.5)
    return 32 * MIB < before == int(agent.said("memory.current", agent.pod))


@pytest.mark.parametrize("code", [HOLD, PIPES], ids=["anonymous", "kernel memory"])
def test_a_late_memory_limit_kills_nobody(agent: Agent, code: str) -> None:
    """Below what the pod holds by now it is what the pod holds; above, it is written, in whole pages."""
    process = agent.pods.tree.run(agent.pods.best_effort, code)
    assert eventually(lambda: grown(agent))
    memory = memory_knob(agent.layout, agent.pod)
    agent.turn({memory: 8 * MIB})
    assert "comes down with it" in agent.turn({memory: 8 * MIB})[0].error
    assert 32 * MIB < int(agent.said("memory.max", agent.pod)) < 96 * MIB
    agent.turn({memory: 128 * MIB + 1000})
    assert agent.said("memory.max", agent.pod) == str(128 * MIB) and agent.turn({memory: 128 * MIB + 1000}) == []
    assert process.poll() is None and "oom_kill 0" in agent.said("memory.events", agent.pod)


def test_a_cgroup_that_ends_is_no_error(agent: Agent) -> None:
    """Between reading and writing, and while it is only listed."""
    pod = quota_knob(agent.layout, agent.pod)
    readings = agent.executor.readings((pod,))
    agent.pods.tree.folder(agent.pods.best_effort).rmdir()
    agent.pods.tree.folder(agent.pod).rmdir()
    writes = plan({pod: limit(pod, 5000)}, readings.readings)
    assert [(outcome.error, outcome.dropped) for outcome in agent.executor.apply(writes, 0)] == [("", True)]
    assert isinstance(agent.executor.read(pod), Missing)


def test_a_second_agent_refuses(agent: Agent) -> None:
    """By the lock on the cgroup's identity."""
    folder = agent.pods.tree.folder(agent.layout.best_effort)
    first = NodeLock(folder)
    with pytest.raises(ConfigurationFault, match="another agent limits these cgroups"):
        NodeLock(folder)
    first.close()
