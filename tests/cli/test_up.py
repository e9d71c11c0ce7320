"""What `sublet up` tells a person to type can be typed as it stands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli.up import called, claim_text, open_text, ready_text, simulated_text
from embedded.node.machine.share import Claim, share_of
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


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (Claim(), ""),
        (Claim("1", "1Gi"), ""),
        (Claim("8", "1Gi"), "each node says 8 CPUs, 1.0 GiB and has 2 CPUs, 8.0 GiB here: the rest counts as in use"),
        (Claim("500m", "16Gi"), "each node says 0.5 CPUs, 16.0 GiB and has 1 CPU, 8.0 GiB here"),
    ],
)
def test_what_is_only_claimed_is_told_in_one_line(claim: Claim, expected: str) -> None:
    """Why nothing is lent there is seen before anybody looks for it."""
    told = claim_text(share_of(1, 1, range(2), 8 << 30, claim))
    assert told.startswith(expected) and bool(told) is bool(expected) and "\n" not in told


def test_a_simulated_kernel_is_told_in_one_line() -> None:
    """With the reason."""
    told = simulated_text("/sys/fs/cgroup: cgroup v2 is not writable")
    assert "not writable" in told and "imitated" in told and "\n" not in told


@pytest.mark.parametrize(
    ("nodes", "simulated", "expected"),
    [
        ((NodeEndpoints("n"),), 0, "node n, API server"),
        ((NodeEndpoints("n"),), 1, "node n and 1 simulated node, API server"),
        ((), 300, ": 300 simulated nodes, API server"),
        ((), 0, ": no node, API server"),
    ],
)
def test_simulated_nodes_are_counted(nodes: tuple[NodeEndpoints, ...], simulated: int, expected: str) -> None:
    """Beside this machine's own, or alone."""
    endpoints = Endpoints(id="a", directory="/d", kubeconfig="/k", node="", nodes=nodes)
    assert expected in ready_text(endpoints, 1.0, "sublet", simulated)


def test_what_to_type_where_only_a_model_runs() -> None:
    """No agent answers there, so the cluster is asked; the example's service is a process and needs a process node."""
    endpoints = Endpoints(id="a", directory="/d", kubeconfig="/d/kubeconfig", node="")
    told = ready_text(endpoints, 1.0, "sublet", 300)
    assert "  sublet top --dir /d\n  sublet explain node sim-0 --kubeconfig /d/kubeconfig\n" in told
    assert "quickstart" not in told and "explain limit" not in told
    assert "sim-0" not in ready_text(endpoints, 1.0, "sublet", 0)


@pytest.mark.parametrize(
    ("listen", "told"),
    [
        ("127.0.0.1:0", False),
        ("127.1.2.3:0", False),
        ("localhost:6443", False),
        ("[::1]:0", False),
        ("0.0.0.0:0", True),
        ("[::]:0", True),
        ("example.org:1", True),
    ],
)
def test_who_may_reach_the_server_is_told_in_one_line(listen: str, told: bool) -> None:
    """Where it is not this machine alone."""
    text = open_text(listen)
    assert (f"--listen {listen}: other machines" in text) == bool(text) == told
    assert "\n" not in text
