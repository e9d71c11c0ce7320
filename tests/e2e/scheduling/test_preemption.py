"""Preemption through real kubectl: for whole jobs, by whole jobs, in the fewest victims, or not at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import until
from tests.e2e.scheduling.conftest import Scene
from tests.e2e.scheduling.manifests import HOSTNAME, Manifest, company, gang, listed, members, pod, required

pytestmark = pytest.mark.slow

HERE = {"pool": "preemption"}
NODES = ("sim-16", "sim-17", "sim-18", "sim-19")
LARGE = "20"
"""CPUs: two such pods do not share a node."""
CONFIG = "koord-scheduler-config"
NOTICE = {"sublet.dev/preemption-notice-seconds": "4"}
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "guard"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
}
OFF = """
apiVersion: v1
kind: ConfigMap
metadata: {name: koord-scheduler-config, namespace: koordinator-system}
data:
  koord-scheduler-config: |
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    profiles:
    - schedulerName: koord-scheduler
      pluginConfig:
      - name: Coscheduling
        args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: CoschedulingArgs, enablePreemption: false}
"""


def lows(nodes: Iterable[str] = NODES, **pod_: Any) -> list[Manifest]:
    """A pod of low priority on each of the nodes, low-NODE."""
    return [pod(f"low-{node}", LARGE, priorityClassName="low", nodeSelector={HOSTNAME: node}, **pod_) for node in nodes]


def job(name: str, size: int, priority: str = "high") -> list[Manifest]:
    """A gang for whose every member a node must be empty."""
    return [gang(name, size), *members(name, size, cpu=LARGE, priorityClassName=priority, nodeSelector=HERE)]


def on(*nodes: str) -> Manifest:
    return required(HOSTNAME, "In", *nodes)


def filled(scene: Scene, *manifests: Manifest | list[Manifest], count: int) -> None:
    """Applied, and all of it on nodes."""
    scene.apply(listed(*manifests))
    assert len(scene.placed("low-", count)) == count


def test_a_whole_job_takes_the_place(scene: Scene) -> None:
    """Told first as they asked; every member nominated, every victim says for whom it goes, then all run there."""
    filled(scene, lows(annotations=NOTICE), count=4)
    scene.apply(listed(job("big", 4)))
    scene.waits("big-0", "preemption: 4 pods of lower priority go to make room.")
    nominated = until(lambda: len(found := nominations(scene)) == 4 and found)
    assert set(nominated.values()) == set(NODES)
    assert len(scene.places("low-")) == 4
    said = scene.cluster.sublet("explain", "gang", "big").stdout
    assert "room is being made for big-0 on node sim-" in said and "Preempting: " in said, said
    target = until(lambda: disruption(scene, "low-sim-16"))
    assert (target["status"], target["reason"]) == ("True", "PreemptionByScheduler")
    assert target["message"].endswith("preemptor: default/big, triggerPod: default/big-0")
    assert scene.placed("big-", 4) == nominated
    assert scene.events("Preempted")["Pod/low-sim-16"].startswith("Preempted by default/big on node sim-16")


def nominations(scene: Scene) -> dict[str, str]:
    """Node by name of a pod that waits for it."""
    told = {name: each["status"].get("nominatedNodeName", "") for name, each in scene.pods().items()}
    return {name: node for name, node in told.items() if node}


def disruption(scene: Scene, name: str) -> dict[str, str]:
    found = json.loads(scene.cluster.kubectl("get", "pod", name, "-o", "json", "--ignore-not-found") or "{}")
    conditions = found.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == "DisruptionTarget"), {})


KEEPS = {
    "one victim is protected": ({"quota.scheduling.koordinator.sh/preemptible": "false"}, ["high"] * 4),
    "a policy of Never": ({}, ["patient"] * 4),
    "one member's policy of Never": ({}, ["high", "high", "high", "patient"]),
    "no higher priority": ({}, ["low"] * 4),
}
SAYS = {
    "one victim is protected": "preemption: 4 members would not fit together even without all 3 pods that may be evicted.",
    "a policy of Never": "preemption: not eligible due to preemptionPolicy=Never.",
    "one member's policy of Never": "preemption: not eligible due to preemptionPolicy=Never.",
    "no higher priority": "0 of 4 members fit; 0/20 nodes are available: ",
}


@pytest.mark.parametrize("case", KEEPS)
def test_nobody_goes_for_nothing(scene: Scene, case: str) -> None:
    """Where not all four would fit afterwards, or may not ask, all four victims stay."""
    labels, priorities = KEEPS[case]
    filled(scene, lows(NODES[:3]), lows(NODES[3:], labels=labels), count=4)
    before = {name: each["metadata"]["uid"] for name, each in scene.pods().items()}
    pods = [
        members("job", 4, cpu=LARGE, priorityClassName=name, nodeSelector=HERE)[n] for n, name in enumerate(priorities)
    ]
    scene.apply(listed(gang("job", 4), pods))
    scene.waits("job-0", SAYS[case])
    scene.waits("job-3", SAYS[case])
    left = {name: each["metadata"]["uid"] for name, each in scene.pods().items() if name.startswith("low-")}
    assert left == before and len(scene.places("low-")) == 4 and not nominations(scene)


def test_who_goes(scene: Scene) -> None:
    """A lone pod before a gang that would break, and before one that a budget guards; a gang's surplus before more."""
    pair = [gang("low-pair", 2), *members("low-pair", 2, cpu=LARGE, priorityClassName="low")]
    for member, node in zip(pair[1:], NODES, strict=False):
        member["spec"]["nodeSelector"] = {HOSTNAME: node}
    filled(scene, BUDGET, pair, lows(NODES[2:3]), lows(NODES[3:], labels={"app": "guarded"}), count=4)
    scene.apply(listed(pod("one", LARGE, priorityClassName="high", nodeSelector=HERE)))
    assert scene.placed("one", 1) == {"one": "sim-18"}
    assert set(scene.places("low-")) == {"low-pair-0", "low-pair-1", "low-sim-19"}


