"""Pods' cgroups on a live kernel, made as kubelet makes them, v1 or v2, for recordings and for tests.

Whatever was made is removed by `remove`, with the processes in it.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from embedded.cgroups import trees

MOUNT = Path("/sys/fs/cgroup")
V1_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "blkio", "pids", "unified")
V2_CONTROLLERS = ("cpuset", "cpu", "io", "memory", "pids")


class LiveTree:
    """Cgroups below `top`, such as `/sublet-record`: a name of ours alone where kubelet's own may be there too."""

    def __init__(self, top: str, mount: Path = MOUNT) -> None:
        self.v2 = (mount / "cgroup.controllers").exists()
        self._mounts = [mount] if self.v2 else [mount / name for name in V1_CONTROLLERS if (mount / name).is_dir()]
        self.top = top.strip("/")
        self._processes: list[subprocess.Popen[bytes]] = []

    def make(self, cgroup: str) -> None:
        """The cgroup and its parents. A v2 parent hands its controllers down and can hold no process from then on."""
        for mount in self._mounts:
            folder = mount
            for part in cgroup.strip("/").split("/"):
                if self.v2:
                    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in V2_CONTROLLERS))
                folder = folder / part
                folder.mkdir(exist_ok=True)
                if mount.name == "cpuset":
                    _inherit(folder)

    def folder(self, cgroup: str, controller: str = "cpu") -> Path:
        """Where the controller keeps that cgroup's files; v2 has one place for all."""
        mount = self._mounts[0] if self.v2 else self._mounts[0].parent / controller
        return mount / cgroup.strip("/")

    def run(self, cgroup: str, code: str, *arguments: str) -> subprocess.Popen[bytes]:
        """A Python process that runs `code` once it is in the cgroup."""
        command = [sys.executable, "-S", "-c", f"input()\n{code}", *arguments]
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
        self._processes.append(process)
        for mount in self._mounts:
            (mount / cgroup.strip("/") / "cgroup.procs").write_text(str(process.pid))
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill and reap: until then it is a member of its cgroup."""
        process.kill()
        process.wait()

    def remove(self) -> None:
        """End everything and remove the cgroups. Raises RuntimeError where some resist."""
        for process in self._processes:
            self.end(process)
        tops = [mount / self.top for mount in self._mounts]
        remaining = asyncio.run(trees.kill_and_remove(tops, 20))
        if remaining:
            raise RuntimeError(f"not removed: {', '.join(map(str, remaining))}")


def _inherit(folder: Path) -> None:
    """A v1 cpuset takes no process before it has CPUs and memory nodes."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        (folder / name).write_text((folder.parent / name).read_text())
