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


