"""Pods' sockets for real: what a pod is told and tells, and that a hostile one is heard about itself and delays nobody."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from structlog.testing import capture_logs

from agent.core.evict.eviction_request import PendingVictim
from agent.core.evict.pod_notices import NoticeOrigin
from agent.core.observe.layout import PodDirectory
from agent.edge.podsockets import PodSockets, SocketPlaces
from model.pod.pod import Pod
from model.reason import Reason
from model.report import CheckpointSaved, PreemptionNotice
from tests.agent.podsocket_cases import listening, other_process, socket_folder

T = TypeVar("T")
SOON_SECONDS = 20.0


def until(what: Callable[[], T]) -> T:
    """What it gives once that is true."""
    end = time.monotonic() + SOON_SECONDS
    while not (found := what()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)
    return found


class Node:
    """Pods with folders, and an agent's sockets on a loop of its own; `saved` is what it heard."""

    def __init__(self, folder: Path, pods: list[Pod], pending: dict[str, PendingVictim] | None = None) -> None:
        self.kubelet, self.tree = folder / "pods", folder / "tree"
        self.pods = pods
        self.saved: list[CheckpointSaved] = []
        for pod in pods:
            self.member(pod.uid, os.getpid())
            socket_folder(self.kubelet, pod.uid)
        self._pending = pending or {}
        self._loop: Any = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def member(self, uid: str, process: int) -> None:
        cgroup = self.tree / uid / "container"
        cgroup.mkdir(parents=True, exist_ok=True)
        (cgroup / "cgroup.procs").write_text(f"{process}\n")

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.sockets = PodSockets(
            SocketPlaces(self.kubelet, self.tree),
            lambda: self.pods,
            lambda: {path.name: PodDirectory(f"/{path.name}") for path in self.tree.iterdir()},
            self.saved.append,
            self._pending,
        )
        self._task = asyncio.ensure_future(self.sockets.run())
        self._ready.set()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def __enter__(self) -> Node:
        self._thread.start()
        assert self._ready.wait(20)
        return self

    def __exit__(self, *of: object) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(20)
        assert not self._thread.is_alive()

    def notify(self, uid: str, reason: str = "needed", origin: NoticeOrigin = NoticeOrigin.SCHEDULER) -> None:
        notice = PreemptionNotice(uid, time.time() + 60, reason)
        self._loop.call_soon_threadsafe(self.sockets.notify, origin, notice)

    def withdraw(self, uid: str) -> None:
        self._loop.call_soon_threadsafe(self.sockets.withdraw, NoticeOrigin.SCHEDULER, uid)


