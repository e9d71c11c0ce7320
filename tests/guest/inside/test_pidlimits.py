"""A real fork bomb on cgroup v2: the kernel stops it at its pod's share, and others go on."""

from __future__ import annotations

from pathlib import Path

from agent.core.limit.number_limits.process_limits import pods_pids, root_pids
from agent.core.limit.plan import plan
from agent.core.observe.knobs import pids_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import KnobReading, NodeSample, Observation, PidCounts, Places, PodPlace
from agent.edge.executor import KnobExecutor
from agent.files.statefile import StateFile
from cgroup_fixtures.live import MOUNT
from model.qos import KubernetesQoS, QoSClass
from model.strategy import SuppressStrategy
from tests.agent.kernel.bomb import BOMB, defused
from tests.guest.inside.conftest import Pods
from tests.guest.inside.live_node import eventually
from tests.pods import make_pod

SAFETY = "1000"


def test_a_bomb_stops_at_its_pods_share(pods: Pods, tmp_path: Path) -> None:
    """As on a node of 800: 400 for best effort, 100 for the pod; a process beside it starts, restoring says `max`."""
    pod, layout, strategy = pods.best_effort.rsplit("/", 1)[0], Layout(pods.root, 2), SuppressStrategy()
    pods.write(f"/{pods.tree.top}", "pids.max", SAFETY)
    executor = KnobExecutor(MOUNT, StateFile(tmp_path / "agent.json"))
    listed = make_pod("ns", "bomb", "u", qos_label=QoSClass.BE, kubernetes_qos=KubernetesQoS.BEST_EFFORT)
    root, knob = pids_knob(layout, layout.best_effort), pids_knob(layout, pod)
    readings = executor.readings((root, knob)).readings
    assert readings == {root: KnobReading(-1), knob: KnobReading(-1)}
    node = NodeSample(0, 0, 2)
    places = Places({"u": PodPlace(pod)}, (pod,))
    there = PidCounts(node=100, node_most=800, best_effort=0)
    absent = executor.read(pids_knob(layout, "/nowhere"))
    assert not isinstance(absent, int | str)
    seen = Observation(0.0, 0.0, node, absent, absent, knobs=readings, places=places, pids=there)
    limits = pods_pids(layout, seen, (listed,), strategy)
    all_of_it = root_pids(root, readings[root], seen, strategy)
    assert all_of_it is not None
    writes = plan({knob: limits[knob], root: all_of_it}, readings)
    assert [outcome.error for outcome in executor.apply(writes, 0)] == ["", ""]
    assert (pods.read(layout.best_effort, "pids.max"), pods.read(pod, "pids.max")) == (b"400\n", b"100\n")
    folder = pods.tree.folder(pods.best_effort)
    pods.tree.run(pods.best_effort, BOMB)
    try:
        assert eventually(lambda: pods.read(pod, "pids.current") == b"100\n")
        calm = pods.tree.run(pods.burstable, "import subprocess; subprocess.run(['true'], check=True)")
        assert calm.wait(20) == 0 and int(pods.read(pod, "pids.current")) <= 100
    finally:
        defused(folder)
    assert executor.restore().changed == 2 and pods.read(pod, "pids.max") == b"max\n"
