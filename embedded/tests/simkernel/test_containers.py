"""Containers as real processes under the simulating program: the same life as under a kernel."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import embedded
from embedded.cgroups.ceilings import Ceiling
from embedded.simkernel.process_table import ProcessTable
from embedded.simkernel.tree import SimulatedCgroups

HOLD = "import sys; held = bytearray(b'x' * (100 << 20)); sys.stdin.read()"
DAEMON = """
import os, sys
if os.fork() == 0:
    os.setsid()
    os.execv("/bin/sh", ["sh", "-c", "sleep 1000 & sleep 1000"])
sys.stdin.read()
"""
ORPHAN = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.execv("/bin/sleep", ["sleep", "1000"])
sys.stdin.read()
"""
SPIN = "import os\nos.fork()\nwhile True: pass"


def begin(cgroups: SimulatedCgroups, path: str, code: str, ceiling: Ceiling) -> subprocess.Popen[bytes]:
    """As the node begins a container."""
    cgroups.create(path)
    cgroups.set_container(path, ceiling)
    # By builtins only: what the shell forks would be a member too.
    enter = 'enter() { read -r stat < /proc/$$/stat; set -- $stat; for f in $FILES; do echo "$$:${22}" >> "$f"; done; }'
    enter += '; enter; exec "$@"'
    command = ["sh", "-c", enter, "sh", sys.executable, "-c", code]
    files = {"FILES": " ".join(cgroups.procs_files(path)), "PATH": os.environ["PATH"]} | cgroups.mark(path)
    return subprocess.Popen(command, env=files, start_new_session=True, stdin=subprocess.PIPE)


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "never came true"
        time.sleep(0.02)


@pytest.fixture
def path(simulated: SimulatedCgroups) -> str:
    return f"{simulated.layout.kubepods}/besteffort/pod1/c1"


def test_out_of_memory(simulated: SimulatedCgroups, path: str) -> None:
    """Killed, and counted by the time its end is seen."""
    process = begin(simulated, path, HOLD, Ceiling(2, memory_limit_bytes=50 << 20))
    assert process.wait(30) == -signal.SIGKILL
    assert simulated.oom_kills(path) == 1
    assert asyncio.run(simulated.remove(simulated.layout.prefix))


def test_a_quota_holds_over_time(simulated: SimulatedCgroups, path: str) -> None:
    """Two that would use all they get have a fifth of a CPU together, and run again once that is lifted."""
    process = begin(simulated, path, SPIN, Ceiling(2, cpu_quota_us=20_000))
    until(lambda: len(simulated.members(path)) == 2)
    until(lambda: (use := simulated.use(path)) and use.cpu_ns > 200_000_000)
    first, began = simulated.use(path), time.monotonic()
    until(lambda: time.monotonic() - began > 2)
    last = simulated.use(path)
    assert first and last
    # However slow the machine, nobody gets more than the quota and what one period allows.
    assert last.cpu_ns - first.cpu_ns < (time.monotonic() - began) * 0.2e9 + 0.3e9
    simulated.write("", path, "cpu.max", "max 100000")
    before = last.cpu_ns
    until(lambda: (use := simulated.use(path)) and use.cpu_ns > before + 600_000_000)
    assert asyncio.run(simulated.remove(simulated.layout.prefix))
    assert process.wait(20) == -signal.SIGKILL


def test_removal_ends_what_left_its_session(simulated: SimulatedCgroups, path: str) -> None:
    """A daemon of a container ends with it."""
    process = begin(simulated, path, DAEMON, Ceiling(2))
    until(lambda: len(simulated.members(path)) >= 3)
    inside = simulated.members(path)
    assert asyncio.run(simulated.remove(simulated.layout.prefix))
    process.wait(20)
    until(lambda: not any(_lives(pid) for pid in inside))


def test_removal_ends_a_daemon(simulated: SimulatedCgroups, path: str) -> None:
    """Fork, setsid, fork, all at once: nothing but its environment tells whose it is."""
    process = begin(simulated, path, ORPHAN, Ceiling(2))
    until(lambda: any(_orphaned(pid, process.pid) for pid in simulated.members(path)))
    inside = simulated.members(path)
    assert asyncio.run(simulated.remove(simulated.layout.prefix))
    process.wait(20)
    until(lambda: not any(_lives(pid) for pid in inside))


def _orphaned(pid: int, main: int) -> bool:
    """Neither the main process nor a child of one of the container's."""
    process = ProcessTable().look(pid)
    parent = ProcessTable().look(process.parent) if process else None
    return pid != main and process is not None and process.parent != main and (not parent or parent.parent != main)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_a_node_that_dies_takes_its_containers_with_it(tmp_path: Path) -> None:
    """kill -9: the simulating program is told by the kernel, and nobody stays, stopped or not."""
    code = f"""
import asyncio, os, pathlib, sys
from embedded.node.kernels.kernels import Simulator, open_cgroups
from embedded.node.settings import Kernel, NodeSettings
from embedded.node.objects.pod_resources import Ceiling
from embedded.tests.simkernel.test_containers import SPIN, begin
here = pathlib.Path({str(tmp_path)!r})
settings = NodeSettings(here, "n", "t", here, here, here, here, cgroup_root=here / "kernel", kernel=Kernel.SIMULATED)
async def main():
    cgroups = open_cgroups(settings)
    async with Simulator(settings):
        begin(cgroups, cgroups.layout.kubepods + "/pod1/c1", SPIN, Ceiling(2, cpu_quota_us=5_000))
        while len(cgroups.members(cgroups.layout.prefix)) < 2:
            await asyncio.sleep(0.02)
        print(*cgroups.members(cgroups.layout.prefix), flush=True)
        await asyncio.sleep(1000)
asyncio.run(main())
"""
    node = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=Path(embedded.__file__).parents[1]
    )
    assert node.stdout is not None
    inside = [int(word) for word in node.stdout.readline().split()]
    assert len(inside) == 2
    node.kill()
    node.wait()
    until(lambda: not any(_lives(pid) for pid in inside))
