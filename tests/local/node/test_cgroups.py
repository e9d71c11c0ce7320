"""Real cgroups of this machine: values arrive, everything inside dies, everything is removed, nothing else is touched."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from agent.core.observe.layout import CgroupDriver
from local.node import ownership
from local.node.cgroups import Cgroups, UnsuitableKernel, discover
from local.node.ownership import Owner
from local.node.resources import Ceiling
from model.fault import ConfigurationFault, KernelFault

pytestmark = pytest.mark.kernel

DEAD = Owner(2**22 - 1, 1)
TREE = "for i in 1 2 3; do sh -c 'trap \"\" TERM; sleep 1000 & sleep 1000' & done; wait"


@pytest.fixture
def inhabit(cgroups: Cgroups) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Start a tree of processes that ignore SIGTERM inside a cgroup."""
    started: list[subprocess.Popen[bytes]] = []

    def start(path: str) -> subprocess.Popen[bytes]:
        cgroups.create(path)
        enter = 'for f in "$@"; do echo 0 > "$f"; done; ' + TREE
        process = subprocess.Popen(["sh", "-c", enter, "sh", *cgroups.procs_files(path)], start_new_session=True)
        started.append(process)
        while len(cgroups.members(path)) < 10:
            assert process.poll() is None
        return process

    yield start
    for process in started:
        process.wait(20)


def test_values(cgroups: Cgroups) -> None:
    """The kernel holds what was written, in every hierarchy there is."""
    path = f"{cgroups.layout.kubepods}/burstable/podx"
    cgroups.create(path)
    cgroups.set_ceiling(path, Ceiling(512, 50_000, 64 << 20))
    read = {
        knob: (cgroups.read(controller, path, knob) or "").strip()
        for controller, knob in (
            ("cpu", "cpu.shares"),
            ("cpu", "cpu.cfs_quota_us"),
            ("cpu", "cpu.cfs_period_us"),
            ("memory", "memory.limit_in_bytes"),
        )
    }
    assert read == {
        "cpu.shares": "512",
        "cpu.cfs_quota_us": "50000",
        "cpu.cfs_period_us": "100000",
        "memory.limit_in_bytes": str(64 << 20),
    }
    for controller in cgroups.layout.controllers:
        assert Path(cgroups.layout.directory(controller, path)).is_dir()


def test_a_refused_value_is_named(cgroups: Cgroups) -> None:
    """The fault says which file and which value."""
    cgroups.create(cgroups.layout.kubepods)
    with pytest.raises(KernelFault, match=r"cpu\.cfs_quota_us: cannot write 1:"):
        cgroups.write("cpu", cgroups.layout.kubepods, "cpu.cfs_quota_us", 1)


def test_kill_and_remove(cgroups: Cgroups, inhabit: Callable[[str], subprocess.Popen[bytes]]) -> None:
    """Grandchildren that ignore SIGTERM die too; nested cgroups go with their parent."""
    process = inhabit(f"{cgroups.layout.kubepods}/podx/c1")
    assert asyncio.run(cgroups.remove(cgroups.layout.prefix))
    assert process.wait(20) == -signal.SIGKILL
    assert not cgroups.exists(cgroups.layout.prefix)


def test_foreign_cgroup(cgroups: Cgroups, inhabit: Callable[[str], subprocess.Popen[bytes]]) -> None:
    """A neighbour whose name begins like ours keeps its processes."""
    neighbour = Cgroups(discover(Path("/sys/fs/cgroup"), f"{cgroups.layout.id}-neighbour"))
    neighbour.create(neighbour.layout.kubepods)
    victim = subprocess.Popen(["sleep", "1000"])
    try:
        for file in neighbour.procs_files(neighbour.layout.kubepods):
            Path(file).write_text(str(victim.pid))
        inhabit(cgroups.layout.kubepods)
        assert asyncio.run(ownership.release(cgroups))
        assert victim.poll() is None
        assert neighbour.members(neighbour.layout.kubepods) == {victim.pid}
    finally:
        victim.kill()
        victim.wait()
        asyncio.run(neighbour.remove(neighbour.layout.prefix))


