"""A pod's sockets on real file systems: what a hostile pod puts there instead is refused, and nothing is waited for."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.files.podsocket import NotThePods, SocketFolder, has_folder, is_member
from tests.agent.podsocket_cases import listening, other_process, socket_folder


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Path]:
    socket_folder(tmp_path, "a")
    yield tmp_path


def test_the_volume_is_found_by_the_pods_uid(pods: Path) -> None:
    assert has_folder(pods, "a") and not has_folder(pods, "b")
    assert not has_folder(pods / "none", str(pods / "a")) and not has_folder(pods / "none", "../a")
    with pytest.raises(FileNotFoundError):
        SocketFolder(pods, "b")


def test_a_socket_is_connected_to_and_tells_its_process(pods: Path) -> None:
    with listening(socket_folder(pods, "a"), "x.sock") as server, SocketFolder(pods, "a") as folder:
        assert folder.names() == ("x.sock",)
        connection, process = folder.connect("x.sock")
        assert process == os.getpid() and not connection.getblocking()
        taken, _ = server.accept()
        taken.sendall(b"here")
        taken.close()
        connection.setblocking(True)
        assert connection.recv(10) == b"here"
        connection.close()


def link_elsewhere(folder: Path) -> None:
    (folder.parent / "elsewhere").symlink_to("/")
    (folder / "x.sock").symlink_to(folder.parent / "other.sock")


def link_to_our_own(folder: Path) -> None:
    (folder / "x.sock").symlink_to("/proc/self/fd/0")


NO_SOCKETS: dict[str, Callable[[Path], None]] = {
    "a link": link_elsewhere,
    "a link through /proc": link_to_our_own,
    "a pipe, which whoever opens it waits at": lambda folder: os.mkfifo(folder / "x.sock"),
    "a file": lambda folder: (folder / "x.sock").write_text("x"),
    "a folder": lambda folder: (folder / "x.sock").mkdir(),
}


@pytest.mark.parametrize("make", NO_SOCKETS.values(), ids=NO_SOCKETS)
def test_what_is_no_socket_is_refused(pods: Path, make: Callable[[Path], None]) -> None:
    """Also where the link leads to a socket that listens: another pod's."""
    with listening(socket_folder(pods, "a").parent, "other.sock"):
        make(socket_folder(pods, "a"))
        with SocketFolder(pods, "a") as folder, pytest.raises(NotThePods):
            folder.connect("x.sock")


@pytest.mark.parametrize("part", ["a", "volumes", "kubernetes.io~empty-dir", "sublet-socket"])
def test_no_link_is_followed_on_the_way(pods: Path, tmp_path: Path, part: str) -> None:
    place = next(path for path in (socket_folder(pods, "a"), *socket_folder(pods, "a").parents) if path.name == part)
    place.rename(place.with_name("moved"))
    place.symlink_to(place.with_name("moved"))
    with pytest.raises(OSError):
        SocketFolder(pods, "a")


def test_a_socket_on_which_nobody_listens(pods: Path) -> None:
    with listening(socket_folder(pods, "a"), "x.sock"):
        pass
    with SocketFolder(pods, "a") as folder, pytest.raises(ConnectionRefusedError):
        folder.connect("x.sock")


def test_a_full_backlog_is_not_waited_for(pods: Path) -> None:
    with listening(socket_folder(pods, "a"), "x.sock", backlog=0), SocketFolder(pods, "a") as folder:
        kept, _ = folder.connect("x.sock")
        with pytest.raises(BlockingIOError):
            folder.connect("x.sock")
        kept.close()


def test_a_folder_with_thousands_of_entries_is_looked_at_in_part(pods: Path) -> None:
    for number in range(2000):
        (socket_folder(pods, "a") / f"{number}.sock").touch()
    with SocketFolder(pods, "a") as folder:
        assert len(folder.names()) <= 64


def test_names_that_are_being_made_or_are_no_sockets_are_left_alone(pods: Path) -> None:
    for name in (".x.sock", "notice", "x.sock.new", "y.sock"):
        (socket_folder(pods, "a") / name).touch()
    with SocketFolder(pods, "a") as folder:
        assert folder.names() == ("y.sock",)


def open_now() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def test_a_descriptor_that_is_handed_over_is_not_taken(pods: Path) -> None:
    """From Linux 6.16 on the sender fails; before that it is dropped, and nothing of ours has it open."""
    with listening(socket_folder(pods, "a"), "x.sock") as server, SocketFolder(pods, "a") as folder:
        connection, _ = folder.connect("x.sock")
        taken, _ = server.accept()
        before = open_now()
        try:
            socket.send_fds(taken, [b"x"], [0])
        except PermissionError:
            assert tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 16)
        else:
            connection.setblocking(True)
            assert connection.recv(10) == b"x"
        assert open_now() <= before
        taken.close()
        connection.close()


def test_a_member_is_found_however_deep_and_nobody_else_is(tmp_path: Path) -> None:
    deep = tmp_path / "pod" / "container" / "own" / "cgroup"
    deep.mkdir(parents=True)
    (deep / "cgroup.procs").write_text("7\n42\n")
    (tmp_path / "pod" / "container" / "cgroup.procs").write_text("")
    assert is_member(tmp_path / "pod", 42)
    assert not is_member(tmp_path / "pod", 4)
    assert not is_member(tmp_path / "gone", 42)
    # What this namespace cannot see has the number 0, in every cgroup alike.
    (deep / "cgroup.procs").write_text("0\n")
    assert not is_member(tmp_path / "pod", 0)


def test_who_listens_is_who_began_to_listen(pods: Path) -> None:
    """Another process is told by its own number."""
    with other_process(socket_folder(pods, "a")) as number, SocketFolder(pods, "a") as folder:
        connection, process = folder.connect("x.sock")
        assert process == number != os.getpid()
        connection.close()


CONNECT = """
import sys
from pathlib import Path
from agent.files.podsocket import SocketFolder
with SocketFolder(Path(sys.argv[1]), "a") as folder:
    for name in folder.names():
        try:
            folder.connect(name)[0].close()
            print(name)
        except PermissionError:
            pass
"""
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, PR_CAPBSET_DROP = 1, 2, 24


def without_passing_over_modes() -> None:
    """As the DaemonSet's agent: root, without the capabilities that open what modes close. Before exec."""
    libc = ctypes.CDLL(None)
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_an_agent_without_capabilities_connects_where_the_pod_lets_everybody(pods: Path) -> None:
    """As sublet_sdk does; a socket with the usual mode is another user's alone."""
    folder = socket_folder(pods, "a")
    with listening(folder, "open.sock"), listening(folder, "usual.sock"):
        (folder / "open.sock").chmod(0o666)
        (folder / "usual.sock").chmod(0o755)
        for each in folder.iterdir():
            os.chown(each, 65534, 65534)
        done = subprocess.run(
            [sys.executable, "-c", CONNECT, str(pods)],
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=without_passing_over_modes,
        )
    assert done.stdout.split() == ["open.sock"]
