"""Jobs with real processes: their ranks, their environment, their restarts and their ends, through real kubectl."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import RunningCluster, StartCluster, until

pytestmark = pytest.mark.slow

DEFINITIONS = ("deploy/crds/optional/sublet", "deploy/crds/optional/volcano")
Manifest = dict[str, Any]
GATHER = """
import json, os, socket, sys, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    server = socket.create_server((socket.gethostbyname(host), port))
    peers = [server.accept()[0] for _ in range(size - 1)]
    ranks = sorted(int(peer.recv(8)) for peer in peers)
    assert ranks == list(range(1, size)), ranks
    print("ranks", [0, *ranks], "of", size, flush=True)
    for peer in peers:
        peer.sendall(b"done")
else:
    for _ in range(300):
        try:
            peer = socket.create_connection((host, port), 5)
            break
        except OSError:
            time.sleep(0.1)
    peer.sendall(str(rank).encode())
    assert peer.recv(8) == b"done"
"""
"""The first pod hears the rank of each other, and tells them all; what any of them cannot do is a failure."""
TRAIN = """
import os, socket, struct, time
import numpy as np
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])

def read(peer, count):
    data = b""
    while len(data) < count:
        part = peer.recv(count - len(data))
        if not part:
            raise SystemExit("a peer is gone")
        data += part
    return data

if rank == 0:
    server = socket.create_server((socket.gethostbyname(host), port))
    peers = [server.accept()[0] for _ in range(size - 1)]
else:
    for _ in range(300):
        try:
            peers = [socket.create_connection((host, port), 5)]
            break
        except OSError:
            time.sleep(0.1)

def mean(gradient):
    "Of all workers, by the first of them."
    if rank:
        peers[0].sendall(gradient.tobytes())
        return np.frombuffer(read(peers[0], gradient.nbytes))
    total = gradient + sum(np.frombuffer(read(peer, gradient.nbytes)) for peer in peers)
    for peer in peers:
        peer.sendall((total / size).tobytes())
    return total / size

truth = np.array([2.0, -3.0, 0.5])
random = np.random.default_rng(rank)
x = random.normal(size=(200, 3))
y = x @ truth
weights = np.zeros(3)
for step in range(200):
    weights -= 0.1 * mean(2 * x.T @ (x @ weights - y) / len(x))
