"""Simulated nodes in a whole cluster: the scheduler places on them, pods live by the model, `sublet top` shows it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.e2e.conftest import RunningCluster, StartCluster, until

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: many}
spec:
  completions: 30
  parallelism: 30
  template:
    metadata:
      labels: {koordinator.sh/qosClass: BE}
      annotations: {sublet.dev/simulated-run-seconds: "8", sublet.dev/simulated-usage: "cpu=0.5,memory=0.5"}
    spec:
      schedulerName: koord-scheduler
      priorityClassName: koord-batch
      restartPolicy: Never
      containers:
      - name: main
        image: any
        resources:
          requests: {kubernetes.io/batch-cpu: 1000, kubernetes.io/batch-memory: 1Gi}
          limits: {kubernetes.io/batch-cpu: 1000, kubernetes.io/batch-memory: 1Gi}
"""
STAYS = """
apiVersion: v1
kind: Pod
metadata: {name: stays}
spec:
  nodeName: sim-3
  containers: [{name: main, image: any, resources: {requests: {cpu: 4, memory: 8Gi}, limits: {cpu: 4, memory: 8Gi}}}]
"""


@pytest.fixture(scope="module")
def simulated(start_cluster: StartCluster, tmp_path_factory: pytest.TempPathFactory) -> RunningCluster:
    """Eight nodes, a tenth in use by a trace."""
    trace: Path = tmp_path_factory.mktemp("trace") / "trace.csv"
    trace.write_text("machine,t_s,cpu_pct,mem_pct\nm,0,10,10\nm,60,10,10\n")
    return start_cluster(options=["--no-process-node", "--simulated-nodes", "8", "--trace", str(trace)])


def test_nodes_lend_what_the_trace_leaves(simulated: RunningCluster) -> None:
    """60 % of 32 CPUs may be in use, and 10 % are."""
    nodes = json.loads(simulated.kubectl("get", "nodes", "-l", "sublet.dev/simulated=true", "-o", "json"))["items"]
    assert {node["status"]["allocatable"]["kubernetes.io/batch-cpu"] for node in nodes} == {"16k"}


@pytest.mark.slow
def test_a_job_is_placed_and_ends(simulated: RunningCluster) -> None:
    """While it runs `sublet top` counts its pods; then it is complete."""
    simulated.apply(JOB)
    until(lambda: json.loads(simulated.sublet("top", "-o", "json").stdout)["total"]["best_effort_pods"] == 30)
    simulated.kubectl("wait", "--for=condition=complete", "job/many", "--timeout=60s")


def test_a_pod_stays_is_measured_and_goes(simulated: RunningCluster) -> None:
    """`kubectl top` knows it, its log says why there is none, and deletion is graceful."""
    simulated.apply(STAYS)
    simulated.kubectl("wait", "--for=condition=Ready", "pod/stays", "--timeout=30s")
    row = until(lambda: (s := simulated.kubectl("top", "pod", "stays", "--no-headers", check=False)) and s)
    assert row.split() == ["stays", "2400m", "4915Mi"]
    simulated.kubectl("delete", "pod", "stays", "--timeout=30s")


def test_they_go_on_after_a_crash(simulated: RunningCluster) -> None:
    """Another process takes over nodes and pods as they are."""
    before = simulated.endpoints["programs"]["simnodes"]
    simulated.apply(STAYS)
    simulated.kubectl("wait", "--for=condition=Ready", "pod/stays", "--timeout=30s")
    os.kill(before, signal.SIGKILL)
    until(lambda: simulated.endpoints["programs"]["simnodes"] != before)
    simulated.kubectl("delete", "pod", "stays", "--timeout=30s")
