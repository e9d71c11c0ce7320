"""Jobs with real processes: their ranks, their environment and what they find of each other, through real kubectl."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import until
from tests.e2e.jobs.manifests import Jobs, Manifest, template, training, volcano

pytestmark = pytest.mark.slow

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
CHECK = """
import json, os, socket, sys, time
e = os.environ
def right():
    try:
        return bool({})
    except (OSError, KeyError):
        return False
for _ in range(100):
    if right():
        break
    time.sleep(0.1)
else:
    sys.exit(3)
time.sleep({})
"""
"""Exits with 3 where it stays wrong for ten seconds."""
CHECKS = {
    "PyTorchJob": "int(e['RANK']) < int(e['WORLD_SIZE']) == 2 and e['PET_NNODES'] == '2' and socket.gethostbyname(e['MASTER_ADDR'])",
    "TFJob": "len(json.loads(e['TF_CONFIG'])['cluster']['worker']) == 2 and json.loads(e['TF_CONFIG'])['task']['index'] < 2",
    "MPIJob": "open(e['OMPI_MCA_orte_default_hostfile']).read().count('slots=1') == 2 and open('/root/.ssh/id_rsa').read()",
    "XGBoostJob": "e['DMLC_NUM_WORKER'] == '2' and int(e['DMLC_TASK_ID']) < 2 and socket.gethostbyname(e['DMLC_TRACKER_URI'])",
    "PaddleJob": "e['PADDLE_CURRENT_ENDPOINT'] == e['PADDLE_TRAINER_ENDPOINTS'].split(',')[int(e['PADDLE_TRAINER_ID'])]",
}


def test_the_ranks_of_a_volcano_job(jobs: Jobs) -> None:
    """0..3 of a world of 4; every process finds the master by its name."""
    name = jobs.submit(volcano("ranks", GATHER))
    jobs.reaches(name, "Completed")
    assert "ranks [0, 1, 2, 3] of 4" in jobs.cluster.kubectl("logs", "ranks-master-0")
    status = jobs.status(name)
    assert (status["succeeded"], status.get("retryCount", 0), status["minAvailable"]) == (4, 0, 4)


@pytest.mark.parametrize("kind", CHECKS)
def test_the_environment_of_each_type(jobs: Jobs, kind: str) -> None:
    """Real processes check what they read, names of peers included; the first one waits for the others, since it may lead."""
    check = CHECK.format(CHECKS[kind], 1.0)
    name = jobs.submit(training(kind.lower(), check, kind=kind, maxRetry=0))
    jobs.reaches(name, "Succeeded")
    assert jobs.status(name)["failures"] == 0


def test_a_data_parallel_training(jobs: Jobs) -> None:
    """Three workers over TCP come to the same weights."""
    name = jobs.submit(training("numpy", TRAIN, replicas=3, maxRetry=0))
    jobs.reaches(name, "Succeeded")
    logs = [jobs.cluster.kubectl("logs", f"numpy-worker-{index}") for index in range(3)]
    assert [each.strip() for each in logs] == [f"trained {index} [2.0, -3.0, 0.5]" for index in range(3)]


def sets(check: str, **replicas: int) -> list[Manifest]:
    """Of which the first leads and ends first; all others would run on."""
    return [
        {"name": name, "replicas": number, "template": template(CHECK.format(check, 600 if index else 1))}
        for index, (name, number) in enumerate(replicas.items())
    ]


SETS: dict[str, tuple[str, str, dict[str, int]]] = {
    "master": (
        "PyTorchJob",
        "int(e['RANK']) < 3 and e['WORLD_SIZE'] == '3' and e['MASTER_ADDR'] == 'master-master-0.master'"
        " and socket.gethostbyname(e['MASTER_ADDR'])",
        {"master": 1, "worker": 2},
    ),
    "chief": (
        "TFJob",
        "{name: len(each) for name, each in json.loads(e['TF_CONFIG'])['cluster'].items()}"
        " == {'chief': 1, 'worker': 2, 'ps': 1}",
        {"chief": 1, "worker": 2, "ps": 1, "evaluator": 1},
    ),
    "launcher": (
        "MPIJob",
        "[line.split('.')[0] for line in open(e['OMPI_MCA_orte_default_hostfile'])]"
        " == ['launcher-worker-0', 'launcher-worker-1']",
        {"launcher": 1, "worker": 2},
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_named_sets_of_which_one_leads(jobs: Jobs, name: str) -> None:
    """It has succeeded once that one has, whose success ends the others."""
    kind, check, replicas = SETS[name]
    whole = training(name, "", kind=kind, template=None, resources={}, podSets=sets(check, **replicas), maxRetry=0)
    job = jobs.submit(whole)
    status = jobs.reaches(job, "Succeeded")
    assert (status["failures"], status["replicaStatuses"][name]["succeeded"]) == (0, 1)
    jobs.delete(job)


PLUGINS = """
int(e["VC_MASTER_NUM"]) + int(e["VC_WORKER_NUM"]) == 4
and len(e["VC_WORKER_HOSTS"].split(",")) == 3
and open("/etc/volcano/worker.host").read().split() == e["VC_WORKER_HOSTS"].split(",")
and all(socket.gethostbyname(host) for host in e["VC_WORKER_HOSTS"].split(","))
and socket.gethostbyname(e["VC_MASTER_HOSTS"].split(",")[0])
and e["VC_TASK_INDEX"] == e["VK_TASK_INDEX"] and int(e["VC_TASK_INDEX"]) < 3
and "PRIVATE KEY" in open("/root/.ssh/id_rsa").read()
and os.stat("/root/.ssh/id_rsa").st_mode & 0o77 == 0
and open("/root/.ssh/authorized_keys").read() == open("/root/.ssh/id_rsa.pub").read()
and "Host plugins-worker-2" in open("/root/.ssh/config").read()
"""


def test_plugins_of_volcano(jobs: Jobs) -> None:
    """ssh, svc and env with no arguments, as published; their objects go with the job."""
    check = CHECK.format(f"({PLUGINS})", 3)
    job = jobs.submit(volcano("plugins", check, plugins={"ssh": [], "svc": [], "env": []}, policies=[]))
    jobs.reaches(job, "Completed")
    made = ("service/plugins", "networkpolicy/plugins", "configmap/plugins-svc", "secret/plugins-ssh")
    assert jobs.cluster.run("get", *made).returncode == 0
    jobs.delete(job)
    assert until(lambda: all(jobs.cluster.run("get", each).returncode for each in made))


RANKED = (
    """
import os
master, workers = os.environ["VC_MASTER_HOSTS"].split(",")[0], int(os.environ["VC_WORKER_NUM"])
index = int(os.environ["VC_TASK_INDEX"])
os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = master, "29500"
os.environ["WORLD_SIZE"] = str(int(os.environ["VC_MASTER_NUM"]) + workers)
os.environ["RANK"] = str(index + 1 if os.environ["TASK"] == "worker" else 0)
"""
    + GATHER
)


def test_ranks_by_the_variables_of_volcano(jobs: Jobs) -> None:
    """As docs/jobs.md says, without plugin pytorch; containers of restartPolicy OnFailure, as published."""
    whole = volcano("counted", RANKED, plugins={"ssh": [], "svc": [], "env": []})
    for each in whole["spec"]["tasks"]:
        each["template"]["spec"]["restartPolicy"] = "OnFailure"
        each["template"]["spec"]["containers"][0]["env"] = [{"name": "TASK", "value": each["name"]}]
    job = jobs.submit(whole)
    jobs.reaches(job, "Completed")
    assert "ranks [0, 1, 2, 3] of 4" in jobs.cluster.kubectl("logs", "counted-master-0")
    jobs.delete(job)