assert np.allclose(weights, truth, atol=1e-3), weights
print("trained", rank, [round(float(each), 3) for each in weights], flush=True)
"""
"""Linear regression: each worker has data of its own, and the mean of all gradients."""
CHECKS = {
    "PyTorchJob": "int(e['RANK']) < int(e['WORLD_SIZE']) == 2 and e['PET_NNODES'] == '2' and socket.gethostbyname(e['MASTER_ADDR'])",
    "TFJob": "len(json.loads(e['TF_CONFIG'])['cluster']['worker']) == 2 and json.loads(e['TF_CONFIG'])['task']['index'] < 2",
    "MPIJob": "open(e['OMPI_MCA_orte_default_hostfile']).read().count('slots=1') == 2 and open('/root/.ssh/id_rsa').read()",
    "XGBoostJob": "e['DMLC_NUM_WORKER'] == '2' and int(e['DMLC_TASK_ID']) < 2 and socket.gethostbyname(e['DMLC_TRACKER_URI'])",
    "PaddleJob": "e['PADDLE_CURRENT_ENDPOINT'] == e['PADDLE_TRAINER_ENDPOINTS'].split(',')[int(e['PADDLE_TRAINER_ID'])]",
}


@pytest.fixture(scope="module")
def cluster(start_cluster: StartCluster) -> RunningCluster:
    found = start_cluster()
    for folder in DEFINITIONS:
        found.kubectl("apply", "-k", folder)
    return found


def template(script: str, **spec: Any) -> Manifest:
    container = {"name": "main", "image": "python", "command": [sys.executable, "-c", script]}
    amounts = {"requests": {"cpu": "10m", "memory": "16Mi"}}
    return {"spec": {"terminationGracePeriodSeconds": 1, "containers": [{**container, "resources": amounts}], **spec}}


def training(name: str, script: str, replicas: int = 2, kind: str = "PyTorchJob", **spec: Any) -> Manifest:
    whole = {"jobType": kind, "resources": {"minReplicas": replicas}, "template": template(script), **spec}
    return {"apiVersion": "sublet.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": whole}


def volcano(name: str, script: str, **spec: Any) -> Manifest:
    """A master and three workers, as published, with the plugins that give them ranks."""
    tasks = [{"name": task, "replicas": number, "template": template(script, restartPolicy="Never")}
             for task, number in (("master", 1), ("worker", 3))]  # fmt: skip
    policies = [{"event": event, "action": "RestartJob"} for event in ("PodEvicted", "PodFailed")]
    whole = {
        "schedulerName": "volcano", "minAvailable": 4, "queue": "default", "policies": policies, "maxRetry": 3,
        "plugins": {"svc": [], "env": [], "pytorch": []}, "tasks": tasks, **spec,
    }  # fmt: skip
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": whole}


class Jobs:
    """What tests ask of jobs."""

    def __init__(self, cluster: RunningCluster) -> None:
        self.cluster = cluster

    def submit(self, manifest: Manifest) -> str:
        done = until(lambda: self.cluster.apply(json.dumps(manifest), check=False).returncode == 0, 20.0)
        assert done, self.cluster.apply(json.dumps(manifest), check=False).stderr
        kind = "jobs.batch.volcano.sh" if manifest["kind"] == "Job" else "trainingjobs"
        return f"{kind}/{manifest['metadata']['name']}"

    def status(self, job: str) -> Manifest:
        found: Manifest = json.loads(self.cluster.kubectl("get", job, "-o", "json")).get("status", {})
        return found

    def phase(self, job: str) -> str:
        status = self.status(job)
        return str(status.get("phase") or status.get("state", {}).get("phase", ""))

    def reaches(self, job: str, phase: str, seconds: float = 60.0) -> None:
        until(lambda: self.phase(job) == phase, seconds)
        assert self.phase(job) == phase, self.status(job)

    def pods(self, name: str) -> dict[str, Manifest]:
        found = json.loads(self.cluster.kubectl("get", "pods", "-l", f"sublet.dev/job-name={name}", "-o", "json"))[
            "items"
        ]
        return {each["metadata"]["name"]: each for each in found}

    def uids(self, name: str) -> set[str]:
        return {each["metadata"]["uid"] for each in self.pods(name).values()}

    def run_anew(self, name: str, number: int, before: set[str]) -> bool:
        """Whether all pods run, and none of them is one of those."""
        pods = self.pods(name).values()
        fresh = {each["metadata"]["uid"] for each in pods}.isdisjoint(before)
        return len(pods) == number and fresh and all(each["status"].get("phase") == "Running" for each in pods)


@pytest.fixture
def jobs(cluster: RunningCluster) -> Jobs:
    return Jobs(cluster)


def test_the_ranks_of_a_volcano_job(jobs: Jobs) -> None:
    """0..3 of a world of 4; every process finds the master by its name."""
    name = jobs.submit(volcano("ranks", GATHER))
    jobs.reaches(name, "Completed")
    assert "ranks [0, 1, 2, 3] of 4" in jobs.cluster.kubectl("logs", "ranks-master-0")
    status = jobs.status(name)
    assert (status["succeeded"], status.get("retryCount", 0), status["minAvailable"]) == (4, 0, 4)


def test_a_killed_pod_restarts_the_job_once(jobs: Jobs) -> None:
    name = jobs.submit(volcano("killed", "import time; time.sleep(600)"))
    jobs.reaches(name, "Running")
    assert until(lambda: jobs.run_anew("killed", 4, set()), 30.0)
    before = jobs.uids("killed")
    jobs.cluster.kubectl("delete", "pod", "killed-worker-1", "--wait=false")
    assert until(lambda: jobs.run_anew("killed", 4, before), 40.0), jobs.status(name)
    assert (jobs.status(name)["version"], jobs.status(name).get("retryCount", 0)) == (1, 0)
    jobs.cluster.kubectl("delete", name)


def test_three_failures_end_a_job(jobs: Jobs) -> None:
    """Two restarts; what it is told says which pod failed."""
    fails = "import os, sys, time; time.sleep(0.3); sys.exit(7 if os.environ['RANK'] == '2' else time.sleep(600))"
    name = jobs.submit(volcano("fails", fails))
    jobs.reaches(name, "Failed", 90.0)
    status = jobs.status(name)
    assert (status["retryCount"], status["version"]) == (3, 2)
    assert status["state"]["message"] == "pod fails-worker-1 failed with exit code 7"
    assert until(lambda: all(pod["status"]["phase"] == "Failed" for pod in jobs.pods("fails").values()), 30.0)


def test_ten_evictions_do_not(jobs: Jobs) -> None:
    name = jobs.submit(training("evicted", "import time; time.sleep(600)"))
    for number in range(10):
        assert until(lambda: jobs.phase(name) == "Running" and jobs.run_anew("evicted", 2, set()), 40.0), number
        before = jobs.uids("evicted")
        jobs.cluster.kubectl("delete", "pod", f"evicted-worker-{number % 2}", "--wait=false")
        assert until(lambda before=before: jobs.run_anew("evicted", 2, before), 40.0), (number, jobs.status(name))
    status = jobs.status(name)
    assert (status["phase"], status["failures"], status["evictions"]) == ("Running", 0, 10)
    jobs.cluster.kubectl("delete", name)


@pytest.mark.parametrize("kind", CHECKS)
def test_the_environment_of_each_type(jobs: Jobs, kind: str) -> None:
    """Real processes check what they read, names of peers included; the first one waits for the others, since it may lead."""
    check = f"""
