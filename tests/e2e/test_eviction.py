"""Evictions in a running cluster: the victim learns why, budgets and notices are honoured, an absent server is waited for."""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest

from tests.e2e.conftest import ALWAYS_ROOM, RunningCluster, StartCluster, until
from wire.v1 import agent_pb2, agent_pb2_grpc

EVICTION = "sublet.dev/eviction"
NOTICE = "sublet.dev/preemption-notice-seconds"
SOCKET = "sublet.dev/checkpoint-socket"
# Half a percent of the machine: a meaningful part of what `pressure` misses, which is a few percent.
HELD_BYTES = psutil.virtual_memory().total // 200
# It holds memory and outlives SIGTERM until its grace is over, so that a test can look at it meanwhile.
HOLD = (
    f"import signal, time; signal.signal(signal.SIGTERM, lambda *_: None); held = b'x' * {HELD_BYTES};"
    "print('holding', flush=True); time.sleep(600)"
)
# As an ordinary user, with the package that training programs use.
TRAIN = (
    HOLD.removesuffix("time.sleep(600)")
    + """
import os, pathlib
from sublet_sdk import AgentSocket, Checkpoints
folder = pathlib.Path(os.environ['FOLDER'])
checkpoints = Checkpoints.at(f'{folder}/checkpoints', 'default/train')
if os.geteuid() == 0:
    # Not before: such a user may not read the packages.
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
heard = AgentSocket(pathlib.Path(os.environ['SUBLET_SOCKET_DIR']))
checkpoints.on_saved = lambda made, begun: heard.saved(made, begun)
deadline, saved = None, False
for _ in range(6000):
    time.sleep(0.1)
    if (folder / 'listen again').exists():
        (folder / 'listen again').unlink()
        heard.close()
        heard = AgentSocket(pathlib.Path(os.environ['SUBLET_SOCKET_DIR']))
        deadline = None
    if heard.deadline_seconds != deadline:
        deadline = heard.deadline_seconds
        print('deadline', deadline, flush=True)
    if not saved and (folder / 'save').exists():
        saved = checkpoints.save({'state': b'x'}, step=7)
        print('saved', saved.step, flush=True)
"""
)
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guard}
spec: {minAvailable: 1, selector: {matchLabels: {app: guarded}}}
"""


def pod(name: str, qos: str, program: str, folder: Path | None, **annotations: str) -> str:
    memory = str(HELD_BYTES + (64 << 20))
    batch = {"kubernetes.io/batch-cpu": "100", "kubernetes.io/batch-memory": memory}
    amounts = batch if qos == "BE" else {"cpu": "100m", "memory": memory}
    resources = {"requests": amounts, "limits": amounts}
    container = {"name": "c", "image": "python:3.9", "command": ["python", "-c", program], "resources": resources}
    if folder is not None:
        container["env"] = [{"name": "FOLDER", "value": str(folder)}]
    spec = {
        "schedulerName": "koord-scheduler",
        "priorityClassName": "koord-batch" if qos == "BE" else "koord-prod",
        "terminationGracePeriodSeconds": 15,
        "containers": [container],
    }
    metadata = {"name": name, "labels": {"koordinator.sh/qosClass": qos, "app": name}, "annotations": annotations}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


@pytest.fixture(scope="module")
def evicting(start_cluster: StartCluster) -> RunningCluster:
    """With an online pod that is never touched."""
    cluster = start_cluster(agent_settings=ALWAYS_ROOM)
    start(cluster, "online", "LS")
    return cluster


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not made yet, in a place that any user may reach."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made) / "work"


def start(
    cluster: RunningCluster,
    name: str,
    qos: str = "BE",
    program: str = HOLD,
    folder: Path | None = None,
    **annotations: str,
) -> dict[str, Any]:
    """The pod, once it works and the agent has seen that."""
    cluster.apply(pod(name, qos, program, folder, **annotations))
    assert until(lambda: "holding" in cluster.kubectl("logs", name, check=False), 60), cluster.kubectl("get", "events")
    assert until(lambda: name in seen_by_agent(cluster))
    return found(cluster, name)


def seen_by_agent(cluster: RunningCluster) -> set[str]:
    with grpc.insecure_channel(cluster.endpoints["agent_grpc"]) as channel:
        answer = agent_pb2_grpc.AgentDiagnosticsStub(channel).ListPods(agent_pb2.ListPodsRequest(), timeout=5)
    return {pod.name for pod in answer.pods if pod.measured}


def found(cluster: RunningCluster, name: str) -> dict[str, Any]:
    """The pod, or one without anything where it is gone."""
    told = cluster.kubectl("get", "pod", name, "-o", "json", "--ignore-not-found")
    return json.loads(told) if told else {"metadata": {"annotations": {}, "deletionTimestamp": "gone"}, "status": {}}


def going(cluster: RunningCluster, name: str) -> bool:
    return "deletionTimestamp" in found(cluster, name)["metadata"]


def told(cluster: RunningCluster, name: str) -> dict[str, Any]:
    """What the pod's annotation says about its eviction."""
    text = found(cluster, name)["metadata"].get("annotations", {}).get(EVICTION, "{}")
    answer: dict[str, Any] = json.loads(text)
    return answer


