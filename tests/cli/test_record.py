"""`sublet record`: its arguments, and what it keeps of pods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.core.observe.recording import ScenarioContainer, ScenarioPod
from cgroup_fixtures.scenarios import open_scenario
from cli.main import main
from cli.record import found_kubepods
from kube import objects
from kube.dialects.upstream import core_objects
from model.fault import KernelFault
from model.qos import KubernetesQoS, QoSClass

SECRET = "s3cret"
# Every place of a pod where a secret may stand.
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "namespace": "default",
        "uid": "1111-2222",
        "labels": {"koordinator.sh/qosClass": "LS"},
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": SECRET,
            "example.com/token": SECRET,
            "notkoordinator.sh/x": SECRET,
            "scheduling.koordinator.sh/resource-status": "{}",
            "kubernetes.io/config.hash": "abc",
            "kubernetes.io/config.mirror": "abc",
        },
        "managedFields": [{"manager": SECRET}],
    },
    "spec": {
        "nodeName": "n1",
        "priority": 9000,
        "serviceAccountName": SECRET,
        "volumes": [{"name": "v", "secret": {"secretName": SECRET}}],
        "overhead": {"cpu": "10m"},
        "containers": [
            {
                "name": "app",
                "image": f"registry/{SECRET}",
                "args": [SECRET],
                "env": [{"name": "PASSWORD", "value": SECRET}],
                "resources": {"requests": {"cpu": "1", "memory": "1Mi"}, "limits": {"cpu": "2"}},
            }
        ],
        "initContainers": [{"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "90m"}}}],
    },
    "status": {
        "phase": "Running",
        "qosClass": "Burstable",
        "podIP": SECRET,
        "containerStatuses": [{"name": "app", "containerID": "containerd://0a1b", "image": SECRET}],
    },
}


@pytest.fixture
def node(tmp_path: Path) -> list[str]:
    """The options that say where a made node is."""
    root = tmp_path / "node"
    open_scenario("v2_systemd_containerd", tmp_path).lay(0, root)
    return [
        *("--cgroup-root", str(root / "sys/fs/cgroup"), "--proc", str(root / "proc"), "--sys", str(root / "sys")),
        *("--interval", "0.01"),
    ]


def write(tmp_path: Path, text: str) -> str:
    (tmp_path / "pods").write_text(text)
    return str(tmp_path / "pods")


def test_a_recording_loads(node: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says how much there is and where."""
    out = str(tmp_path / "out")
    assert main(["record", out, "--frames", "2", "--node-name", "n1", "--about", "a test", *node]) == 0
    assert capsys.readouterr().out == f"2 frames of n1 in {out}\n"
    scenario = open_scenario(out, tmp_path).scenario
    assert len(scenario.frames_seconds) == 2 and scenario.about == "a test"
    assert (scenario.node.name, scenario.layout.runtime, scenario.pods) == ("n1", "containerd", ())


@pytest.mark.parametrize(
    ("scenario", "root"),
    [
        ("v1_systemd_docker", "/kubepods.slice"),
        ("v1_cgroupfs_docker", "/kubepods"),
        ("v2_nested_root", "/kubelet.slice/kubelet-kubepods.slice"),
        ("v2_cgroupfs_crio", "/kubepods"),
    ],
)
def test_the_pods_cgroup_is_found(scenario: str, root: str, tmp_path: Path) -> None:
    """As the agent finds it, one level down or two."""
    open_scenario(scenario, tmp_path).lay(0, tmp_path / "node")
    assert found_kubepods(tmp_path / "node/sys/fs/cgroup") == root


def test_of_several_one_must_be_named(tmp_path: Path) -> None:
    """A guess would record the wrong pods."""
    for name in ("kubepods", "kubelet/kubepods"):
        (tmp_path / "cpuacct" / name).mkdir(parents=True)
    with pytest.raises(KernelFault, match="several kubepods cgroups: /kubelet/kubepods, /kubepods"):
        found_kubepods(tmp_path)