import json, os, socket, sys, time
e = os.environ
def right():
    try:
        return bool({CHECKS[kind]})
    except (OSError, KeyError):
        return False
for _ in range(100):
    if right():
        break
    time.sleep(0.1)
else:
    sys.exit(3)
time.sleep(1.0)
"""
    name = jobs.submit(training(kind.lower(), check, kind=kind, maxRetry=0))
    jobs.reaches(name, "Succeeded")
    assert jobs.status(name)["failures"] == 0


def test_a_data_parallel_training(jobs: Jobs) -> None:
    """Three workers over TCP come to the same weights."""
    name = jobs.submit(training("numpy", TRAIN, replicas=3, maxRetry=0))
    jobs.reaches(name, "Succeeded")
    logs = [jobs.cluster.kubectl("logs", f"numpy-worker-{index}") for index in range(3)]
    assert [each.strip() for each in logs] == [f"trained {index} [2.0, -3.0, 0.5]" for index in range(3)]


def once(folder: Path, code: int) -> str:
    """A worker 0 that fails the first time it runs; all else runs on."""
    return f"""
import os, pathlib, sys, time
flag = pathlib.Path({str(folder)!r}) / "failed"
if os.environ["VC_TASK_INDEX"] == "0" and os.environ["RANK"] != "0" and not flag.exists():
    time.sleep(1.0)
    flag.touch()
    sys.exit({code})
