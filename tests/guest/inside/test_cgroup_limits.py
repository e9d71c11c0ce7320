"""A container that makes cgroups below its own on cgroup v2: the kernel stops it at its pod's limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.limit.number_limits.cgroup_limits import pods_cgroups, root_cgroups
from agent.core.limit.plan import plan
from agent.core.observe.knobs import cgroups_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import KnobReading, NodeSample, Observation, Places, PodPlace
from agent.edge.executor import KnobExecutor
from agent.files.statefile import StateFile
from cgroup_fixtures.live import MOUNT
from model.qos import KubernetesQoS, QoSClass
from model.strategy import SuppressStrategy
from tests.guest.inside.conftest import Pods
from tests.pods import make_pod


def test_cgroups_without_end(pods: Pods, tmp_path: Path) -> None:
    """Twenty below the pod's, its container among them; those of other pods are not counted, and restoring says `max`."""
    pod, layout = pods.best_effort.rsplit("/", 1)[0], Layout(pods.root, 2)
    executor = KnobExecutor(MOUNT, StateFile(tmp_path / "agent.json"))
    listed = make_pod("ns", "maker", "u", qos_label=QoSClass.BE, kubernetes_qos=KubernetesQoS.BEST_EFFORT)
    root, knob = cgroups_knob(layout.best_effort), cgroups_knob(pod)
    readings = executor.readings((root, knob)).readings
    assert readings == {root: KnobReading(-1), knob: KnobReading(-1)}
    absent = executor.read(cgroups_knob("/nowhere"))
    assert not isinstance(absent, int | str)
    node, places = NodeSample(0, 0, 2), Places({"u": PodPlace(pod)}, (pod,))
    seen = Observation(0.0, 0.0, node, absent, absent, knobs=readings, places=places)
    strategy = SuppressStrategy(pod_cgroups=20)
    limits = [*pods_cgroups(layout, seen, (listed,), strategy), *root_cgroups(layout, seen, strategy)]
    outcomes = executor.apply(plan({limit.knob: limit for limit in limits}, readings), 0)
    assert [outcome.error for outcome in outcomes] == ["", ""] and executor.idle(60)
    folder, made = pods.tree.folder(pods.best_effort), []
    try:
        with pytest.raises(OSError, match="Resource temporarily unavailable"):
            for number in range(30):
                (folder / f"own{number}").mkdir()
                made.append(folder / f"own{number}")
        assert len(made) == 19
    finally:
        for each in made:
            each.rmdir()
    assert executor.restore().changed == 2 and pods.read(pod, "cgroup.max.descendants") == b"max\n"