def test_the_surplus_of_a_gang_goes_alone(scene: Scene) -> None:
    """One of three members above a minimum of two, and no more than needed."""
    affinity = on(*NODES[:3]) | company("podAntiAffinity", "surplus")
    pods = members("low-elastic", 3, cpu=LARGE, priorityClassName="low", affinity=affinity)
    filled(scene, gang("low-elastic", 2), pods, count=3)
    scene.apply(listed(pod("one", LARGE, priorityClassName="high", affinity=on(*NODES[:3]))))
    assert len(scene.placed("one", 1)) == 1
    assert len(scene.places("low-elastic-")) == 2


def test_a_killed_scheduler_finishes_what_it_began(scene: Scene) -> None:
    """kill -9 as soon as the first victim goes: the next one places the whole job, and evicts nobody else."""
    filled(scene, lows(NODES[:2], annotations=NOTICE), count=2)
    scene.apply(listed(gang("big", 2), *job_on("big", NODES[:2])))
    assert until(lambda: len(nominations(scene)) == 2)
    os.kill(restart_of(scene), signal.SIGKILL)
    assert len(scene.placed("big-", 2)) == 2
    assert set(scene.places("big-").values()) == set(NODES[:2])


def job_on(name: str, nodes: tuple[str, ...]) -> list[Manifest]:
    return members(name, len(nodes), cpu=LARGE, priorityClassName="high", affinity=on(*nodes))


def restart_of(scene: Scene) -> int:
    return int(scene.cluster.endpoints["programs"]["scheduler"])


def test_koordinators_switch(scene: Scene) -> None:
    """enablePreemption: false, without a restart: no pod is evicted, and the diagnostics say who said so. True again: they go.

    In between a document that nobody can read: refused, and where it gets through, nothing changes.
    """
    kubectl = scene.cluster.kubectl
    shipped = kubectl("-n", "koordinator-system", "get", "cm", CONFIG, "-o", "yaml")
    assert "enablePreemption: true" in shipped
    running = restart_of(scene)
    scene.apply(OFF)
    assert until(lambda: settings(scene)["preemption"]["enable"] is False)
    assert "ConfigMap koordinator-system/koord-scheduler-config" in settings(scene)["preemption_enabled_by"]
    filled(scene, lows(NODES[:1]), count=1)
    scene.apply(listed(pod("one", LARGE, priorityClassName="high", affinity=on(NODES[0]))))
    scene.waits("one", "Insufficient cpu")
    assert "PreemptionDisabled" in scene.cluster.sublet("explain", "pod", "one").stdout
    refused = scene.cluster.apply(OFF.replace("enablePreemption: false", "enablePreemption: maybe"), check=False)
    assert refused.returncode != 0 and "enablePreemption: is 'maybe'" in refused.stderr
    warned = scene.cluster.apply(
        OFF.replace("enablePreemption: false", "enablePreemption: false, controllerWorkers: 2")
    )
    assert "nothing acts on pluginConfig[Coscheduling].args.controllerWorkers" in warned.stderr
    assert until(lambda: "ConfigurationIgnored" in said_of_config(scene))
    scene.apply(OFF.replace("enablePreemption: false", "enablePreemption: true"))
    assert scene.placed("one", 1) == {"one": NODES[0]}
    assert restart_of(scene) == running


def said_of_config(scene: Scene) -> str:
    about = f"involvedObject.kind=ConfigMap,involvedObject.name={CONFIG}"
    return scene.cluster.kubectl("-n", "koordinator-system", "get", "events", "--field-selector", about)


def settings(scene: Scene) -> dict[str, Any]:
    """What GetSettings answers, empty while nobody does."""
    program = Path(sys.executable).with_name("grpcurl")
    if not program.exists():
        pytest.skip("needs grpcurl: make test installs one")
    address = scene.cluster.endpoints["scheduler_grpc"]
    command = [str(program), "-plaintext", "-max-time", "5", address, "sublet.v1.SchedulerDiagnostics/GetSettings"]
    done = subprocess.run(command, capture_output=True, text=True)
    return dict(json.loads(json.loads(done.stdout)["json"])) if done.returncode == 0 else {}
