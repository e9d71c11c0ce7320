"""The socket to the node's agent: what is heard, what is told, and what gets lost without harm."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from sublet_sdk.agent_socket import AgentSocket
from sublet_sdk.manifest import Checkpoint

SOON_SECONDS = 20.0


def until(what: Callable[[], Any]) -> Any:
    end = time.monotonic() + SOON_SECONDS
    while not (found := what()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)
    return found


def checkpoint(step: int) -> Checkpoint:
    return Checkpoint(f"id-{step}", "ml/train", step, 1, 7, 10.0, 11.0, {})


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a short path: the kernel takes no long one."""
    made = Path("/tmp") / f"sdk-{os.getpid()}-{time.monotonic_ns()}"
    made.mkdir()
    yield made
    made.chmod(0o700)
    for each in made.iterdir():
        each.unlink()
    made.rmdir()


@pytest.fixture
def mine(folder: Path) -> Iterator[AgentSocket]:
    made = AgentSocket(folder)
    yield made
    made.close()


def sockets(folder: Path) -> list[Path]:
    return [each for each in folder.iterdir() if each.suffix == ".sock" and not each.name.startswith(".")]


class Agent:
    """Connected, as the node's agent is."""

    def __init__(self, folder: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(SOON_SECONDS)
        self._socket.connect(str(until(lambda: sockets(folder))[0]))
        self._read = self._socket.makefile("rb")

    def say(self, **message: Any) -> None:
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def hear(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._read.readline())
        return told

    def gone(self) -> bool:
        try:
            return self._read.readline() == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self._read.close()
        self._socket.close()


@contextmanager
def agent(folder: Path) -> Iterator[Agent]:
    made = Agent(folder)
    try:
        yield made
    finally:
        made.close()


def test_a_notice_comes_and_is_withdrawn(folder: Path, mine: AgentSocket) -> None:
    assert mine.noticed() == "" and mine.deadline_seconds is None
    with agent(folder) as node:
        at = time.time() + 30
        node.say(type="notice", deadline=at, reason="a gang needs the node", grace=30)
        assert until(mine.noticed) == "a gang needs the node" and mine.deadline_seconds == at
        node.say(type="withdrawn")
        until(lambda: not mine.noticed())
        node.say(type="notice", deadline=at, reason="", grace=30)
        assert until(mine.noticed)


def test_a_notice_stands_when_the_agent_is_gone(folder: Path, mine: AgentSocket) -> None:
    """Until the one that takes its place says otherwise."""
    with agent(folder) as node:
        node.say(type="notice", deadline=time.time() + 30, reason="why", grace=30)
        until(mine.noticed)
    with agent(folder) as node:
        assert mine.noticed() == "why"
        node.say(type="withdrawn")
        until(lambda: not mine.noticed())


def test_a_notice_lapses_where_nobody_withdraws_it(folder: Path, mine: AgentSocket) -> None:
    with agent(folder) as node:
        node.say(type="notice", deadline=time.time() - 100, reason="long ago", grace=30)
        assert until(mine.noticed)
        node.say(type="notice", deadline=time.time() - 130, reason="longer ago", grace=30)
        until(lambda: not mine.noticed())


@pytest.mark.parametrize(
    "line",
    [b"\xff\xfe", b"[]", b"5", b"{}", b'{"type":"notice"}', b'{"type":"notice","deadline":"x","reason":"y"}',
     b'{"type":"later than this"}', b"[" * 20_000, b""],
)  # fmt: skip
def test_what_is_not_understood_is_passed_over(folder: Path, mine: AgentSocket, line: bytes) -> None:
    with agent(folder) as node:
        node._socket.sendall(line + b"\n")
        assert mine.noticed() == ""
        node.say(type="notice", deadline=time.time() + 30, reason="why", grace=30)
        assert until(mine.noticed) == "why"


def test_a_line_without_end_is_not_kept(folder: Path, mine: AgentSocket) -> None:
    with agent(folder) as node:
        with suppress(BrokenPipeError, ConnectionResetError):
            node._socket.sendall(b"x" * 200_000)
        assert node.gone()
    with agent(folder) as node:
        node.say(type="notice", deadline=time.time() + 30, reason="why", grace=30)
        assert until(mine.noticed)


def test_a_checkpoint_is_told_and_acknowledged(folder: Path, mine: AgentSocket) -> None:
    """Times are by this machine's clock, whatever the manifest's are."""
    with agent(folder) as node:
        began = time.time()
        mine.saved(checkpoint(3), began)
        told = node.hear()
        assert {name: told[name] for name in ("type", "id", "step", "size", "begun")} == {
            "type": "checkpoint", "id": "id-3", "step": 3, "size": 7, "begun": began,
        }  # fmt: skip
        assert began <= told["complete"] <= time.time()
        node.say(type="ack", id="id-3")
        mine.saved(checkpoint(4), began)
        assert node.hear()["id"] == "id-4"


def test_the_newest_is_told_once_the_agent_has_heard_the_one_before(folder: Path, mine: AgentSocket) -> None:
    """However many are saved meanwhile, nothing gathers."""
    with agent(folder) as node:
        for step in range(1, 4):
            mine.saved(checkpoint(step), 1.0)
            if step == 1:
                assert node.hear()["id"] == "id-1"
        node.say(type="ack", id="id-1")
        assert node.hear()["id"] == "id-3"


def test_an_agent_that_starts_again_is_told_again(folder: Path, mine: AgentSocket) -> None:
    """Acknowledged or not: the new one may know nothing."""
    mine.saved(checkpoint(1), 1.0)
    for _ in range(2):
        with agent(folder) as node:
            assert node.hear()["id"] == "id-1"
            node.say(type="ack", id="id-1")


def test_what_was_saved_last_is_told_before_the_process_ends(folder: Path) -> None:
    mine = AgentSocket(folder)
    with agent(folder) as node:
        node.say(type="withdrawn")
        until(lambda: mine._connections)
        mine.saved(checkpoint(1), 1.0)
        node.hear()
        node.say(type="ack", id="id-1")
        began = time.monotonic()
        mine.close()
        assert mine._heard.is_set() and time.monotonic() - began < 15
        assert node.gone()
    assert list(folder.iterdir()) == []


def test_without_an_agent_an_end_is_not_waited_for(folder: Path) -> None:
    mine = AgentSocket(folder)
    until(lambda: sockets(folder))
    mine.saved(checkpoint(1), 1.0)
    mine.close()
    assert not mine._thread.is_alive() and list(folder.iterdir()) == []


def test_several_processes_have_a_socket_each(folder: Path, mine: AgentSocket) -> None:
    other = AgentSocket(folder)
    assert until(lambda: len(sockets(folder)) == 2)
    other.close()
    assert len(sockets(folder)) == 1


def test_who_is_no_owner_may_connect(folder: Path, mine: AgentSocket) -> None:
    """The agent is root without the right to pass over modes."""
    made = until(lambda: sockets(folder))[0]
    assert stat.S_IMODE(made.stat().st_mode) & 0o666 == 0o666


def test_a_socket_that_was_lost_is_made_again(folder: Path, mine: AgentSocket) -> None:
    until(lambda: sockets(folder))[0].unlink()
    with agent(folder) as node:
        node.say(type="notice", deadline=time.time() + 30, reason="why", grace=30)
        assert until(mine.noticed)


KILLED = "import sys, time; from pathlib import Path; from sublet_sdk import AgentSocket; AgentSocket(Path(sys.argv[1])); time.sleep(60)"


def test_what_a_killed_process_left_is_cleared_away(folder: Path) -> None:
    """A living one's stays."""
    with subprocess.Popen([sys.executable, "-c", KILLED, str(folder)]) as process:
        left = until(lambda: sockets(folder))[0]
        process.send_signal(signal.SIGKILL)
    alive = AgentSocket(folder)
    third = None
    try:
        kept = until(lambda: [each for each in sockets(folder) if each != left])[0]
        until(lambda: left not in sockets(folder))
        third = AgentSocket(folder)
        until(lambda: len(sockets(folder)) == 2)
        assert kept in sockets(folder)
    finally:
        alive.close()
        if third is not None:
            third.close()


def test_a_folder_that_is_not_there_yet_or_never(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Training goes on; said once."""
    mine = AgentSocket(folder / "later")
    until(lambda: caplog.records)
    assert mine.noticed() == ""
    (folder / "later").mkdir()
    until(lambda: sockets(folder / "later"))
    mine.close()
    (folder / "later").rmdir()
    assert len([record for record in caplog.records if "cannot be heard" in record.message]) == 1


def test_a_full_disk_is_waited_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket needs an inode; once there is room it is there."""
    full = True
    bind = socket.socket.bind

    def binding(self: socket.socket, address: Any) -> None:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        bind(self, address)

    monkeypatch.setattr(socket.socket, "bind", binding)
    mine = AgentSocket(folder)
    mine.saved(checkpoint(1), 1.0)
    until(lambda: mine._trouble)
    full = False
    with agent(folder) as node:
        assert node.hear()["id"] == "id-1"
    mine.close()


def test_a_child_keeps_no_socket_on_which_nobody_answers(folder: Path, mine: AgentSocket) -> None:
    """A loader of data that outlives its parent, for one."""
    until(lambda: sockets(folder))
    child = os.fork()
    if child == 0:
        descriptors = {each._listener.fileno() for each in [mine] if each._listener}
        mine.close()
        os._exit(0 if descriptors == {-1} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with agent(folder) as node:
        node.say(type="notice", deadline=time.time() + 30, reason="why", grace=30)
        assert until(mine.noticed)
