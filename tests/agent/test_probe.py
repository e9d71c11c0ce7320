"""The program of the kubelet's probes: exit code 0 where the agent says that it is well, and its words in any case."""

from __future__ import annotations

import ast
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from agent import probe
from kube.monitoring import MonitoringServer, Probes


def test_it_says_what_the_agent_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Alive and not ready, as the server of /metrics has it."""
    path = str(tmp_path / "s")
    server = MonitoringServer(f"unix:{path}", CollectorRegistry(), Probes(lambda: "", lambda: "ticks have stopped"))
    server.start()
    try:
        assert [probe.main([path, page]) for page in ("healthz", "readyz", "nothing")] == [0, 1, 1]
    finally:
        server.close()
    assert capsys.readouterr().out.splitlines()[:2] == ["ok", "ticks have stopped"]


def test_an_agent_that_does_not_answer_is_not_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that hangs, one that hangs up, one that ended, and none at all."""
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        assert probe.main([path, "healthz"], 0.05) == 1
    assert probe.main([path, "healthz"]) == 1
    assert probe.main([str(tmp_path / "none"), "healthz"]) == 1
    assert probe.main([path]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "the agent does not answer: timed out",
        "the agent does not answer: Connection refused",
        "the agent does not answer: No such file or directory",
        "usage: sublet-probe SOCKET healthz|readyz",
    ]


def test_it_loads_nothing_of_ours() -> None:
    """It runs several times a minute on every node: `python3 -IS` finds all that it imports without a folder."""
    tree = ast.parse(Path(probe.__file__).read_text())
    loaded = {name for each in ast.walk(tree) for name in _imported(each)}
    assert loaded == {"sys", "_socket"}
    said = subprocess.run([sys.executable, "-IS", probe.__file__], capture_output=True, text=True)
    assert (said.returncode, said.stdout) == (1, "usage: sublet-probe SOCKET healthz|readyz\n")


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []
