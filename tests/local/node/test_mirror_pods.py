"""Sublet's own programs as static pods: what the API server shows of them, and that deleting it ends nothing."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from embedded.fault import KubernetesFault
from embedded.node.logs.reading import LogQuery, LogReading
from embedded.node.objects.pod import NodeMetadata, NodeObject, PodMetadata, PodObject
from kube.informer import Change, ChangeKind
from local.node.mirror_pods import Mirrors, WithMirrors, is_mirror, mirror_of
from local.staticprograms import ProgramRun, StaticProgram, write_programs

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
NODE = NodeObject(NodeMetadata("n1", "node-uid"))
KEY = ("koordinator-system", "sublet-agent-n1")


class Server:
    """Holds pods as an API server does, and lets the mirrors see them."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.mirrors: Mirrors | None = None
        self.events: list[tuple[str, str]] = []
        self.made = 0
        self.patches = 0
        self.fault: KubernetesFault | None = None

    async def create_pod(self, body: dict[str, Any]) -> None:
        if self.fault is not None:
            raise self.fault
        self.made += 1
        made = {**body, "metadata": {**body["metadata"], "uid": f"uid-{self.made}"}, "status": {}}
        self.pods[body["metadata"]["name"]] = made
        self.tell(ChangeKind.ADDED, made)

    async def delete_pod(self, pod: PodObject) -> None:
        held = self.pods.get(pod.metadata.name)
        if held is None or held["metadata"]["uid"] != pod.uid:
            raise KubernetesFault(pod.metadata.name, "gone", status=404)
        self.tell(ChangeKind.DELETED, self.pods.pop(pod.metadata.name))

    async def patch_pod_status(self, pod: PodObject, status: dict[str, Any]) -> None:
        self.patches += 1
        held = self.pods[pod.metadata.name]
        held["status"] = {**held["status"], **status}
        self.tell(ChangeKind.MODIFIED, held)

    def record(self, pod: PodObject, reason: str, message: str, *, warning: bool = False) -> None:
        self.events.append((reason, pod.uid))

    def tell(self, kind: ChangeKind, raw: dict[str, Any]) -> None:
        assert self.mirrors is not None
        self.mirrors.observe(Change(kind, msgspec.convert(raw, PodObject)))

    @property
    def only(self) -> dict[str, Any]:
        (pod,) = self.pods.values()
        return pod

    @property
    def container(self) -> dict[str, Any]:
        (status,) = self.only["status"]["containerStatuses"]
        return dict(status)


class Node:
    """A node with one program; `settle` is one look."""

    def __init__(self, tmp_path: Path) -> None:
        self.file, self.log = tmp_path / "programs.json", tmp_path / "agent.log"
        self.log.write_text("")
        self.server = Server()
        self.run_dir = tmp_path / "node"
        self.mirrors = self.server.mirrors = Mirrors(
            self.server, self.file, self.run_dir, lambda: NODE, "127.65.0.1", lambda: NOW
        )
        self.program = StaticProgram(
            "agent", "n1", str(self.log), ProgramRun(os.getpid(), NOW.timestamp()), host="127.0.0.1", port=1
        )

    def settle(self, *programs: StaticProgram, times: int = 2) -> Server:
        write_programs(self.file, programs)
        for _ in range(times):
            asyncio.run(self.mirrors.settle())
        return self.server

    def restarted(self) -> StaticProgram:
        """Killed after it said something, and up again."""
        begin = self.log.stat().st_size
        over = msgspec.structs.replace(self.program.run, ended_seconds=NOW.timestamp() + 9, exit_code=-9)
        run = ProgramRun(os.getpid(), NOW.timestamp() + 10, begin)
        return msgspec.structs.replace(self.program, run=run, previous=over, restarts=1)

    def said(self, *, previous: bool = False) -> str:
        file = self.mirrors.log_file(*KEY, "agent", previous=previous)
        assert isinstance(file, Path), file
        with LogReading(file, LogQuery()) as reading:
            return reading.read().decode()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_program_is_shown_as_it_runs(node: Node) -> None:
    """A mirror as a kubelet makes one: of this node, with its mark, asking for nothing; Running, ready once it says so."""
    server = node.settle(node.program)
    pod = server.only
    assert (pod["metadata"]["namespace"], pod["metadata"]["name"]) == KEY
    assert is_mirror(msgspec.convert(pod, PodObject))
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "node-uid"
    assert "resources" not in pod["spec"]["containers"][0]
    assert (pod["status"]["phase"], pod["status"]["podIP"]) == ("Running", "127.65.0.1")
    assert (server.container["ready"], server.container["restartCount"]) == (False, 0)
    node.mirrors._ready["sublet-agent-n1"] = (os.getpid(), True)
    assert node.settle(node.program).container["ready"]


def test_nothing_new_is_written_once(node: Node) -> None:
    """A look each second costs the API server nothing."""
    before = node.settle(node.program).patches
    assert node.settle(node.program, times=5).patches == before