@pytest.mark.parametrize("form", ["list", "one", "documents"])
def test_pods_are_kept_without_their_secrets(form: str, node: list[str], tmp_path: Path) -> None:
    """As kubectl prints them in JSON, or as YAML documents; of this node alone, and not ended. What the agent reads of a pod stays."""
    other = POD | {"spec": POD["spec"] | {"nodeName": "n2"}}
    ended = [POD | {"status": POD["status"] | {"phase": phase}} for phase in ("Succeeded", "Failed")]
    text = {
        "list": json.dumps({"kind": "List", "items": [POD, other, *ended]}),
        "one": json.dumps(POD),
        "documents": f"---\nkind: Node\nmetadata: {{name: n1}}\n---\n# JSON is YAML\n{json.dumps(POD)}\n---\n",
    }[form]
    out = tmp_path / "out"
    pods = ["--pods", write(tmp_path, text), "--node-name", "n1"]
    assert main(["record", str(out), "--frames", "1", *pods, *node]) == 0
    kept = (out / "pods.json").read_bytes()
    assert SECRET.encode() not in kept
    found = msgspec.json.decode(kept)["items"]
    assert len(found) == 1
    assert set(found[0]["metadata"]["annotations"]) == {
        "scheduling.koordinator.sh/resource-status",
        "kubernetes.io/config.hash",
        "kubernetes.io/config.mirror",
    }
    before, after = (core_objects.pod(msgspec.convert(item, objects.Pod, strict=False)) for item in (POD, found[0]))
    assert after == before
    scenario = open_scenario(str(out), tmp_path).scenario
    # 1 CPU, the sidecar's 90 m and 10 m of overhead; a static pod's cgroup has the name of its configuration's hash.
    assert scenario.pods == (
        ScenarioPod(
            "web",
            "abc",
            KubernetesQoS.BURSTABLE,
            QoSClass.LS,
            cpu_millis=1100,
            memory_bytes=1 << 20,
            containers=(ScenarioContainer("app", "0a1b"),),
        ),
    )
    assert scenario.layout.runtime == "containerd"


@pytest.mark.parametrize(
    ("case", "arguments", "expected"),
    [
        ("no directory", [], "Missing argument"),
        ("no frames", ["{tmp}/out", "--frames", "0"], "--frames"),
        ("no time between them", ["{tmp}/out", "--interval", "0"], "--interval"),
        ("a folder with something in it", ["{tmp}"], "{tmp}: is not an empty directory (give a new one)"),
        ("no cgroups there", ["{tmp}/out", "--cgroup-root", "{tmp}/none"], "none/cpuacct: holds no kubepods cgroup"),
        ("no cgroup of that name", ["{tmp}/out", "--kubepods", "/elsewhere"], "/elsewhere: does not exist"),
        ("no pods file", ["{tmp}/out", "--pods", "{tmp}/none"], "{tmp}/none: No such file or directory"),
        ("pods that are text", ["{tmp}/out", "--pods", "{tmp}/text"], "{tmp}/text: holds no pods"),
        ("pods that are no YAML", ["{tmp}/out", "--pods", "{tmp}/broken"], "{tmp}/broken: holds no pods"),
        ("pods that are no pods", ["{tmp}/out", "--pods", "{tmp}/odd"], "{tmp}/odd: holds no pods"),
        ("pods nested too deeply", ["{tmp}/out", "--pods", "{tmp}/deep"], "{tmp}/deep: holds no pods"),
        ("and in JSON", ["{tmp}/out", "--pods", "{tmp}/deepest"], "{tmp}/deepest: holds no pods"),
        ("a tag that does not fit", ["{tmp}/out", "--pods", "{tmp}/tag"], "{tmp}/tag: holds no pods"),
        ("binary pods", ["{tmp}/out", "--pods", "{tmp}/binary"], "{tmp}/binary: holds no pods"),
        ("a quantity nobody can read", ["{tmp}/out", "--pods", "{tmp}/quantity"], "Pod default/web: container app"),
    ],
)
def test_a_wrong_argument_is_one_line(
    case: str, arguments: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says which and why, and leaves nothing behind."""
    container = {"name": "app", "resources": {"requests": {"cpu": "much"}}}
    bad = POD | {"spec": {"nodeName": "n1", "containers": [container]}}
    odd = {"items": [{"kind": "Pod", "metadata": [], "spec": {"containers": "x"}}]}
    for name, text in (
        ("text", "just text"),
        ("broken", "a: [\n"),
        ("deep", "a: " + "[" * 100_000),
        ("deepest", '{"items": ' + "[" * 100_000),
        ("tag", "a: !!bool x"),
        ("odd", json.dumps(odd)),
        ("quantity", json.dumps(bad)),
    ):
        (tmp_path / name).write_text(text)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert main(["record", *(argument.format(tmp=tmp_path) for argument in arguments)]) == 2, case
    seen = capsys.readouterr()
    assert seen.out == "" and seen.err.startswith("error: ") and seen.err.count("\n") == 1
    assert expected.format(tmp=tmp_path) in seen.err
    assert not (tmp_path / "out").exists()
