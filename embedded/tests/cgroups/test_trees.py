"""Trees of cgroups, over directories that only look like them."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from embedded.cgroups import trees


def test_this_process_and_those_of_other_pid_namespaces_are_no_members(tmp_path: Path) -> None:
    """The kernel shows the latter as 0, and a kill of 0 is a kill of our own process group."""
    (tmp_path / "pod").mkdir()
    (tmp_path / "cgroup.procs").write_text(f"0\n{os.getpid()}\n")
    (tmp_path / "pod" / "cgroup.procs").write_text("0\n")
    assert trees.members([tmp_path]) == set()
    assert trees.kill([tmp_path])


def test_everything_inside_is_killed_once(tmp_path: Path) -> None:
    """The kernel's own switch is used where there is one, and never made where there is none."""
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "cgroup.kill").write_text("")
    victim = subprocess.Popen(["/bin/sleep", "60"])
    (tmp_path / "old" / "cgroup.procs").write_text(f"{victim.pid}\n")
    assert not trees.kill([tmp_path / "old", tmp_path / "new"])
    assert victim.wait(20) == -signal.SIGKILL
    assert (tmp_path / "new" / "cgroup.kill").read_text() == "1"
    assert not (tmp_path / "old" / "cgroup.kill").exists()
