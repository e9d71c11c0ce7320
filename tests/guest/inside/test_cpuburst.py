"""Bursts of an online pod on cgroup v2: the kernel takes what the agent writes, and refuses what Koordinator wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.limit.cpu_burst import BurstFacts, cpu_bursts
from agent.core.limit.plan import plan
from agent.core.observe.knobs import burst_knob, quota_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import NodeSample, Observation, Places, PodPlace
from agent.edge.executor import KnobExecutor
from agent.files.statefile import StateFile
from cgroup_fixtures.live import MOUNT
from model.pod.spec import Container
from model.resources import CPU, ResourceVector
from model.strategy import BurstPolicy, BurstStrategy
from tests.guest.inside.conftest import Pods
from tests.pods import make_pod


def test_a_burst_is_taken_and_given_back(pods: Pods, tmp_path: Path) -> None:
    """One period's limit for container and pod, 1000 % of it for neither (koordinator#2326); restoring says 0."""
    pod, layout = pods.burstable.rsplit("/", 1)[0], Layout(pods.root, 2)
    for cgroup in (pod, pods.burstable):
        pods.write(cgroup, "cpu.max", "50000 100000")
    with pytest.raises(OSError, match="Invalid argument"):
        pods.write(pods.burstable, "cpu.max.burst", "500000")
    executor = KnobExecutor(MOUNT, StateFile(tmp_path / "agent.json"))
    limit = ResourceVector({CPU: 500})
    listed = make_pod("ns", "web", "u", containers=(Container("app", limits=limit),))
    places = Places({"u": PodPlace(pod, {"app": pods.burstable})})
    knobs = tuple(of(layout, cgroup) for cgroup in (pod, pods.burstable) for of in (burst_knob, quota_knob))
    readings = executor.readings(knobs).readings
    absent = executor.read(burst_knob(layout, "/nowhere"))
    assert not isinstance(absent, int | str)
    seen = Observation(0.0, 0.0, NodeSample(0, 0, 2), absent, absent, knobs=readings, places=places)
    facts = BurstFacts(layout, BurstStrategy(BurstPolicy.CPU_BURST), (listed,))
    writes = plan(cpu_bursts(facts, seen, (listed,)), readings)
    assert [outcome.error for outcome in executor.apply(writes, 0)] == ["", ""]
    assert {pods.read(cgroup, "cpu.max.burst") for cgroup in (pod, pods.burstable)} == {b"50000\n"}
    assert executor.restore().changed == 2
    assert {pods.read(cgroup, "cpu.max.burst") for cgroup in (pod, pods.burstable)} == {b"0\n"}
