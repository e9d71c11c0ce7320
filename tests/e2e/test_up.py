"""`sublet up` gives a person a working cluster, keeps it working, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import RunningCluster, StartCluster, alive, until

QUICKSTART = "app in (web,nightly,training)"


def pods(cluster: RunningCluster, selector: str) -> list[dict[str, Any]]:
    """The pods of the default namespace that a label selector picks."""
    found: list[dict[str, Any]] = json.loads(cluster.kubectl("get", "pods", "-o", "json", "-l", selector))["items"]
    return found


def phases(cluster: RunningCluster, selector: str = QUICKSTART) -> dict[str, str]:
    """Pod name → phase, of the quick start's pods only: other tests may have theirs."""
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in pods(cluster, selector)}


def test_kubectl_shows_the_node_as_ready(cluster: RunningCluster) -> None:
    """`kubectl get nodes,pods -A -o wide` works with the kubeconfig as written."""
    shown = cluster.kubectl("get", "nodes,pods", "-A", "-o", "wide")
    assert cluster.endpoints["node"] in shown
    assert " Ready " in shown


PROGRAMS = "koordinator-system"


def programs(cluster: RunningCluster) -> dict[str, dict[str, Any]]:
    """Sublet's own programs as pods, by program."""
    items = json.loads(cluster.kubectl("get", "pods", "-n", PROGRAMS, "-o", "json"))["items"]
    return {pod["spec"]["containers"][0]["name"]: pod for pod in items}


