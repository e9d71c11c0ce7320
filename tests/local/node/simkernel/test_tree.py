"""A tree of plain files: born whole, and what an earlier run left is ended by pid and start time."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from pathlib import Path

import pytest

from agent.core.observe.layout import CgroupDriver
from agent.edge.discovery import find_layout
from local.node.ownership import started_ticks
from local.node.simkernel import tree
from local.node.simkernel.table import ProcessTable
from local.node.simkernel.tree import SimulatedCgroups, make_root, simulated_layout
from model.fault import ConfigurationFault


def made(root: Path, driver: CgroupDriver = CgroupDriver.CGROUPFS) -> SimulatedCgroups:
    make_root(root, "0-1")
    cgroups = SimulatedCgroups(simulated_layout(root, "t", driver), ProcessTable())
    cgroups.create(f"{cgroups.layout.kubepods}/besteffort")
    return cgroups


@pytest.mark.parametrize("driver", CgroupDriver)
def test_the_agent_takes_it_for_cgroup_v2(tmp_path: Path, driver: CgroupDriver) -> None:
    """By nothing but what is there."""
    cgroups = made(tmp_path, driver)
    layout = find_layout(tmp_path, cgroups.layout.kubepods)
    assert (layout.version, layout.driver) == (2, driver)


def test_a_directory_with_other_things_is_refused(tmp_path: Path) -> None:
    """It is somebody's; and one made before is taken again."""
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(ConfigurationFault, match="other things"):
        make_root(tmp_path, "0")
    make_root(tmp_path / "new", "0")
    make_root(tmp_path / "new", "0")


def test_a_number_that_is_anothers_by_now_is_left_alone(tmp_path: Path) -> None:
    """Of two processes written down, the one with another start time lives on."""
    cgroups = made(tmp_path)
    folder = Path(cgroups.layout.directory("", cgroups.layout.kubepods))
    ours, other = (subprocess.Popen(["/bin/sleep", "60"]) for _ in range(2))
    try:
        (folder / tree.MEMBERS).write_text(f"{ours.pid}:{started_ticks(ours.pid)}\n{other.pid}:1\n")
        assert asyncio.run(tree.sweep(tmp_path / "sublet-t")) == []
        assert ours.wait(20) == -signal.SIGKILL
        assert other.poll() is None
        assert not (tmp_path / "sublet-t").exists()
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()


def test_what_joined_a_moment_ago_is_a_member(tmp_path: Path) -> None:
    """Of a cgroup that this process made, though nobody has written it down; not of one found there."""
    cgroups = made(tmp_path)
    path = cgroups.layout.kubepods
    process = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
    try:
        for file in cgroups.procs_files(path):
            Path(file).write_text(f"{process.pid}:{started_ticks(process.pid)}\n")
        assert cgroups.members(path) == {process.pid}
        assert SimulatedCgroups(cgroups.layout, ProcessTable()).members(path) == set()
        assert asyncio.run(cgroups.remove(cgroups.layout.prefix))
        assert process.wait(20) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()


def test_a_number_that_joined_and_is_anothers_by_now_is_left_alone(tmp_path: Path) -> None:
    """A live session whose leader began at another time than the one that asked in."""
    cgroups = made(tmp_path)
    path = cgroups.layout.kubepods
    process = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
    try:
        for file in cgroups.procs_files(path):
            Path(file).write_text(f"{process.pid}:1\n")
        assert cgroups.members(path) == set()
        assert asyncio.run(cgroups.remove(cgroups.layout.prefix))
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
