"""Which node a pod may go to, through real kubectl: each rule of kube-scheduler's, and what it says when none is left."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import RunningCluster, until
from tests.e2e.scheduling.conftest import Scene
from tests.e2e.scheduling.manifests import (
    HOSTNAME,
    claim,
    company,
    listed,
    mounts,
    pod,
    preferred,
    required,
    required_name,
    spread,
    volume,
)

pytestmark = pytest.mark.slow

HERE = {"pool": "filters"}
SSD = {"disk": "ssd", **HERE}
ANY_GPU = [{"key": "gpu", "operator": "Exists"}]
THIS_GPU = [{"key": "gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"}]
PORT = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
OTHER_PROTOCOL = {"ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}]}
SOFT = [{"key": "soft", "operator": "Exists"}]
SIDECAR = [{"name": "aside", "image": "any", "restartPolicy": "Always", "resources": {"requests": {"cpu": "20"}}}]
INIT = [{"name": "first", "image": "any", "resources": {"requests": {"cpu": "33"}}}]
PODS = [
    claim("bound", "disk-of-5"),
    volume("disk-of-5", "bound", "sim-5"),
    claim("loose"),
    pod("selector", nodeSelector=SSD),
    pod("tolerates", affinity=required("speed", "Gt", "4"), tolerations=THIS_GPU),
    pod("by-field", affinity=required_name("sim-7")),
    pod("prefers", nodeSelector=HERE, affinity=preferred("disk", "ssd")),
    pod("avoids", affinity=required(HOSTNAME, "In", "sim-4", "sim-7")),
    pod("is-let", nodeSelector={HOSTNAME: "sim-4"}),
    pod("port", nodeSelector={HOSTNAME: "sim-7"}, container=PORT),
    pod("port-udp", nodeSelector={HOSTNAME: "sim-7"}, container=OTHER_PROTOCOL),
    pod("base", labels={"app": "base"}, nodeSelector={HOSTNAME: "sim-6"}),
    pod("near-base", affinity=company("podAffinity", "base")),
    pod("first-of-its-kind", nodeSelector=HERE, labels={"app": "kind"}, affinity=company("podAffinity", "kind")),
    pod("volume", volumes=mounts("bound")),
    pod("volcano", nodeSelector={HOSTNAME: "sim-7"}, schedulerName="volcano"),
    pod("sublet", nodeSelector={HOSTNAME: "sim-7"}, schedulerName="sublet-scheduler"),
    pod("not-tolerated", affinity=required("speed", "Gt", "4")),
    pod("cordoned", nodeSelector={HOSTNAME: "sim-2"}),
    pod("no-execute", nodeSelector={HOSTNAME: "sim-3"}),
    pod("no-such-label", nodeSelector={"disk": "tape"}),
    pod("too-large", cpu="33", tolerations=[{"operator": "Exists"}]),
    pod("large-init", initContainers=INIT),
    pod("large-sidecar", cpu="20", initContainers=SIDECAR),
    pod("no-disk", container={"requests": {"ephemeral-storage": "2Ti"}}),
    pod("near-nobody", affinity=company("podAffinity", "nobody")),
    pod("loose-claim", volumes=mounts("loose")),
    pod("lost-claim", volumes=mounts("lost")),
    pod("someone-elses", schedulerName="someone-else"),
    pod("gated", schedulingGates=[{"name": "example.com/wait"}], nodeSelector=HERE),
]
GOES_TO = {
    "selector": {"sim-0"},
    "tolerates": {"sim-1"},
    "by-field": {"sim-7"},
    "prefers": {"sim-0"},
    "avoids": {"sim-7"},
    "is-let": {"sim-4"},
    "port": {"sim-7"},
    "port-udp": {"sim-7"},
    "near-base": {"sim-6"},
    "first-of-its-kind": {"sim-0", "sim-4", "sim-5", "sim-6", "sim-7"},
    "volume": {"sim-5"},
    "volcano": {"sim-7"},
    "sublet": {"sim-7"},
}
NO_TAINTS = "1 node(s) had untolerated taint {drain: now}, 1 node(s) had untolerated taint {gpu: true}, "
CORDONED = "1 node(s) were unschedulable"
ELSEWHERE = "17 node(s) didn't match Pod's node affinity/selector"
WAITS = {
    "not-tolerated": f"0/20 nodes are available: {NO_TAINTS}{CORDONED}, {ELSEWHERE}.",
    "cordoned": f"0/20 nodes are available: {NO_TAINTS}{CORDONED}, {ELSEWHERE}.",
    "no-execute": f"0/20 nodes are available: {NO_TAINTS}{CORDONED}, {ELSEWHERE}.",
    "no-such-label": f"0/20 nodes are available: {NO_TAINTS}{CORDONED}, {ELSEWHERE}.",
    "too-large": "0/20 nodes are available: 20 Insufficient cpu.",
    "large-init": "17 Insufficient cpu.",
    "large-sidecar": "17 Insufficient cpu.",
    "no-disk": "17 Insufficient ephemeral-storage.",
    "near-nobody": "17 node(s) didn't match pod affinity rules.",
    "loose-claim": "0/20 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
    "lost-claim": '0/20 nodes are available: persistentvolumeclaim "lost" not found.',
    "gated": "Scheduling is blocked due to non-empty scheduling gates",
}


@pytest.fixture(scope="module")
def filtered(many_nodes: RunningCluster) -> Iterator[Scene]:
    """All pods applied at once, to nodes with labels, taints and a cordon of all kinds."""
    for arguments in (
        ("label", "node", "sim-0", "disk=ssd"),
        ("label", "node", "sim-1", "disk=ssd", "speed=5"),
        ("taint", "node", "sim-1", "gpu=true:NoSchedule"),
        ("cordon", "sim-2"),
        ("taint", "node", "sim-3", "drain=now:NoExecute"),
        ("taint", "node", "sim-4", "soft=yes:PreferNoSchedule"),
        ("label", "node", "sim-5", "zone=a"),
        ("label", "node", "sim-6", "zone=b"),
    ):
        many_nodes.kubectl(*arguments)
    scene = Scene(many_nodes)
    scene.apply(listed(PODS))
    yield scene
    scene.clean()
    many_nodes.kubectl("delete", "pv", "--all", "--wait=false")
    many_nodes.kubectl("uncordon", "sim-2")
    many_nodes.kubectl("taint", "node", "sim-1", "gpu-")
    many_nodes.kubectl("taint", "node", "sim-3", "drain-")


@pytest.mark.parametrize(("name", "nodes"), GOES_TO.items(), ids=GOES_TO.keys())
def test_goes_to(filtered: Scene, name: str, nodes: set[str]) -> None:
    """Where the rules leave a choice, any of them."""
    until(lambda: name in filtered.places(name))
    assert filtered.places(name).get(name) in nodes, filtered.message(name)


@pytest.mark.parametrize(("name", "words"), WAITS.items(), ids=WAITS.keys())
def test_waits(filtered: Scene, name: str, words: str) -> None:
    """In kube-scheduler's words, with every node counted once; the event says the same."""
    told = filtered.waits(name, words)
    if name != "gated":
        events = until(lambda: f"Pod/{name}" in (found := filtered.events("FailedScheduling")) and found)
        assert events[f"Pod/{name}"] == told