def ready(pod: dict[str, Any]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", []))


def test_sublets_programs_are_shown_as_pods(cluster: RunningCluster) -> None:
    """What the published guides look for: all Running and ready, with their logs; they ask for nothing."""
    assert until(lambda: [ready(pod) for pod in programs(cluster).values()] == [True] * 3), programs(cluster)
    for program, pod in programs(cluster).items():
        said = cluster.kubectl("logs", "-n", PROGRAMS, pod["metadata"]["name"])
        assert said and said in (cluster.directory / "up" / "logs" / f"{program}.log").read_text()
        assert "kubernetes.io/config.mirror" in pod["metadata"]["annotations"]
        assert not pod["spec"]["containers"][0].get("resources")
    assert until(lambda: "sublet-agent" in cluster.kubectl("top", "pods", "-n", PROGRAMS, check=False), 60)


def test_who_deletes_a_programs_pod_ends_nothing(cluster: RunningCluster) -> None:
    """As with any static pod: the mirror comes back, the program never noticed."""
    before, running = programs(cluster)["scheduler"]["metadata"], cluster.endpoints["programs"]["scheduler"]
    cluster.kubectl("delete", "pod", "-n", PROGRAMS, before["name"])
    assert until(lambda: ready(programs(cluster).get("scheduler") or {"status": {}}))
    assert programs(cluster)["scheduler"]["metadata"]["uid"] != before["uid"]
    assert cluster.endpoints["programs"]["scheduler"] == running and alive(running)


def test_no_command_enters_a_program(cluster: RunningCluster) -> None:
    """Which runs outside of pods: kubectl says so, and nothing fails on the way."""
    name = programs(cluster)["scheduler"]["metadata"]["name"]
    for words in (("exec", name, "--", "true"), ("attach", name)):
        refused = cluster.run("-n", PROGRAMS, *words)
        assert refused.returncode == 1 and "outside of pods, which cannot be entered" in refused.stderr, refused


def test_a_program_that_was_killed_is_counted(cluster: RunningCluster) -> None:
    """Restarts, how the run before ended, and what it said."""
    name = programs(cluster)["admission"]["metadata"]["name"]
    os.kill(cluster.endpoints["programs"]["admission"], signal.SIGKILL)

    def status() -> dict[str, Any]:
        return dict(programs(cluster)["admission"]["status"]["containerStatuses"][0])

    assert until(lambda: (found := status())["restartCount"] == 1 and found["ready"]), status()
    assert status()["lastState"]["terminated"]["exitCode"] == 137
    assert "reviewing" in cluster.kubectl("logs", "-n", PROGRAMS, name, "--previous")
    assert until(lambda: "BackOff" in cluster.kubectl("describe", "pod", "-n", PROGRAMS, name))
    whole = (cluster.directory / "up" / "logs" / "admission.log").read_text()
    assert whole.count(" reviewing ") == 2 > cluster.kubectl("logs", "-n", PROGRAMS, name).count(" reviewing ")


def test_the_kubeconfig_is_its_owners_alone(cluster: RunningCluster) -> None:
    """Whoever has it runs commands as root here."""
    assert stat.S_IMODE(Path(cluster.endpoints["kubeconfig"]).stat().st_mode) == 0o600


def test_definitions_and_priority_classes_are_there(cluster: RunningCluster) -> None:
    """What the quick start and Koordinator users' manifests refer to."""
    names = cluster.kubectl("get", "crd,priorityclass", "-o", "name")
    for expected in ("podgroups.scheduling.sigs.k8s.io", "nodemetrics.slo.koordinator.sh", "koord-batch"):
        assert expected in names


def test_the_quick_start_is_applied_runs_and_is_deleted(cluster: RunningCluster) -> None:
    """The service runs at once; the batch work once batch-cpu is offered; deleting leaves no pod and no cgroup."""
    cluster.kubectl("apply", "-f", "examples/quickstart/")
    try:
        assert until(lambda: phases(cluster, "app=web") == {"web": "Running"})
        assert until(lambda: [*phases(cluster).values()] == ["Running"] * 5, 60), cluster.kubectl("get", "events")
        uids = [pod["metadata"]["uid"] for pod in pods(cluster, QUICKSTART)]
    finally:
        cluster.kubectl("delete", "-f", "examples/quickstart/")
    assert until(lambda: not phases(cluster))
    (node,) = cluster.endpoints["nodes"]
    kubepods = Path(node["cgroup_root"]) / ("cpu" if node["cgroup_version"] == 1 else "") / node["kubepods"].strip("/")
    assert kubepods.is_dir()
    assert until(lambda: not [path for uid in uids for path in kubepods.glob(f"**/pod{uid}")])


def test_explain_answers_without_an_address(cluster: RunningCluster) -> None:
    """endpoints.json says where the agent is; the node's offer comes with its terms."""
    done = until(lambda: (d := cluster.sublet("explain", "node")).returncode == 0 and "capacity" in d.stdout and d)
    assert done and "kubernetes.io/batch-cpu" in done.stdout
    assert cluster.endpoints["node"] in done.stdout


def test_a_second_up_in_the_same_directory_is_refused(cluster: RunningCluster) -> None:
    """In one line, and the first is not disturbed."""
    done = cluster.sublet("up")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "another `sublet up` is running here" in done.stderr
    assert cluster.endpoints["up_pid"] == cluster.process.pid


def test_a_killed_program_comes_back_on_its_ports(cluster: RunningCluster) -> None:
    """Agent and scheduler after kill -9: other process, same addresses, and endpoints.json knows."""
    before = cluster.endpoints
    for name in ("agent", "scheduler"):
        os.kill(before["programs"][name], signal.SIGKILL)
    for name in ("agent", "scheduler"):
        assert until(
            lambda name=name: (
                cluster.endpoints["programs"].get(name, before["programs"][name]) != before["programs"][name]
            ),
        )
    addresses = ("agent_grpc", "agent_http", "scheduler_grpc", "scheduler_http", "scheduler_link")
    assert [cluster.endpoints[name] for name in addresses] == [before[name] for name in addresses]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_program_that_hangs_comes_back_too(start_cluster: StartCluster) -> None:
    """Stopped as one that hangs: `up` says so after a minute without an answer, kills it and starts it again."""
    own = start_cluster()
    before = own.endpoints["programs"]["admission"]
    os.kill(before, signal.SIGSTOP)
    assert until(lambda: own.endpoints["programs"].get("admission", before) != before, 150)
    told = own.output.read_text()
    assert "admission has not answered for " in told and "it is killed" in told
    assert {name for name in own.endpoints["programs"] if f"{name} has not answered" in told} == {"admission"}
    assert not alive(before)


@pytest.mark.slow
def test_a_lease_that_nobody_else_wants_ends_no_program(start_cluster: StartCluster) -> None:
    """The API server answers nothing past every renewal: scheduler and admission wait, and go on as who they are."""
    own = start_cluster()
    before = own.endpoints["programs"]
    logs = [own.directory / "up" / "logs" / f"{name}.log" for name in ("scheduler", "admission")]
    os.kill(before["apiserver"], signal.SIGSTOP)
    try:
        assert until(lambda: all("not leading until" in log.read_text() for log in logs), 60)
        time.sleep(10)
    finally:
        os.kill(before["apiserver"], signal.SIGCONT)
    assert until(lambda: all("leading again" in log.read_text() for log in logs), 60)
    assert own.endpoints["programs"] == before


def test_stopping_leaves_nothing(start_cluster: StartCluster) -> None:
    """SIGTERM: exit code 0, every program has ended, every cgroup is gone."""
    own = start_cluster()
    programs, id_ = own.endpoints["programs"], own.endpoints["id"]
    assert set(programs) == {"apiserver", "node", "scheduler", "admission", "agent"}
    assert own.cgroups_of(id_)
    assert own.stop() == 0
    assert [pid for pid in programs.values() if alive(pid)] == []
    assert own.cgroups_of(id_) == []


def running_in(directory: Path) -> list[str]:
    """Command lines of processes that were told of the directory."""
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    return [line.decode(errors="replace") for line in lines if str(directory).encode() in line]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ctrl_c_while_it_starts_leaves_nothing_and_says_nothing_odd(tmp_path: Path) -> None:
    """At a dozen moments from the first import to the last program; tests/cli/test_interrupts has those of the imports."""
    for number in range(12):
        directory = tmp_path / f"up-{number}"
        command = [sys.executable, "-m", "cli", "up", "--no-process-node", "--dir", str(directory)]
        up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        # Until then the interpreter itself starts, whose own words nobody can help.
        assert until(lambda up=up: "cli" in Path(f"/proc/{up.pid}/cmdline").read_text())
        time.sleep(0.15 + 0.3 * number)
        up.send_signal(signal.SIGINT)
        told, _ = up.communicate(timeout=60)
        assert "Traceback" not in told and "ignored" not in told, told
        assert up.returncode in (0, 130, -signal.SIGINT), told
        assert running_in(directory) == []


def test_killing_up_leaves_nothing(start_cluster: StartCluster) -> None:
    """kill -9 of the parent: the kernel tells the programs, and and all is gone, pods included."""
    own = start_cluster()
    own.kubectl("apply", "-f", "examples/quickstart/1-service.yaml")
    assert until(lambda: phases(own) == {"web": "Running"})
    programs, id_ = own.endpoints["programs"], own.endpoints["id"]
    own.process.kill()
    assert until(lambda: not [pid for pid in programs.values() if alive(pid)] and not own.cgroups_of(id_))


@pytest.mark.slow
def test_what_a_killed_run_left_is_removed_by_the_next(start_cluster: StartCluster) -> None:
    """kill -9 of everything at once leaves cgroups and a pod; the next `up` in the directory ends both."""
    first = start_cluster()
    first.kubectl("apply", "-f", "examples/quickstart/1-service.yaml")
    assert until(lambda: phases(first) == {"web": "Running"})
    id_ = first.endpoints["id"]
    programs = first.endpoints["programs"]
    os.kill(programs["node"], signal.SIGSTOP)
    for pid in (first.process.pid, *programs.values()):
        os.kill(pid, signal.SIGKILL)
    first.process.wait()
    assert first.cgroups_of(id_)
    second = start_cluster(directory=first.directory)
    assert first.cgroups_of(id_) == []
    assert second.cgroups()
    assert phases(second) == {}


@pytest.mark.slow
def test_the_end_of_the_api_server_ends_the_cluster_in_one_line(start_cluster: StartCluster) -> None:
    """Its state is in memory: nothing is pretended, everything is cleaned up."""
    own = start_cluster()
    id_ = own.endpoints["id"]
    os.kill(own.endpoints["programs"]["apiserver"], signal.SIGKILL)
    assert own.process.wait(40) == 2
    assert "error: apiserver: " in own.output.read_text()
    assert own.cgroups_of(id_) == []
