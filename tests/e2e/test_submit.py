"""`sublet submit` as a person types it: real processes, their log, their end, and what goes on after Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import RunningCluster, until

RANKS = "import os, sys; print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], sys.argv[1:])"
SMALL = ("--cpu", "100m", "--memory", "64Mi")
FILE = """
apiVersion: sublet.dev/v1alpha1
kind: TrainingJob
metadata: {name: written}
spec:
  jobType: XGBoostJob
  maxRetry: 0
  resources: {minReplicas: 1, replicaResources: {cpu: 100m, memory: 64Mi}}
  template: {spec: {containers: [{name: main, image: any, command: [sh, -c, "echo bad luck; exit 7"]}]}}
"""


@pytest.fixture(scope="module")
def training(cluster: RunningCluster) -> Iterator[RunningCluster]:
    """With the definition, and without a job afterwards."""
    cluster.kubectl("apply", "-k", "deploy/crds/optional/sublet")
    assert until(lambda: cluster.run("get", "trainingjobs").returncode == 0)
    yield cluster
    cluster.kubectl("delete", "trainingjobs", "--all")
    assert until(lambda: "worker" not in cluster.kubectl("get", "pods", "-o", "name"))


def submitting(cluster: RunningCluster, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "cli", "submit", "--dir", str(cluster.directory / "up"), *arguments]


def test_a_command(training: RunningCluster) -> None:
    """Each pod has its rank; the first one's log is on standard output alone, and the end is told beside it."""
    command = ("--", sys.executable, "-c", RANKS, "--replicas", "9")
    done = subprocess.run(
        submitting(training, "--replicas", "2", *SMALL, *command), capture_output=True, text=True, timeout=90
    )
    assert (done.returncode, done.stdout) == (0, "rank 0 of 2 ['--replicas', '9']\n"), done.stderr
    name = done.stderr.splitlines()[0].removeprefix("TrainingJob default/").removesuffix(" submitted")
    assert f"TrainingJob default/{name} succeeded after " in done.stderr.splitlines()[-1]
    assert "TrainingJob" in training.sublet("explain", "job", name).stdout.splitlines()[0]


def test_a_file_whose_job_fails(training: RunningCluster, tmp_path: Path) -> None:
    """Exit code 1, with the reason."""
    (tmp_path / "job.yaml").write_text(FILE)
    done = subprocess.run(submitting(training, str(tmp_path / "job.yaml")), capture_output=True, text=True, timeout=90)
    assert (done.returncode, done.stdout) == (1, "bad luck\n"), done.stderr
    assert "exit code 7" in done.stderr and "TrainingJob default/written failed after" in done.stderr
    told = training.sublet("explain", "job", "written").stdout
    assert "Failed" in told.splitlines()[0] and "retries: 1 of 1 failures" in told


def test_ctrl_c_leaves_it_running(training: RunningCluster, tmp_path: Path) -> None:
    """It says how to come back; whoever does finds it as it is, and it ends."""
    stop = tmp_path / "stop"
    wait = f"echo begun; while [ ! -e {stop} ]; do sleep 0.2; done; echo over"
    options = ("--name", "long", *SMALL, "--", "sh", "-c", wait)
    with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen(submitting(training, *options), stdout=out, stderr=err)
    assert until(lambda: (tmp_path / "out").read_text() == "begun\n"), (tmp_path / "err").read_text()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    told = (tmp_path / "err").read_text()
    assert "TrainingJob default/long goes on. Come back: sublet submit --follow long" in told
    assert "Traceback" not in told
    phase = ("get", "trainingjob", "long", "-o", "jsonpath={.status.phase}")
    assert training.kubectl(*phase) == "Running"
    stop.touch()
    done = subprocess.run(submitting(training, "--follow", "long"), capture_output=True, text=True, timeout=90)
    assert (done.returncode, done.stdout) == (0, "begun\nover\n"), done.stderr