time.sleep(600)
"""


ENDS = {"AbortJob": "Aborted", "TerminateJob": "Terminated", "CompleteJob": "Completed"}


@pytest.mark.parametrize("action", ENDS)
def test_rules_that_end_a_job(jobs: Jobs, tmp_path: Path, action: str) -> None:
    """What ran is stopped; what failed stays, for its logs."""
    policies = [{"event": "PodFailed", "action": action}]
    name = jobs.submit(volcano(f"ends-{action.lower()}", once(tmp_path, 5), policies=policies))
    jobs.reaches(name, ENDS[action])
    left = jobs.pods(f"ends-{action.lower()}").values()
    assert [each["status"]["phase"] for each in left] == ["Failed"]


REPLACED = {"RestartPod": ("worker-0",), "RestartTask": ("worker-0", "worker-1", "worker-2")}


@pytest.mark.parametrize("action", REPLACED)
def test_rules_that_restart_a_part(jobs: Jobs, tmp_path: Path, action: str) -> None:
    """By the exit code; the others go on as they are, and it was one failure."""
    short = action.lower()
    name = jobs.submit(volcano(short, once(tmp_path, 5), policies=[{"exitCode": 5, "action": action}]))
    assert until(lambda: jobs.run_anew(short, 4, set()), 30.0)
    before = {pod: each["metadata"]["uid"] for pod, each in jobs.pods(short).items()}
    assert until(lambda: (tmp_path / "failed").exists(), 30.0)
    replaced = {f"{short}-{member}" for member in REPLACED[action]}

    def done() -> bool:
        pods = jobs.pods(short)
        fresh = {pod for pod, each in pods.items() if each["metadata"]["uid"] != before.get(pod)}
        return fresh == replaced and all(each["status"].get("phase") == "Running" for each in pods.values())

    assert until(done, 40.0), jobs.status(name)
    jobs.reaches(name, "Running")
    assert (jobs.status(name)["retryCount"], jobs.status(name)["running"]) == (1, 4)
    jobs.cluster.kubectl("delete", name)


def test_a_task_that_waits_for_another(jobs: Jobs) -> None:
    """Its pods are made once that runs, and the gang needs no more together than there are."""
    job = volcano("ordered", "import time; time.sleep(600)")
    job["spec"]["tasks"][1]["dependsOn"] = {"name": ["master"]}
    name = jobs.submit(job)
    assert until(lambda: jobs.run_anew("ordered", 4, set()), 40.0), jobs.status(name)
    made = {pod: each["metadata"]["creationTimestamp"] for pod, each in jobs.pods("ordered").items()}
    started = jobs.pods("ordered")["ordered-master-0"]["status"]["startTime"]
    assert all(at >= started for pod, at in made.items() if "worker" in pod)
    jobs.cluster.kubectl("delete", name)


def test_an_elastic_job_grows(jobs: Jobs) -> None:
    """From its minimum, without a restart; what is told of it says so."""
    elastic = {
        "enabled": True,
        "minWorkers": 1,
        "maxWorkers": 3,
        "scalePolicy": {"scaleUpStep": 1, "scaleUpCooldown": "1s"},
    }
    sleeps = "import time; time.sleep(600)"
    name = jobs.submit(training("grows", sleeps, replicas=1, elasticConfig=elastic))
    assert until(lambda: jobs.run_anew("grows", 3, set()), 40.0), jobs.status(name)
    status = jobs.status(name)
    assert (status["failures"], status["evictions"], status["run"]["number"]) == (0, 0, 0)
    assert [each["message"] for each in status["events"] if each["reason"] == "Grown"] == [
        "worker: 1 → 2 pods", "worker: 2 → 3 pods",
    ]  # fmt: skip
    jobs.cluster.kubectl("delete", name)


def test_a_wait_that_is_too_long(jobs: Jobs) -> None:
    """It waits on, before others, and says so."""
    large = template("", nodeSelector={"kubernetes.io/hostname": "nowhere"})
    name = jobs.submit(training("waits", "", template=large, schedulingConfig={"maxWaitTime": "2s"}))
    jobs.reaches(name, "Queued")

    def told() -> bool:
        return "WaitTimeExceeded" in [each["type"] for each in jobs.status(name).get("conditions", [])]

    assert until(told, 20.0), jobs.status(name)
    assert jobs.phase(name) == "Queued" and jobs.status(name)["message"]
    events = ("get", "events", "--field-selector", "reason=WaitTimeExceeded", "-o", "name")
    assert until(lambda: jobs.cluster.kubectl(*events), 20.0)
    jobs.cluster.kubectl("delete", name)


def test_a_scheduler_that_is_killed_loses_and_doubles_nothing(jobs: Jobs) -> None:
    """kill -9 right after a pod went, three times over: one restart each, whichever process noticed."""
    name = jobs.submit(training("survives", "import time; time.sleep(600)", replicas=3))
    for number in range(3):
        assert until(lambda: jobs.phase(name) == "Running" and jobs.run_anew("survives", 3, set()), 60.0), number
        before, scheduler = jobs.uids("survives"), jobs.cluster.endpoints["programs"]["scheduler"]
        jobs.cluster.kubectl("delete", "pod", "survives-worker-0", "--wait=false")
        time.sleep(0.1 * number)
        os.kill(scheduler, signal.SIGKILL)
        assert until(lambda before=before: jobs.run_anew("survives", 3, before), 60.0), jobs.status(name)
    jobs.reaches(name, "Running")
    assert (jobs.status(name)["failures"], jobs.status(name)["evictions"]) == (0, 3)
    jobs.cluster.kubectl("delete", name)


def test_suspended_and_resumed(jobs: Jobs) -> None:
    name = jobs.submit(training("paused", "import time; time.sleep(600)"))
    jobs.reaches(name, "Running")

    def patch(suspend: bool) -> None:
        jobs.cluster.kubectl("patch", name, "--type=merge", "-p", json.dumps({"spec": {"suspend": suspend}}))

    patch(True)
    jobs.reaches(name, "Suspended")
    assert until(lambda: jobs.pods("paused") == {}, 30.0)
    patch(False)
    jobs.reaches(name, "Running")
    assert len(jobs.pods("paused")) == 2
    jobs.cluster.kubectl("delete", name)
    assert until(lambda: jobs.pods("paused") == {}, 30.0)


def test_a_job_of_the_past_is_deleted_with_what_it_had(jobs: Jobs) -> None:
    name = jobs.submit(training("short", "", ttlSecondsAfterFinished=2))
    gone: Callable[[], bool] = lambda: jobs.cluster.run("get", name).returncode != 0 and jobs.pods("short") == {}  # noqa: E731
    assert until(gone, 60.0)
    assert until(lambda: jobs.cluster.run("get", "service", "short").returncode != 0, 30.0)


REFUSED: dict[str, tuple[Manifest, str]] = {
    "an unknown type": (training("bad", "", kind="AbacusJob"), "spec.jobType"),
    "more at least than at most": (
        training("bad", "", resources={"minReplicas": 3, "maxReplicas": 2}), "maxReplicas must not be below minReplicas",
    ),
    "less than nothing": (training("bad", "", replicas=-1), "spec.resources.minReplicas"),
    "an empty template": (training("bad", "", template={"spec": {"containers": []}}), "spec.template.spec.containers"),
}  # fmt: skip


@pytest.mark.parametrize(("manifest", "words"), REFUSED.values(), ids=REFUSED)
def test_what_the_definition_refuses(jobs: Jobs, manifest: Manifest, words: str) -> None:
    jobs.submit(training("good", ""))  # the definition is served
    assert words in jobs.cluster.apply(json.dumps(manifest), check=False).stderr


def test_what_only_the_controller_can_tell(jobs: Jobs) -> None:
    """One condition, one Event, and nothing is made; once it is mended the job runs."""
    name = jobs.submit(training("pricey", "", schedulingConfig={"priority": 4242}))
    until(lambda: jobs.status(name).get("reason") == "InvalidSpec", 20.0)
    message = "spec.schedulingConfig.priority: no PriorityClass has the value 4242"
    assert message in jobs.status(name)["message"] and jobs.pods("pricey") == {}
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p4242"}}
    jobs.cluster.apply(json.dumps({**kind, "value": 4242}))
    jobs.reaches(name, "Succeeded")
    assert all(pod["spec"]["priority"] == 4242 for pod in jobs.pods("pricey").values())
