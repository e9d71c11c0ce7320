"""`sublet preflight`: a node and a cluster are only looked at; the exit code says whether to go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from tests.cli.spoken import spoken
from view.cluster_check import DEFINITIONS

ALLOWED = ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")


def node(runtime: str = "containerd://1.7", **status: Any) -> dict[str, Any]:
    info = {"architecture": "amd64", "kernelVersion": "6.1.0", "containerRuntimeVersion": runtime}
    return {"metadata": {"name": "n1"}, "status": {"nodeInfo": info, **status}}


def cluster(
    minor: str = "32", nodes: tuple[dict[str, Any], ...] = (node(),), **more: Any
) -> dict[tuple[str, str], Any]:
    """A cluster where everything works."""
    definitions = [{"metadata": {"name": name}} for name in DEFINITIONS]
    return {
        ("GET", "/version"): {"major": "1", "minor": minor, "gitVersion": f"v1.{minor}.0"},
        ("GET", "/api/v1/nodes"): {"items": nodes},
        ("GET", "/apis/apps/v1/daemonsets"): {"items": more.get("daemon_sets", [])},
        ("GET", "/apis/apps/v1/deployments"): {"items": []},
        ("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"): {"items": definitions},
        ("GET", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"): {"items": []},
        ALLOWED: {"status": {"allowed": more.get("allowed", True)}},
    }


KOORDLET = {"metadata": {"name": "koordlet", "namespace": "koordinator-system"}}
LENT = {"allocatable": {"kubernetes.io/batch-cpu": "1k"}}
CASES: dict[str, tuple[dict[tuple[str, str], Any], int, str]] = {
    "all is well": (cluster(), 0, "Sublet will work here"),
    "a vendor's version": (cluster(minor="30+"), 0, "Sublet will work here"),
    "no node yet": (cluster(nodes=()), 0, "Sublet will work here, with 1 limitation"),
    "a runtime named as markup": (cluster(nodes=(node("[/]crio[red]"),)), 0, "[/]crio[red]"),
    "too old": (cluster(minor="20"), 1, "Sublet would not work here"),
    "not allowed": (cluster(allowed=False), 1, "not create namespaces"),
    "another agent": (cluster(daemon_sets=[KOORDLET]), 1, "Koordinator's agent (koordinator-system/koordlet)"),
    "somebody else lends": (cluster(nodes=(node(**LENT),)), 1, "batch resources on n1"),
    "an agent of ours lends": (
        cluster(nodes=(node(**LENT, conditions=[{"type": "ColocationReady"}]),)),
        0,
        "Sublet will work here",
    ),
}


@pytest.mark.parametrize(("answers", "code", "told"), CASES.values(), ids=CASES)
def test_a_cluster(
    answers: dict[tuple[str, str], Any], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is changed there: access reviews are questions."""
    with spoken(tmp_path, answers) as server:
        assert main(["preflight", "--kubeconfig", str(server.kubeconfig)]) == code
    assert told in capsys.readouterr().out
    assert {request for request in server.requests if request[0] != "GET"} == {ALLOWED}


def test_who_does_not_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a yes nor a no."""
    with spoken(tmp_path, {}) as server:
        pass
    assert main(["preflight", "--kubeconfig", str(server.kubeconfig)]) == 2
    seen = capsys.readouterr()
    assert seen.out == "" and seen.err.startswith("error: ") and seen.err.count("\n") == 1


@pytest.mark.parametrize(
    "extra", [{}, {"proc/77/status": "Name:\tkoordlet\nUid:\t0\t0\t0\t0\n"}], ids=["no agent", "another agent"]
)
def test_a_node(extra: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As JSON: one object a check; a process's name forbids nothing, since it proves nothing."""
    below = "cgroup/kubepods/besteffort"
    files = [f"{below}/{name}" for name in ("cpu.max", "cpu.weight", "cpu.idle", "cpuset.cpus", "memory.high")]
    written = dict.fromkeys(files, "") | {"proc/pressure/cpu": "", **extra}
    written |= {"cgroup/cgroup.controllers": "cpu\n", "cgroup/kubepods/cgroup.controllers": "cpu cpuset memory io\n"}
    for name, text in written.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    asked = ["preflight", "--node", "-o", "json", "--cgroup-root", str(tmp_path / "cgroup")]
    code = main([*asked, "--proc", str(tmp_path / "proc"), "--state-file", str(tmp_path / "state/agent.json")])
    rows = {row["check"]: row for row in json.loads(capsys.readouterr().out)}
    assert (code, rows["other agents"]["verdict"]) == (0, "limited" if extra else "ok")
    assert rows["control files"]["verdict"] == "ok" and not (tmp_path / "state").exists()