class Process:
    """One of a pod's, that listens."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self.accept()

    def accept(self) -> None:
        self.connection, _ = self._server.accept()
        self.connection.settimeout(SOON_SECONDS)
        self._read = self.connection.makefile("rb")

    def hear(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._read.readline())
        return told

    def gone(self) -> bool:
        """Whether the agent has hung up."""
        try:
            return self._read.readline() == b""
        except ConnectionError:
            return True

    def tell(self, **fields: Any) -> None:
        told = {"type": "checkpoint", "id": "1-a", "step": 3, "begun": 5.0, "complete": 6.0, "size": 9, **fields}
        self.connection.sendall(json.dumps(told).encode() + b"\n")


@pytest.fixture
def node(tmp_path: Path, build: Any) -> Iterator[Node]:
    with Node(tmp_path, [build.batch("job"), build.batch("other")]) as made:
        yield made


@contextlib.contextmanager
def process_of(node: Node, uid: str, name: str = "x.sock") -> Iterator[Process]:
    with listening(socket_folder(node.kubelet, uid), name) as server:
        made = Process(server)
        yield made
        made.connection.close()


def test_a_pod_is_told_and_tells(node: Node) -> None:
    """Who it is says the folder; what it tells of itself is heard and acknowledged."""
    with process_of(node, "uid-job") as job, process_of(node, "uid-other") as other:
        node.notify("uid-job", "a gang needs the node")
        told = job.hear()
        assert (told["type"], told["reason"], told["grace"]) == ("notice", "a gang needs the node", 30)
        assert 50 < told["deadline"] - time.time() <= 60
        job.tell(pod="other", uid="uid-other")
        assert job.hear() == {"type": "ack", "id": "1-a"}
        found = until(lambda: node.saved)[0]
        assert found == CheckpointSaved("default", "job", "uid-job", 6.0, 3, 5.0, "1-a", 9)
        node.withdraw("uid-job")
        assert job.hear() == {"type": "withdrawn"}
        other.tell(id="o")
        assert other.hear() == {"type": "ack", "id": "o"}


def test_each_process_of_a_pod_is_told_also_one_that_comes_later(node: Node) -> None:
    with process_of(node, "uid-job") as first:
        node.notify("uid-job")
        assert first.hear()["type"] == "notice"
        with process_of(node, "uid-job", "y.sock") as second:
            assert second.hear()["type"] == "notice"


def test_a_connection_that_is_lost_is_made_again_and_told_again(node: Node) -> None:
    node.notify("uid-job")
    with process_of(node, "uid-job") as job:
        assert job.hear()["type"] == "notice"
        job.connection.close()
        job._read.close()
        job.accept()
        assert job.hear()["type"] == "notice"


def test_an_agent_that_starts_again_tells_its_own_notices_again(tmp_path: Path, build: Any) -> None:
    """From what the one before it has written down; the scheduler tells its own over the new link."""
    until_seconds = time.time() + 40
    victim = PendingVictim({}, time.time(), until_seconds, until_seconds, reason=Reason.BE_MEMORY_EVICT)
    with Node(tmp_path, [build.batch("job")], {"uid-job": victim}) as node, process_of(node, "uid-job") as job:
        assert job.hear()["deadline"] == pytest.approx(until_seconds)


def test_a_pod_that_is_not_to_be_evicted_any_more_is_told_so(node: Node, build: Any) -> None:
    with process_of(node, "uid-job") as job:
        node.notify("uid-job", origin=NoticeOrigin.AGENT)
        assert job.hear()["type"] == "notice"
        node._loop.call_soon_threadsafe(node.sockets.take, build.result())
        assert job.hear()["type"] == "withdrawn"


def test_a_pod_that_came_later_is_found_and_one_that_went_is_left(node: Node, build: Any) -> None:
    late = build.batch("late")
    node.member(late.uid, os.getpid())
    socket_folder(node.kubelet, late.uid)
    node.pods = [*node.pods, late]
    with process_of(node, late.uid) as process:
        process.tell()
        assert process.hear()["type"] == "ack"
        node.pods = node.pods[:-1]
        assert process.gone()
    until(lambda: node.sockets.folders == 2)


def test_a_process_of_another_pod_is_not_heard(node: Node) -> None:
    """It listens in this pod's folder, by whatever trick, and is in no cgroup of the pod."""
    with capture_logs() as logs, other_process(socket_folder(node.kubelet, "uid-job")) as stranger:
        refused = until(lambda: [line for line in logs if line["event"] == "pod socket refused"])[0]
        assert f"process {stranger}" in refused["why"] and refused["pod"] == "default/job"
        until(lambda: node.sockets.refused)
        assert not node.sockets._talks["uid-job"]._lines
        # The same process as a member is heard; so what was missing was this alone.
        node.member("uid-job", stranger)
        until(lambda: node.sockets._talks["uid-job"]._lines)
    assert node.saved == []


def link_to_the_others(node: Node) -> contextlib.AbstractContextManager[Any]:
    (socket_folder(node.kubelet, "uid-job") / "a.sock").symlink_to(socket_folder(node.kubelet, "uid-other") / "x.sock")
    return contextlib.nullcontext()


def a_pipe(node: Node) -> contextlib.AbstractContextManager[Any]:
    os.mkfifo(socket_folder(node.kubelet, "uid-job") / "a.sock")
    return contextlib.nullcontext()


@contextlib.contextmanager
def sends(node: Node, text: bytes, reads: bool = True) -> Iterator[None]:
    """Sends that again and again, over as many connections as it gets."""
    over = threading.Event()
    with listening(socket_folder(node.kubelet, "uid-job"), "a.sock") as server:
        server.settimeout(0.2)

        def send() -> None:
            while not over.is_set():
                with contextlib.suppress(OSError):
                    taken, _ = server.accept()
                    with taken:
                        taken.settimeout(0.2)
                        while not over.is_set():
                            taken.sendall(text)
                            if reads:
                                taken.recv(4096)

        thread = threading.Thread(target=send)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(20)


CHECKPOINT = b'{"type":"checkpoint","id":"a","step":1,"begun":1,"complete":2,"size":3}\n'
HOSTILE: dict[str, Callable[[Node], contextlib.AbstractContextManager[Any]]] = {
    "a link to another pod's socket": link_to_the_others,
    "a pipe": a_pipe,
    "garbage": lambda node: sends(node, b"\xff\x00 no JSON\n"),
    "empty lines": lambda node: sends(node, b"\n" * 4096),
    "a line without end": lambda node: sends(node, b"x" * 65536, reads=False),
    "deep nesting": lambda node: sends(node, b"[" * 4000 + b"\n"),
    "a flood that reads nothing": lambda node: sends(node, CHECKPOINT * 100, reads=False),
    "a flood that reads": lambda node: sends(node, CHECKPOINT * 20),
}


@pytest.mark.parametrize("begin", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_pod_is_heard_about_itself_at_most_and_delays_nobody(
    node: Node, begin: Callable[[Node], contextlib.AbstractContextManager[Any]]
) -> None:
    """The other pod has its words in the meantime, and its descriptors and memory stay bounded."""
    with begin(node), process_of(node, "uid-other") as other:
        for number in range(4):
            other.tell(id=str(number))
            assert other.hear() == {"type": "ack", "id": str(number)}
        node.notify("uid-other")
        assert other.hear()["type"] == "notice"
        buffered = [len(line.incoming) + len(line.outgoing) for line in node.sockets._talks["uid-job"]._lines.values()]
        assert sum(buffered) <= 16 * 3 * 4096
    assert {saved.pod_uid for saved in node.saved} <= {"uid-other", "uid-job"}
    assert [saved.checkpoint for saved in node.saved if saved.pod_uid == "uid-other"] == ["0", "1", "2", "3"]


def test_a_pod_has_its_budget_of_messages(node: Node) -> None:
    """Ten at once, then one a second, however many it sends and over however many connections."""
    began = time.monotonic()
    with process_of(node, "uid-job") as one, process_of(node, "uid-job", "y.sock") as two:
        for process in (one, two):
            process.connection.sendall(CHECKPOINT * 200)
        until(lambda: len(node.saved) >= 11)
        assert len(node.saved) <= 10 + 1 + (time.monotonic() - began)


def test_a_pod_has_no_more_connections_than_its_share(node: Node) -> None:
    folder = socket_folder(node.kubelet, "uid-job")
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(listening(folder, f"{number:02}.sock")) for number in range(40)]
        connections = []
        for server in servers:
            server.settimeout(0.1)
        end = time.monotonic() + 3
        while time.monotonic() < end:
            for server in servers:
                with contextlib.suppress(TimeoutError):
                    connections.append(server.accept()[0])
                    stack.callback(connections[-1].close)
        assert 1 < len(connections) <= 16
        with process_of(node, "uid-other") as other:
            other.tell()
            assert other.hear()["type"] == "ack"


def test_a_descriptor_whose_closing_waits_delays_the_pod_that_sent_it_alone(node: Node) -> None:
    """A TCP socket with unsent bytes and an hour to linger: before Linux 6.16 whoever drops it waits for it."""
    with socket.create_server(("127.0.0.1", 0)) as sink, process_of(node, "uid-job") as job:
        lingering = socket.create_connection(sink.getsockname())
        peer, _ = sink.accept()
        lingering.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x08\x00\x00\x00")
        lingering.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while lingering.send(b"x" * 65536):
                pass
        with contextlib.suppress(PermissionError):
            socket.send_fds(job.connection, [CHECKPOINT], [lingering.fileno()])
        with process_of(node, "uid-other") as other:
            node.notify("uid-other")
            assert other.hear()["type"] == "notice"
        peer.close()
        lingering.close()
