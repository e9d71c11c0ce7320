"""What a run leaves in the kernel is found and removed, and nothing else is."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.cgroups.ownership import started_ticks
from embedded.tests.dummies import alive, until
from local.leftovers import CGROUP_ROOT, NodeCgroups, end_processes

CPU = CGROUP_ROOT / "cpu"
needs_cgroups = pytest.mark.skipif(
    os.geteuid() != 0 or not (CPU / "cgroup.procs").exists(), reason="needs root and a writable cgroup v1 hierarchy"
)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["/bin/sleep", "60"])
    yield process
    process.kill()
    process.wait()


def trees(root: Path, id_: str = "a") -> NodeCgroups:
    return NodeCgroups((id_,), root / "simulated", root)


def made(root: Path, *names: str) -> None:
    for name in names:
        (root / name).mkdir(parents=True)


def test_cgroups_are_found_in_every_hierarchy_by_their_whole_name(tmp_path: Path) -> None:
    """v1 has a directory below each controller, v2 one at the top; longer names are others'."""
    made(tmp_path, "cpu/sublet-a/kubepods", "memory/sublet-a", "sublet-a", "cpu/sublet-ab", "cpu/other/sublet-a")
    made(tmp_path, "sublet_a.slice", "sublet-a.slice", "simulated/a/sublet-a/kubepods")
    assert [str(path.relative_to(tmp_path)) for path in trees(tmp_path).cgroups()] == [
        "cpu/sublet-a",
        "memory/sublet-a",
        "sublet-a",
        "sublet_a.slice",
        "simulated/a/sublet-a",
    ]


def test_sweep_removes_nested_directories_and_leaves_others(tmp_path: Path) -> None:
    """From the leaves up; another run's tree stays."""
    made(tmp_path, "cpu/sublet-a/kubepods/besteffort/pod1", "cpu/sublet-b/kubepods")
    assert asyncio.run(trees(tmp_path).sweep()) == []
    assert not (tmp_path / "cpu/sublet-a").exists()
    assert (tmp_path / "cpu/sublet-b/kubepods").exists()


def test_sweep_tells_what_resists(tmp_path: Path) -> None:
    """A directory that cannot be removed is returned once the bound has passed."""
    made(tmp_path, "cpu/sublet-a")
    (tmp_path / "cpu/sublet-a/file").write_text("")
    assert asyncio.run(trees(tmp_path).sweep(bound_seconds=0.1)) == [tmp_path / "cpu/sublet-a"]


@pytest.mark.kernel
@needs_cgroups
def test_sweep_ends_the_processes_of_real_cgroups(sleeper: subprocess.Popen[bytes]) -> None:
    """A process in a nested cgroup is found, killed, and its cgroups are gone."""
    found = trees(CGROUP_ROOT, f"test-{secrets.token_hex(3)}")
    name = f"sublet-{found.ids[0]}"
    made(CPU / name, "kubepods/pod1")
    (CPU / name / "kubepods/pod1/cgroup.procs").write_text(str(sleeper.pid))
    assert found.processes() == {sleeper.pid}
    assert asyncio.run(found.sweep()) == []
    assert until(lambda: not alive(sleeper.pid))
    assert found.cgroups() == []


def test_programs_of_a_killed_run_are_ended_by_pid_and_start_time() -> None:
    """A process that ignores SIGTERM is killed at the bound; one that got the pid of an ended program is not ours."""
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    ours, other = (subprocess.Popen([sys.executable, "-c", code, "/the/run/directory"]) for _ in range(2))
    try:
        started = {each.pid: started_ticks(each.pid) or 0 for each in (ours, other)}
        started[other.pid] -= 1
        asyncio.run(end_processes({**started, 0: 0, -1: 0}, bound_seconds=0.1))
        assert ours.wait(10) == -signal.SIGKILL
        assert alive(other.pid)
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()
