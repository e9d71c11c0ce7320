"""Pods' socket folders as a kubelet makes them, and what listens there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def socket_folder(pods: Path, uid: str) -> Path:
    """The volume of a pod, made where it is not there."""
    folder = pods / uid / "volumes" / "kubernetes.io~empty-dir" / "sublet-socket"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def listening(folder: Path, name: str, backlog: int = 8) -> Iterator[socket.socket]:
    """A socket that listens there, whose accept waits 20 s at most. By a short path: the kernel takes no long ones."""
    here = os.open(folder, os.O_RDONLY)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(20)
        made.bind(f"/proc/self/fd/{here}/{name}")
        made.listen(backlog)
        yield made
    finally:
        made.close()
        os.close(here)


@contextmanager
def other_process(folder: Path) -> Iterator[int]:
    """One that listens there, by its number; it ends with the block."""
    serving = "import sys; from tests.agent.podsocket_cases import serve; serve(sys.argv[1])"
    command = [sys.executable, "-c", serving, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"listening\n"
        try:
            yield other.pid
        finally:
            other.communicate(timeout=20)


def serve(folder: str) -> None:
    """As a program of its own: listens until its input ends."""
    with listening(Path(folder), "x.sock"):
        print("listening", flush=True)
        sys.stdin.read()