def messages(cluster: RunningCluster, kind: str, name: str) -> list[str]:
    """Of the memory rule's Events about an object."""
    selector = f"involvedObject.kind={kind},involvedObject.name={name},reason=BEMemoryEvict"
    items = json.loads(cluster.kubectl("get", "events", "-A", "--field-selector", selector, "-o", "json"))["items"]
    return [item["message"] for item in items]


def used_pct(cluster: RunningCluster) -> int:
    """Of the node's memory, as the agent sees it."""
    with grpc.insecure_channel(cluster.endpoints["agent_grpc"]) as channel:
        node = agent_pb2_grpc.AgentDiagnosticsStub(channel).GetNode(agent_pb2.GetNodeRequest(), timeout=5)
    return int(node.usage.memory_bytes * 100 // node.capacity.memory_bytes)


@contextmanager
def pressure(cluster: RunningCluster) -> Iterator[None]:
    """While the block runs the node uses a few percent of its memory too much."""
    node = cluster.endpoints["node"]
    threshold = max(used_pct(cluster) - 2, 1)
    rule = {"enable": True, "memoryEvictThresholdPercent": threshold, "memoryEvictLowerPercent": threshold - 1}
    # The leader's own NodeSLO becomes somebody's, and is the leader's again once this one is gone.
    metadata = {"name": node, "labels": {"app.kubernetes.io/managed-by": "somebody"}}
    document = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeSLO", "metadata": metadata}
    cluster.apply(json.dumps({**document, "spec": {"resourceUsedThresholdWithBE": rule}}))
    try:
        yield
    finally:
        cluster.kubectl("delete", "nodeslo", node)


@contextmanager
def stopped(cluster: RunningCluster, program: str) -> Iterator[None]:
    """The program does not answer; `up` sleeps, so that it is not started again."""
    pids = (cluster.process.pid, cluster.endpoints["programs"][program])
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in reversed(pids):
            os.kill(pid, signal.SIGCONT)


def ended(cluster: RunningCluster, name: str) -> bool:
    """Gone for good, on request."""
    cluster.kubectl("delete", "pod", name, "--grace-period=0", "--force", "--ignore-not-found", "--wait=false")
    return bool(until(lambda: not found(cluster, name)["status"]))


def test_a_victim_learns_why(evicting: RunningCluster) -> None:
    """Annotation, condition, Events on pod and node; its own grace holds; the online pod lives."""
    start(evicting, "batch")
    with pressure(evicting):
        assert until(lambda: going(evicting, "batch")), evicting.kubectl("get", "events")
        victim, record = found(evicting, "batch"), told(evicting, "batch")
    assert victim["metadata"]["deletionGracePeriodSeconds"] == 15
    assert "DisruptionTarget" in [condition["type"] for condition in victim["status"]["conditions"]]
    decision = record["decision"]
    assert (record["kind"], decision["reason"], decision["subject"]) == ("evict", "BEMemoryEvict", "pod/default/batch")
    assert sum(term["value"] for term in decision["terms"]) == decision["value"] > 0
    assert until(lambda: any("Evicted" in text for text in messages(evicting, "Pod", "batch")))
    assert until(
        lambda: any("default/batch" in text for text in messages(evicting, "Node", evicting.endpoints["node"]))
    )
    assert not going(evicting, "online") and ended(evicting, "batch")


@pytest.mark.slow
def test_a_disruption_budget_is_honoured(evicting: RunningCluster) -> None:
    """The pod lives on and is told that it was wanted; without the budget it goes."""
    start(evicting, "guarded")
    evicting.apply(BUDGET)
    with pressure(evicting):
        assert until(lambda: told(evicting, "guarded").get("outcome") == "blocked"), evicting.kubectl("get", "events")
        assert not going(evicting, "guarded")
        assert until(lambda: any("budget guard needs 1" in text for text in messages(evicting, "Pod", "guarded")))
        evicting.kubectl("delete", "pdb", "guard")
        assert until(lambda: going(evicting, "guarded"), 60)
    assert ended(evicting, "guarded")


def notified(cluster: RunningCluster, name: str, seconds: int, folder: Path) -> Callable[[], float]:
    """A pod that trains and asks for notice, and what waits for the notice's deadline.

    Its process is user nobody's where tests are root's. It saves once its file `save` is there.
    """
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    start(cluster, name, program=TRAIN, folder=folder, **{NOTICE: str(seconds), SOCKET: "true"})

    def deadline() -> float:
        assert until(lambda: "deadline" in cluster.kubectl("logs", name)), cluster.kubectl("logs", name)
        return float(re.findall(r"deadline (\S+)", cluster.kubectl("logs", name))[0])

    return deadline


def test_a_pod_that_asked_is_told_first(evicting: RunningCluster, folder: Path) -> None:
    """Notice with a deadline; it goes as soon as it has saved its state since then, well before that."""
    deadline = notified(evicting, "asking", 50, folder)
    with pressure(evicting):
        at = deadline()
        assert 30 < at - time.time() <= 50
        assert until(lambda: told(evicting, "asking").get("kind") == "notify")
        assert not going(evicting, "asking")
        (folder / "save").touch()
        assert until(lambda: going(evicting, "asking"), 20) and time.time() < at
    assert "saved 7" in evicting.kubectl("logs", "asking")
    assert ended(evicting, "asking")


def test_an_agent_that_starts_again_tells_again(evicting: RunningCluster, folder: Path) -> None:
    """A process that listens only then, too; and hears of its checkpoint."""
    deadline = notified(evicting, "twice", 60, folder)
    with pressure(evicting):
        at = deadline()
        (folder / "listen again").touch()
        pid = evicting.endpoints["programs"]["agent"]
        os.kill(pid, signal.SIGKILL)
        assert until(lambda: evicting.kubectl("logs", "twice").count("deadline") == 2)
        assert deadline() == pytest.approx(at, abs=1)
        (folder / "save").touch()
        assert until(lambda: going(evicting, "twice"), 30) and time.time() < at
    assert ended(evicting, "twice")


@pytest.mark.slow
def test_an_eviction_waits_for_the_api_server(evicting: RunningCluster, folder: Path) -> None:
    """Its time comes while nobody answers; it is carried out, told and annotated once somebody does."""
    deadline = notified(evicting, "patient", 5, folder)
    with pressure(evicting):
        at = deadline()
        with stopped(evicting, "apiserver"):
            time.sleep(max(at - time.time(), 0) + 3)
        assert until(lambda: going(evicting, "patient"))
        assert told(evicting, "patient")["kind"] == "evict"
    assert until(lambda: any("Evicted" in text for text in messages(evicting, "Pod", "patient")))
    assert ended(evicting, "patient")
