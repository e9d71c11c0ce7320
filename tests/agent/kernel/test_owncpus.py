"""Whole CPUs on this host's cgroup v1: a container is put on its pod's, best effort goes, and both come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.core.limit.decide import LimitFacts, LimitMemory, claims_due, decide_limits, knobs_to_read
from agent.core.limit.plan import plan
from agent.core.observe.knobs import CPUSET_FILE, cpuset_knob
from agent.core.observe.observation import Places, PodPlace
from agent.edge.executor import KnobExecutor
from agent.files.statefile import StateFile
from model.pod.pod import Pod
from model.qos import QoSClass
from model.strategy import EvictionStrategy, SuppressStrategy
from model.topology import Processor
from tests.agent.kernel.v1_tree import MOUNT, V1Tree, needs_two_cpus, needs_v1, tree
from tests.pods import make_pod

__all__ = ["tree"]
pytestmark = [pytest.mark.kernel, needs_v1, needs_two_cpus]
TICKS = 12


class Agent:
    """Ticks about one LSE pod beside a batch pod, in the cpuset hierarchy alone."""

    def __init__(self, tree: V1Tree, state: Path, build: Any) -> None:
        self.tree, self.build, self.layout, self.at = tree, build, tree.layout, 0.0
        self.memory, self.executor = LimitMemory(), KnobExecutor(MOUNT, StateFile(state / "agent.json"))
        tree.make("podx/main")
        own = f"{self.layout.root}/podown"
        for folder in (own, f"{own}/main"):
            path = MOUNT / "cpuset" / folder.lstrip("/")
            path.mkdir()
            for file in ("cpuset.cpus", "cpuset.mems"):
                (path / file).write_text((path.parent / file).read_text())
        self.own = cpuset_knob(self.layout, f"{own}/main")
        pods = {"own": PodPlace(own, {"main": f"{own}/main"})}
        self.places = Places(pods, (tree.cgroup("podx"), tree.cgroup("podx/main")))
        self.machine = tuple(Processor(cpu, cpu, 0, 0) for cpu in sorted(int(c) for c in self._cpus()))

    def _cpus(self) -> list[str]:
        return [path.name.removeprefix("cpu") for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*")]

    def ticks(self, *pods: Pod, count: int = 1) -> None:
        facts = LimitFacts(SuppressStrategy(enable=False), EvictionStrategy(), pods, processors=self.machine)
        for _ in range(count):
            self.at += 1.0
            about = (self.memory, self.layout, self.places, facts)
            read = self.executor.readings(knobs_to_read(*about), claims_due(*about))
            seen = self.build.seen(self.at, knobs=read.readings, places=self.places)
            self.memory, limits = decide_limits(self.memory, self.layout, seen, self.build.usage(), facts)
            writes = [write for write in plan(limits.limits, read.readings) if write.knob.file == CPUSET_FILE]
            outcomes = self.executor.apply(tuple(writes), read.brake_cuts)
            assert [outcome.error for outcome in outcomes if outcome.error] == []

    def lists(self) -> list[str]:
        return self.tree.said(self.own, self.tree.cpus(), self.tree.cpus("podx"), self.tree.cpus("podx/main"))


def test_an_lse_pod_comes_and_goes(tree: V1Tree, tmp_path: Path, build: Any) -> None:
    """Its container runs on CPU 1 alone, best effort and all below it on the others; once it is gone, on all again.

    The list of a pod that nobody lists goes with its cgroup.
    """
    agent = Agent(tree, tmp_path, build)
    before = agent.lists()
    pod = make_pod("default", "own", "own", qos_label=QoSClass.LSE, cpuset="1")
    agent.ticks(pod)
    others = str(agent.machine[0].cpu) if len(agent.machine) == 2 else agent.lists()[1]
    assert agent.lists() == ["1", others, others, others] and "1" not in others.split(",")
    agent.ticks(count=TICKS)
    assert agent.lists() == ["1", *before[1:]]


def test_a_cpu_that_is_not_there(tree: V1Tree, tmp_path: Path, build: Any) -> None:
    """Nothing of the pod's list is written, not even the part that exists."""
    agent = Agent(tree, tmp_path, build)
    before = agent.lists()[0]
    absent = 1 + max(processor.cpu for processor in agent.machine)
    agent.ticks(make_pod("default", "own", "own", qos_label=QoSClass.LSE, cpuset=f"1,{absent}"))
    assert agent.lists()[0] == before


def test_restoring(tree: V1Tree, tmp_path: Path, build: Any) -> None:
    """Every file has its original text."""
    before = tree.snapshot()
    agent = Agent(tree, tmp_path, build)
    made = tree.snapshot()
    agent.ticks(make_pod("default", "own", "own", qos_label=QoSClass.LSE, cpuset="1"))
    assert tree.snapshot() != made and before.items() <= made.items()
    agent.executor.restore()
    assert tree.snapshot() == made
