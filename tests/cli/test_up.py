"""What `sublet up` tells a person to type can be typed as it stands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli.up import called, ready_text, simulated_text
from local.rundir import Endpoints, NodeEndpoints


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one `sublet` on PATH."""
    program = tmp_path / "bin" / "sublet"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    return program


@pytest.mark.parametrize(
    ("case", "program", "expected"),
    [
        ("found on PATH", "{bin}/sublet", "sublet"),
        ("the plugin's name", "kubectl-sublet", "kubectl-sublet"),
        ("in a virtual environment that is not active", ".venv/bin/sublet", ".venv/bin/sublet"),
        ("another one than PATH has", "/opt/sublet", "/opt/sublet"),
        ("as a module", "/src/cli/__main__.py", f"{sys.executable} -m cli"),
    ],
)
def test_the_command_as_it_was_called(installed: Path, case: str, program: str, expected: str) -> None:
    """A name where that finds this program, else the path."""
    assert called(program.format(bin=installed.parent)) == expected, case


def test_what_to_type_next(tmp_path: Path) -> None:
    """With the directory where it is not the default one."""
    endpoints = Endpoints(id="a", directory=str(tmp_path), kubeconfig="/k", node="n", nodes=(NodeEndpoints("n"),))
    told = ready_text(endpoints, 1.0, ".venv/bin/sublet")
    assert f"  .venv/bin/sublet explain node --dir {tmp_path}\n" in told
    assert f"  .venv/bin/sublet explain limit --dir {tmp_path}\n" in told


def test_one_of_several_nodes_is_named(tmp_path: Path) -> None:
    """Each has an agent of its own to ask."""
    nodes = (NodeEndpoints("n-1"), NodeEndpoints("n-2"))
    told = ready_text(
        Endpoints(id="a", directory=str(tmp_path), kubeconfig="/k", node="n-1", nodes=nodes), 1.0, "sublet"
    )
    assert "nodes n-1, n-2" in told
    assert f"  sublet explain node n-2 --dir {tmp_path}\n" in told
    assert f"  sublet explain limit --node n-2 --dir {tmp_path}\n" in told


def test_a_simulated_kernel_is_told_in_one_line() -> None:
    """With the reason."""
    told = simulated_text("/sys/fs/cgroup: cgroup v2 is not writable")
    assert "not writable" in told and "imitated" in told and "\n" not in told