def test_explain_counts_nodes(filtered: Scene) -> None:
    """By filter, down to none; and what is missing where it is nearest."""
    filtered.waits("large-sidecar", "Insufficient")
    said = filtered.cluster.sublet("explain", "pod", "large-sidecar").stdout
    rows = [line.split() for line in said.splitlines()]
    assert ["+", "total", "nodes", "20"] in rows and ["-", "Insufficient", "cpu", "17"] in rows, said
    assert "nearest fit: node sim-" in said and "8 cpu more" in said, said


def test_another_schedulers_pod_is_left_alone(filtered: Scene) -> None:
    """Neither placed nor told anything, when all the others are settled; who asks is told whom it waits for."""
    filtered.waits("lost-claim", "not found")
    assert filtered.pods()["someone-elses"]["status"].get("conditions", []) == []
    assert "someone-elses" not in filtered.places("someone-elses")
    assert "waits for scheduler someone-else;" in filtered.cluster.sublet("explain", "pod", "someone-elses").stdout


def test_one_port_one_pod(filtered: Scene) -> None:
    """The second waits, and goes once the first has gone."""
    until(lambda: "port" in filtered.places("port"))
    filtered.apply(listed(pod("second-port", nodeSelector={HOSTNAME: "sim-7"}, container=PORT)))
    filtered.waits("second-port", "1 node(s) didn't have free ports for the requested pod ports")
    filtered.cluster.kubectl("delete", "pod", "port", "--wait=false")
    assert filtered.placed("second-port", 1) == {"second-port": "sim-7"}


def test_not_beside_its_like(filtered: Scene) -> None:
    """Two nodes, three pods that keep apart."""
    apart = required(HOSTNAME, "In", "sim-5", "sim-6") | company("podAntiAffinity", "apart")
    filtered.apply(listed([pod(f"apart-{index}", labels={"app": "apart"}, affinity=apart) for index in range(3)]))
    assert set(filtered.placed("apart-", 2).values()) == {"sim-5", "sim-6"}
    waiting = ({"apart-0", "apart-1", "apart-2"} - set(filtered.places("apart-"))).pop()
    filtered.waits(waiting, "2 node(s) didn't match pod anti-affinity rules")


def test_spread_over_zones(filtered: Scene) -> None:
    """Four pods over two zones: two each; nodes of no zone get none."""
    constraints = spread("zone", "spread")
    pods = [pod(f"spread-{n}", labels={"app": "spread"}, topologySpreadConstraints=constraints) for n in range(4)]
    filtered.apply(listed(pods))
    assert sorted(filtered.placed("spread-", 4).values()) == ["sim-5", "sim-5", "sim-6", "sim-6"]


def test_a_gate_opens(filtered: Scene) -> None:
    """Then the pod is placed as any other."""
    filtered.waits("gated", "scheduling gates")
    filtered.cluster.kubectl("patch", "pod", "gated", "--type=json", "-p", json.dumps([_WITHOUT_GATES]))
    assert filtered.placed("gated", 1)


_WITHOUT_GATES = {"op": "remove", "path": "/spec/schedulingGates"}
