"""A best-effort tree below a throw-away name in this host's cgroup v1 hierarchies."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agent.core.observe.knobs import RootKnobs, cpuset_knob, memory_knob, pids_knob, quota_knob, shares_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob
from agent.files.controlfiles import ControlFiles

MOUNT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "pids")
_VOLATILE = ("procs", "tasks", "usage", "failcnt", "stat", "event_control", "pressure", "force_empty")

needs_v1 = pytest.mark.skipif(
    os.geteuid() != 0 or not all(os.access(MOUNT / each / "cgroup.procs", os.W_OK) for each in CONTROLLERS),
    reason="needs root and writable cgroup v1; run as root on a v1 host",
)
needs_two_cpus = pytest.mark.skipif(
    not Path("/sys/devices/system/cpu/cpu1").exists(), reason="needs CPUs 0 and 1; run on a larger machine"
)


class V1Tree:
    """kubepods/besteffort with pods and containers; every cgroup may hold processes."""

    def __init__(self) -> None:
        self.name = f"sublet-test-{secrets.token_hex(4)}"
        self.layout = Layout(f"/{self.name}/kubepods")
        self.root = self.layout.best_effort
        self.knobs = RootKnobs.of(self.layout)
        self.files = ControlFiles(MOUNT, lambda _knob, _texts: None)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.make("")

    def cgroup(self, below: str) -> str:
        """`podx/c` is a container of a best-effort pod, the empty string the root."""
        return f"{self.root}/{below}".rstrip("/")

    def make(self, below: str) -> None:
        """With its parents. A v1 cpuset is born empty; kubelet and runtime fill it from its parent's."""
        for controller in CONTROLLERS:
            folder = MOUNT / controller
            for part in self.cgroup(below).strip("/").split("/"):
                folder /= part
                folder.mkdir(exist_ok=True)
                for file in ("cpuset.cpus", "cpuset.mems") if controller == "cpuset" else ():
                    if not (folder / file).read_text().strip():
                        (folder / file).write_text((folder.parent / file).read_text())

    def make_in(self, controller: str, below: str) -> None:
        """In one hierarchy alone, as whoever is root in a container may."""
        (MOUNT / controller / self.cgroup(below).lstrip("/")).mkdir(parents=True)

    def rmdir(self, below: str) -> None:
        for controller in CONTROLLERS:
            top = MOUNT / controller / self.cgroup(below).lstrip("/")
            for folder in (*sorted(top.rglob("*/"), key=lambda path: -len(path.parts)), top):
                removed(folder)

    def quota(self, below: str = "") -> Knob:
        return quota_knob(self.layout, self.cgroup(below))

    def cpus(self, below: str = "") -> Knob:
        return cpuset_knob(self.layout, self.cgroup(below))

    def memory(self, below: str = "") -> Knob:
        return memory_knob(self.layout, self.cgroup(below))

    def pids(self, below: str = "") -> Knob:
        return pids_knob(self.layout, self.cgroup(below))

    def shares(self, below: str = "") -> Knob:
        return shares_knob(self.layout, self.cgroup(below))

    def say(self, texts: Mapping[Knob, object]) -> None:
        """As somebody else writes them, in this order."""
        for knob, text in texts.items():
            self.files.path(knob).write_text(f"{text}\n")

    def said(self, *knobs: Knob) -> list[str]:
        return [self.files.path(knob).read_text().strip() for knob in knobs]

    def run(self, below: str, code: str) -> subprocess.Popen[bytes]:
        """Python `code` in that cgroup of every hierarchy; it joins before it begins."""
        process = subprocess.Popen([sys.executable, "-c", f"input(); exec({code!r})"], stdin=subprocess.PIPE)
        self.processes.append(process)
        for controller in CONTROLLERS:
            folder = MOUNT / controller / self.cgroup(below).lstrip("/")
            (folder / "cgroup.procs").write_text(str(process.pid))
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()
        return process

    def snapshot(self) -> dict[str, bytes]:
        """Every control file of the tree that somebody may write, by path."""
        found: dict[str, bytes] = {}
        for controller in CONTROLLERS:
            for file in (MOUNT / controller / self.name).rglob("*"):
                steady = not any(word in file.name for word in _VOLATILE)
                if steady and file.is_file() and file.stat().st_mode & 0o200 and file.stat().st_mode & 0o400:
                    found[str(file)] = _content(file)
        return found

    def remove(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        for controller in CONTROLLERS:
            top = MOUNT / controller / self.name
            for folder in (*sorted(top.rglob("*/"), key=lambda path: -len(path.parts)), top):
                removed(folder)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        return str(error.errno).encode()


def removed(folder: Path) -> None:
    """A cgroup is busy for a moment after its last process died."""
    for _ in range(250):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError(f"{folder} could not be removed")


@pytest.fixture
def tree() -> Iterator[V1Tree]:
    made = V1Tree()
    yield made
    made.remove()
