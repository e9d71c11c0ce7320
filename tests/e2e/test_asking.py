"""Every program answers the tools people have: grpcurl without a .proto, promtool, curl."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.conftest import CGROUPS, RunningCluster, until

# The simulated kernel, which an ordinary user gets, has the files of cgroup v2.
REAL_V1 = os.access(CGROUPS / "cpu" / "cgroup.procs", os.W_OK)
LEAST_WEIGHT = (
    ('{"knob": "cpu.shares"}', '"kernel_value": "2"') if REAL_V1 else ('{"knob": "cpu.weight"}', '"kernel_value": "1"')
)
AGENT = {
    "GetNode": ("{}", '"node"'),
    "ListPods": ("{}", "{"),
    "ExplainReclaimable": ("{}", "kubernetes.io/batch-memory"),
    "ExplainLimit": LEAST_WEIGHT,
    "WatchDecisions": ('{"history": 5}', '"reason"'),
    "GetSettings": ("{}", "tick_seconds"),
}
SCHEDULER = {
    "ExplainPod": ('{"namespace": "default", "name": "asked"}', '"message"'),
    "ExplainGang": ('{"namespace": "default", "name": "asked"}', '"min_member": 2'),
    "ListQueues": ("{}", '"name": "default"'),
    "ListGangs": ("{}", '"asked"'),
    "ListNodes": ("{}", '"allocatable"'),
    "WatchDecisions": ('{"history": 5}', '"reason"'),
}
PENDING_GANG = """
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata: {name: asked}
spec: {minMember: 2}
---
apiVersion: v1
kind: Pod
metadata: {name: asked, labels: {pod-group.scheduling.sigs.k8s.io: asked}}
spec:
  schedulerName: koord-scheduler
  containers: [{name: c, image: busybox, command: ["sleep", "60"]}]
"""


@pytest.fixture(scope="module")
def asked(cluster: RunningCluster) -> RunningCluster:
    """With a gang that waits for its second member."""
    cluster.apply(PENDING_GANG)
    waiting = "gang has fewer pods than its minimum"
    assert until(lambda: waiting in cluster.sublet("explain", "pod", "asked").stdout)
    return cluster


def squeezed(text: str) -> str:
    """Releases of grpcurl differ in how they spell field names."""
    return text.replace("_", "").replace(" ", "").lower()


def grpcurl(*arguments: str, seconds: float = 20.0) -> subprocess.CompletedProcess[str]:
    program = shutil.which("grpcurl", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None:
        pytest.skip("needs grpcurl: make test installs one")
    return subprocess.run(
        [program, "-max-time", str(seconds), "-plaintext", *arguments], capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("program", "service"),
    [("agent_grpc", "sublet.v1.AgentDiagnostics"), ("scheduler_grpc", "sublet.v1.SchedulerDiagnostics")],
)
def test_grpcurl_lists_services(asked: RunningCluster, program: str, service: str) -> None:
    """By reflection alone, health included."""
    done = grpcurl(asked.endpoints[program], "list")
    assert done.returncode == 0 and {service, "grpc.health.v1.Health"} <= set(done.stdout.split()), done.stderr
    health = grpcurl(asked.endpoints[program], "grpc.health.v1.Health/Check")
    assert '"status": "SERVING"' in health.stdout


@pytest.mark.parametrize(
    ("program", "service", "method", "request_", "expected"),
    [("agent_grpc", "AgentDiagnostics", name, *row) for name, row in AGENT.items()]
    + [("scheduler_grpc", "SchedulerDiagnostics", name, *row) for name, row in SCHEDULER.items()],
    ids=[f"agent {name}" for name in AGENT] + [f"scheduler {name}" for name in SCHEDULER],
)
def test_every_diagnostic_method(
    asked: RunningCluster, program: str, service: str, method: str, request_: str, expected: str
) -> None:
    """A person with grpcurl gets an answer from each; a stream is read for a moment."""
    streaming = method.startswith("Watch")
    done = grpcurl(
        "-d", request_, asked.endpoints[program], f"sublet.v1.{service}/{method}", seconds=3.0 if streaming else 20.0
    )
    assert squeezed(expected) in squeezed(done.stdout), done.stderr
    assert streaming or done.returncode == 0


def test_the_link_needs_tls_and_a_token(asked: RunningCluster) -> None:
    """Plain text gets nowhere; the agent is linked."""
    assert grpcurl(asked.endpoints["scheduler_link"], "list", seconds=3.0).returncode != 0
    asked_for = (("agent_grpc", "AgentDiagnostics/GetNode"), ("scheduler_grpc", "SchedulerDiagnostics/ListNodes"))
    for program, method in asked_for:
        answer = grpcurl(asked.endpoints[program], f"sublet.v1.{method}").stdout
        assert '"linkconnected":true' in squeezed(answer), answer


@pytest.mark.parametrize("program", ["agent_http", "scheduler_http"])
def test_promtool_finds_nothing_to_criticise(asked: RunningCluster, program: str) -> None:
    """`curl /metrics | promtool check metrics` is clean, and both probes say ok."""
    for path in ("/healthz", "/readyz"):
        with urllib.request.urlopen(f"http://{asked.endpoints[program]}{path}", timeout=10) as answer:
            assert answer.status == 200
    with urllib.request.urlopen(f"http://{asked.endpoints[program]}/metrics", timeout=10) as answer:
        metrics = answer.read()
    assert metrics.count(b"# HELP sublet_") > 5
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool: Debian package prometheus")
    checked = subprocess.run([promtool, "check", "metrics"], input=metrics, capture_output=True, timeout=30)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_bad_input_is_one_clear_message(asked: RunningCluster) -> None:
    """An unparsable quantity and a PodGroup of nobody are refused with object, field and reason; nothing else suffers."""
    pod = PENDING_GANG.split("---")[1].replace("asked", "wrong")
    broken = pod.replace('command: ["sleep", "60"]', "resources: {requests: {memory: 4Gib}}")
    for document, field in (
        (broken, "requests"),
        (PENDING_GANG.split("---")[0].replace("minMember: 2", "minMember: 0").replace("asked", "wrong"), "minMember"),
    ):
        refused = asked.apply(document, check=False)
        assert refused.returncode != 0 and field in refused.stderr and "Traceback" not in refused.stderr
    assert "wrong" not in asked.kubectl("get", "pods,podgroups", "-o", "name")