def test_leftovers_of_a_dead_owner(cgroups: Cgroups, inhabit: Callable[[str], subprocess.Popen[bytes]]) -> None:
    """They are killed and removed, and the prefix changes hands."""
    cgroups.create(f"{cgroups.layout.prefix}/{DEAD.claim}")
    process = inhabit(f"{cgroups.layout.kubepods}/besteffort/podx/c1")
    killed = asyncio.run(ownership.take(cgroups, ownership.this_process()))
    assert killed == 10
    assert process.wait(20) == -signal.SIGKILL
    assert not cgroups.exists(cgroups.layout.kubepods)
    assert ownership.owners(cgroups) == [ownership.this_process()]


def test_living_owner(cgroups: Cgroups) -> None:
    """A prefix that a running process holds is refused and left as it is."""
    other = subprocess.Popen(["sleep", "1000"])
    try:
        owner = Owner(other.pid, ownership.started_ticks(other.pid) or 0)
        cgroups.create(f"{cgroups.layout.prefix}/{owner.claim}")
        cgroups.create(cgroups.layout.kubepods)
        with pytest.raises(ConfigurationFault, match=f"pid {other.pid}"):
            asyncio.run(ownership.take(cgroups, ownership.this_process()))
        assert ownership.owners(cgroups) == [owner] and cgroups.exists(cgroups.layout.kubepods)
    finally:
        other.kill()
        other.wait()


def test_recycled_pid(cgroups: Cgroups) -> None:
    """The pid of a dead owner may belong to somebody else by now: the start time tells."""
    cgroups.create(f"{cgroups.layout.prefix}/owner-{os.getppid()}-1")
    assert asyncio.run(ownership.take(cgroups, ownership.this_process())) == 0


def test_unclaimed_tree(cgroups: Cgroups) -> None:
    """A kubepods tree that nobody claims is not ours to remove."""
    cgroups.create(cgroups.layout.kubepods)
    with pytest.raises(ConfigurationFault, match="another --id"):
        asyncio.run(ownership.take(cgroups, ownership.this_process()))
    assert cgroups.exists(cgroups.layout.kubepods)


@pytest.mark.parametrize("driver", CgroupDriver)
def test_use_is_counted(cgroups: Cgroups, driver: CgroupDriver) -> None:
    """CPU time and memory of whoever is inside; nothing of a cgroup that is gone."""
    named = Cgroups(msgspec.structs.replace(cgroups.layout, driver=driver))
    path = f"{named.layout.kubepods}/c1"
    assert named.use(path) is None
    named.create(path)
    code = "import sys; held = bytearray(b'x' * (20 << 20)); [None for _ in range(10**6)]; input()"
    process = subprocess.Popen([sys.executable, "-c", f"input()\n{code}"], stdin=subprocess.PIPE)
    try:
        for file in named.procs_files(path):
            Path(file).write_text(str(process.pid))
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        deadline = time.monotonic() + 20
        while not ((use := named.use(path)) and use.working_set_bytes > 20 << 20 and use.cpu_ns > 1_000_000):
            assert time.monotonic() < deadline, use
    finally:
        process.kill()
        process.wait()
        asyncio.run(named.remove(named.layout.prefix))


def test_what_a_user_may_not_write(tmp_path: Path) -> None:
    """Where cgroups cannot be made, the fault is the machine's, not the configuration's."""
    for controller in ("cpu", "memory"):
        (tmp_path / controller).mkdir()
        (tmp_path / controller / "cgroup.procs").write_text("")
    if os.geteuid() != 0:
        with pytest.raises(UnsuitableKernel, match="not writable"):
            discover(tmp_path, "x")
    else:
        assert discover(tmp_path, "x").controllers == ("cpu", "memory")


def test_no_cgroups(tmp_path: Path) -> None:
    """A machine without cgroups is told apart from one with a fault."""
    with pytest.raises(UnsuitableKernel, match="cpu, memory"):
        discover(tmp_path, "x")