def test_a_deleted_mirror_comes_back(node: Node) -> None:
    """At once, or after its grace; the program is not touched and has another pod."""
    server = node.settle(node.program)
    asyncio.run(server.delete_pod(msgspec.convert(server.only, PodObject)))
    assert node.settle(node.program).only["metadata"]["uid"] == "uid-2"
    leaving = {**server.only, "metadata": {**server.only["metadata"], "deletionTimestamp": "2026-01-01T12:00:00Z"}}
    server.tell(ChangeKind.MODIFIED, leaving)
    assert node.settle(node.program).only["metadata"]["uid"] == "uid-3"


def test_a_mirror_of_nothing_goes(node: Node) -> None:
    """Nobody claims by an annotation that the node runs something."""
    forged = {**mirror_of(node.program, "node-uid"), "status": {}}
    forged["metadata"] = {**forged["metadata"], "name": "forged", "uid": "x"}
    node.server.pods["forged"] = forged
    node.server.tell(ChangeKind.ADDED, forged)
    assert set(node.settle(node.program).pods) == {"sublet-agent-n1"}
    assert node.settle().pods == {}


def test_while_nothing_is_known_nothing_changes(node: Node) -> None:
    """A file that is not there, or half of one, says nothing of what runs."""
    server = node.settle(node.program)
    for break_ in (lambda: node.file.write_text("[{"), node.file.unlink):
        break_()
        asyncio.run(node.mirrors.settle())
        assert set(server.pods) == {"sublet-agent-n1"}


def test_an_end_and_a_new_start(node: Node) -> None:
    """Waiting with the way it ended, then running with a count of one, and Events for both."""
    server = node.settle(node.program)
    over = msgspec.structs.replace(node.program.run, ended_seconds=NOW.timestamp() + 9, exit_code=-9)
    server = node.settle(msgspec.structs.replace(node.program, run=over))
    assert server.container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert server.container["lastState"]["terminated"]["exitCode"] == 137
    assert list(node.mirrors.living()) == []
    server = node.settle(node.restarted())
    assert "running" in server.container["state"] and server.container["restartCount"] == 1
    assert server.container["lastState"]["terminated"]["reason"] == "Error"
    hash_ = server.only["metadata"]["annotations"]["kubernetes.io/config.mirror"]
    assert server.events == [("BackOff", hash_), ("Started", hash_)]
    assert server.made == 1


def test_a_readiness_that_was_taken_away_is_told_again(node: Node) -> None:
    """The node controller marks pods of a silent node not ready."""
    node.mirrors._ready["sublet-agent-n1"] = (os.getpid(), True)
    server = node.settle(node.program)
    server.only["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    server.tell(ChangeKind.MODIFIED, server.only)
    told = {each["type"]: each["status"] for each in node.settle(node.program).only["status"]["conditions"]}
    assert told["Ready"] == "True"


def test_logs_are_the_programs_own(node: Node) -> None:
    """Of this run, and of the one before it."""
    node.settle(node.program)
    with node.log.open("a") as log:
        log.write("first\n")
    assert node.said() == "first\n"
    answer = node.mirrors.log_file(*KEY, "agent", previous=True)
    assert answer == 'previous terminated container "agent" in pod "sublet-agent-n1" not found'
    node.settle(node.restarted())
    with node.log.open("a") as log:
        log.write("second\n")
    assert (node.said(), node.said(previous=True)) == ("second\n", "first\n")
    assert node.log.read_text() == "first\nsecond\n"
    assert "is not valid for pod" in str(node.mirrors.log_file(*KEY, "other", previous=False))
    assert node.mirrors.log_file("default", "p", "c", previous=False) is None


def test_logs_go_with_the_pod(node: Node) -> None:
    """The links do; the program's log is `up`'s."""
    node.settle(node.program)
    node.settle()
    assert list((node.run_dir / "logs").iterdir()) == [] and node.log.exists()


def test_use_is_that_of_the_process(node: Node) -> None:
    """Of whoever is not a mirror the runtime tells."""

    class Runtime:
        def use(self, pod: PodObject, container_id: str = "") -> None:
            return None

        def use_of_all(self) -> None:
            return None

    node.settle(node.program)
    (living,) = node.mirrors.living()
    uses = WithMirrors(Runtime(), node.mirrors)
    use = uses.use(living.pod)
    assert use is not None and use.memory_bytes > 1 << 20 and use.cpu_ns > 0
    assert uses.use(PodObject(PodMetadata("p", "default", "u"))) is None


def test_a_namespace_that_is_not_there(node: Node) -> None:
    """Deleted with all that was in it: nothing fails, and the mirrors are back with the namespace."""
    node.server.fault = KubernetesFault("POST pods", 'namespaces "koordinator-system" not found', status=404)
    assert node.settle(node.program).pods == {}
    node.server.fault = None
    assert set(node.settle(node.program).pods) == {"sublet-agent-n1"}


def test_a_program_is_not_entered(node: Node) -> None:
    """It is outside of pods; what is no mirror is for somebody else to judge."""
    node.settle(node.program)
    objection = node.mirrors.objection(*KEY) or ""
    # A real API server reads what a kubelet refuses as YAML, and tells nothing of an object that it does not know.
    assert "cannot be entered" in objection and yaml.safe_load(objection) == objection
    assert node.mirrors.objection("default", KEY[1]) is None
