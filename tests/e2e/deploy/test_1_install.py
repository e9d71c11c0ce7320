"""Before installing, installing, and what runs then: the manifests' own users, capabilities and root file systems."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.e2e.deploy.files import bounding_set, control_files, processes_of
from tests.e2e.deploy.site import NAMESPACE, Site

KILL, SYS_RESOURCE = 1 << 5, 1 << 24
CONTAINERS = {
    "sublet agent --guard": (0, 0),
    "sublet agent": (0, KILL | SYS_RESOURCE),
    "sublet scheduler": (65532, 0),
    "sublet admission": (65532, 0),
}
"""Which user and capabilities a container's process has, by what it runs; as docs/deploy.md says it."""
PLACE = "usr/local/lib/python3.11/dist-packages"


def test_preflight(bare: Site) -> None:
    """It names what is missing and forbids nothing; it changes nothing."""
    before = bare.get("nodes")
    done = bare.shell("sublet preflight")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Sublet will work here" in done.stdout
    assert "kubectl create -k deploy/crds" in done.stdout or "installed, and kept" in done.stdout
    assert [node["status"]["allocatable"] for node in before["items"]] == [
        node["status"]["allocatable"] for node in bare.nodes().values()
    ]


def test_a_rival_forbids(bare: Site) -> None:
    """Another agent that lends the same resources."""
    body = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "koordlet", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "koordlet"}},
            "template": {
                "metadata": {"labels": {"app": "koordlet"}},
                "spec": {"nodeSelector": {"no": "node"}, "containers": [{"name": "c", "image": "koordlet"}]},
            },
        },
    }
    bare.cluster.apply(json.dumps(body))
    try:
        done = bare.shell("sublet preflight -o json")
    finally:
        bare.cluster.kubectl("delete", "daemonset", "koordlet")
    assert done.returncode == 1
    refused = [finding for finding in json.loads(done.stdout) if finding["verdict"] == "refused"]
    assert [finding["found"] for finding in refused] == ["Koordinator's agent (default/koordlet)"]


def test_definitions_are_never_overwritten(site: Site) -> None:
    """A second `create` says so for each, and changes none of them."""
    before = site.get("crd", "nodeslos.slo.koordinator.sh")["metadata"]["resourceVersion"]
    done = site.shell("kubectl create -k deploy/crds")
    lines = done.stderr.splitlines()
    assert done.returncode != 0 and lines and all("AlreadyExists" in line for line in lines), done.stderr
    assert site.get("crd", "nodeslos.slo.koordinator.sh")["metadata"]["resourceVersion"] == before


