"""A run directory is its owner's alone, has one holder, and forgets a run but for its logs."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from local.rundir import Endpoints, RunDirectory, read_endpoints
from model.fault import ConfigurationFault

ENDPOINTS = Endpoints(id="abc123", directory="/x", kubeconfig="/x/kubeconfig", node="n")


def test_a_new_directory_is_closed_to_others(tmp_path: Path) -> None:
    """Mode 0700, also for what lies in it."""
    with RunDirectory(tmp_path / "run") as run:
        for directory in (run.path, run.keys, run.logs):
            assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_second_holder_is_refused_in_one_line(tmp_path: Path) -> None:
    """Also from another process; once the first has left, it may."""
    code = "import sys; from pathlib import Path; from local.rundir import RunDirectory\n"
    code += "with RunDirectory(Path(sys.argv[1])): pass"
    argv = [sys.executable, "-c", code, str(tmp_path / "run")]
    with RunDirectory(tmp_path / "run"):
        with pytest.raises(ConfigurationFault, match="another `sublet up` is running here"):
            RunDirectory(tmp_path / "run").__enter__()
        assert subprocess.run(argv, capture_output=True).returncode != 0
    assert subprocess.run(argv, capture_output=True).returncode == 0


def test_leaving_keeps_logs_and_strangers_and_nothing_else(tmp_path: Path) -> None:
    """Keys, kubeconfig and endpoints go; files that are not ours stay."""
    with RunDirectory(tmp_path / "run") as run:
        run.publish(ENDPOINTS)
        run.kubeconfig.write_text("secret")
        run.log_of("agent").write_text("a line")
        (run.path / "notes").write_text("a person's")
    assert sorted(entry.name for entry in run.path.iterdir()) == ["lock", "logs", "notes"]


def test_a_run_that_was_killed_is_known_to_the_next(tmp_path: Path) -> None:
    """Its endpoints are read before they are forgotten."""
    run = RunDirectory(tmp_path / "run").__enter__()
    run.publish(ENDPOINTS)
    assert run._lock is not None
    run._lock.close()  # as the kernel does when the process is killed
    with RunDirectory(tmp_path / "run") as following:
        assert following.previous == ENDPOINTS
        assert not following.endpoints.exists()


def test_a_directory_that_others_use_is_not_closed_but_refused(tmp_path: Path) -> None:
    """`--dir /tmp` must not change /tmp."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    (shared / "something").write_text("")
    with pytest.raises(ConfigurationFault, match="others may enter it"):
        RunDirectory(shared).__enter__()
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755


def test_a_path_too_long_for_a_socket_is_refused(tmp_path: Path) -> None:
    """Before anything starts, with what to do."""
    with pytest.raises(ConfigurationFault, match="too long for a unix socket"):
        RunDirectory(tmp_path / ("x" * 120)).__enter__()


def test_endpoints_are_read_back_and_their_absence_is_explained(tmp_path: Path) -> None:
    """A directory without a running cluster says how to start one."""
    with pytest.raises(ConfigurationFault, match="no embedded cluster runs here"):
        read_endpoints(tmp_path / "run")
    with RunDirectory(tmp_path / "run") as run:
        run.publish(ENDPOINTS)
        assert read_endpoints(run.path) == ENDPOINTS
        assert stat.S_IMODE(run.endpoints.stat().st_mode) == 0o600
