"""`sublet uninstall`: asks first, and tells what was done; a node that cannot be restored stops it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app, main
from tests.cli.spoken import spoken

NOTHING_LEFT: dict[tuple[str, str], Any] = {
    ("GET", "/api/v1/nodes"): {"items": []},
    ("GET", "/api/v1/pods"): {"items": []},
}
AGENTS = "/apis/apps/v1/namespaces/sublet-system/daemonsets/sublet-agent"
FOREIGN = {
    "metadata": {"resourceVersion": "1"},
    "spec": {"template": {"spec": {"containers": [{"name": "other"}]}}},
}


def test_a_cluster_that_has_nothing_of_sublet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run once more after the end, it finds nothing to do."""
    with spoken(tmp_path, NOTHING_LEFT) as server:
        assert main(["uninstall", "--yes", "--kubeconfig", str(server.kubeconfig)]) == 0
    assert "no agents run: nothing to restore" in capsys.readouterr().out


def test_nothing_is_deleted_before_limits_are_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line on standard error, and an exit code of its own."""
    with spoken(tmp_path, {**NOTHING_LEFT, ("GET", AGENTS): FOREIGN}) as server:
        assert main(["uninstall", "--yes", "--kubeconfig", str(server.kubeconfig)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: DaemonSet sublet-agent has no container named agent")
    assert not [path for method, path in server.changes if method == "DELETE" and "webhook" not in path]


def test_without_restoring(tmp_path: Path) -> None:
    """Nobody looks for agents then; everything else goes."""
    with spoken(tmp_path, NOTHING_LEFT) as server:
        assert main(["uninstall", "--yes", "--no-restore", "--kubeconfig", str(server.kubeconfig)]) == 0
    assert ("GET", AGENTS) not in server.requests
    assert ("DELETE", "/api/v1/namespaces/sublet-system") in server.changes


@pytest.mark.parametrize(("answer", "done"), [("y\n", True), ("n\n", False), ("", False)])
def test_a_question_first(answer: str, done: bool, tmp_path: Path) -> None:
    """It names the cluster; without a yes nothing is even looked at."""
    with spoken(tmp_path, NOTHING_LEFT) as server:
        seen = CliRunner().invoke(app, ["uninstall", "--kubeconfig", str(server.kubeconfig)], input=answer)
    assert f"Remove Sublet from the cluster of {server.kubeconfig}?" in seen.output
    assert bool(server.requests) is done


def test_no_question_about_a_cluster_that_nobody_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["uninstall", "--kubeconfig", str(tmp_path / "gone")]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"error: {tmp_path}/gone: no such file (give --kubeconfig FILE)\n")