def test_what_was_applied_is_what_is_there(site: Site) -> None:
    """Nothing is defaulted into something else, and nobody changes it behind one's back: caBundle apart."""
    done = site.shell("kubectl diff -k deploy/")
    changes = [line for line in done.stdout.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert done.returncode in (0, 1) and not changes, done.stdout + done.stderr


def test_all_that_is_wanted_runs(site: Site) -> None:
    """Two of each Deployment, an agent on each node, no restart, no complaint about security."""
    wanted = {"admission": 2, "scheduler": 2, "agent": len(site.node_names)}
    assert {name: len(site.pods_of(name)) for name in wanted} == wanted
    statuses = [status for pod in site.items("pods") for status in pod["status"]["containerStatuses"]]
    assert [status["restartCount"] for status in statuses] == [0] * len(statuses)
    assert {pod["spec"]["nodeName"] for pod in site.pods_of("agent")} == set(site.node_names)


def test_processes_have_what_the_manifests_say(site: Site) -> None:
    """User, capabilities, no way to gain any, a read-only root; of the capabilities those that this machine has."""
    seen: set[str] = set()
    for pod in site.items("pods"):
        found = processes_of(pod["metadata"]["uid"])
        assert len(found) == len(pod["spec"]["containers"])
        for process in found:
            kind = next(kind for kind in CONTAINERS if kind in process.command)
            uid, capabilities = CONTAINERS[kind]
            assert (process.uid, process.capabilities) == (uid, capabilities & bounding_set()), process
            assert process.gains_nothing and process.read_only, process
            seen.add(kind)
    assert seen == CONTAINERS.keys()


def test_root_file_systems_are_the_images(site: Site) -> None:
    """The agent has neither numpy nor a shell, and sees its token and certificate where its arguments say."""
    pod = site.agent_on(site.node_names[0])
    agent = next(each for each in processes_of(pod["metadata"]["uid"]) if "--guard" not in each.command)
    assert (agent.root / "usr/share/sublet/contents.txt").exists()
    assert (agent.root / PLACE / "agent").is_dir() and not (agent.root / PLACE / "numpy").exists()
    assert not any((agent.root / "bin" / shell).exists() for shell in ("sh", "bash"))
    arguments = dict(each.split("=", 1) for each in agent.command.split() if "=" in each)
    for flag in ("--tls-cert", "--tls-key", "--token-file", "--scheduler-ca"):
        assert (agent.root / arguments[flag].lstrip("/")).read_text().strip(), flag


def test_an_agent_explains_itself_in_its_own_container(site: Site) -> None:
    """docs/security.md, "Asking an agent": with the image's own command, on the socket that is root's."""
    name = site.node_names[0]
    agent = processes_of(site.agent_on(name)["metadata"]["uid"])[0]
    for question in ("node", "limit", "evictions"):
        asked = ["/usr/bin/sublet", "explain", question, "--agent", "unix:/run/sublet/agent.sock"]
        done = subprocess.run(["chroot", str(agent.root), *asked], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stdout.strip(), done.stderr
        assert question != "node" or f"node {name}" in done.stdout


def test_preflight_of_each_node_is_in_its_log(site: Site) -> None:
    """Each check is a line of the agent's, from the image, with its own rights; its guard looks, too."""
    for name in site.node_names:
        pod = site.agent_on(name)["metadata"]["name"]
        for container in ("agent", "guard"):
            lines = site.cluster.kubectl("-n", NAMESPACE, "logs", pod, "-c", container).splitlines()
            told = {entry["check"]: entry for entry in map(json.loads, lines) if entry["event"] == "preflight"}
            assert {"cgroups", "control files", "other agents"} <= told.keys()
            assert not [entry for entry in told.values() if entry["verdict"] == "refused"]
            assert container == "guard" or told["last resort"]["found"] in ("SIGKILL", "cgroup.kill")


def test_nothing_is_lent_at_first(site: Site) -> None:
    """Mode observe: no amount on a node, no condition, no control file touched, and yet it measures."""
    assert site.fleet() == {}
    nodes, _, files = site.before
    for name, node in site.nodes().items():
        assert node["status"]["allocatable"] == nodes[name]["status"]["allocatable"]
        assert node["status"]["capacity"] == nodes[name]["status"]["capacity"]
        assert node["metadata"].get("annotations") == nodes[name]["metadata"].get("annotations")
        assert "ColocationReady" not in [each["type"] for each in node["status"]["conditions"]]
    assert control_files(site.cluster.endpoints) == files


def test_leader_made_each_nodes_objects(site: Site) -> None:
    """NodeMetric and NodeSLO, which Koordinator's manager makes there."""

    def made() -> set[tuple[str, str]]:
        found = site.items("nodemetrics.slo.koordinator.sh,nodeslos.slo.koordinator.sh")
        return {(each["kind"], each["metadata"]["name"]) for each in found}

    wanted = {(kind, name) for kind in ("NodeMetric", "NodeSLO") for name in site.node_names}
    site.eventually(lambda: made() == wanted, "each node has its objects")


@pytest.mark.parametrize("program", ["agent", "scheduler", "admission"])
def test_logs_complain_of_nothing(site: Site, program: str) -> None:
    """No error and no traceback while everything came up, in whichever order."""
    for pod in site.pods_of(program):
        name = pod["metadata"]["name"]
        lines = site.cluster.kubectl("-n", NAMESPACE, "logs", name, "-c", program).splitlines()
        records: list[dict[str, Any]] = [json.loads(line) for line in lines if line.startswith("{")]
        assert records and not [each for each in records if each["level"] in ("error", "critical")]
        assert "Traceback" not in "\n".join(lines)
