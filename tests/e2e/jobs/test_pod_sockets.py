"""A TrainingJob that hears of its end on its pods' own sockets, beside a pod that does what it can to keep it from that."""

from __future__ import annotations

import json
import re
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import until
from tests.e2e.jobs.manifests import Jobs, Manifest, template, training

pytestmark = pytest.mark.slow

TRAIN = """
import sys, time
from sublet_sdk import Session
step = 0
with Session.from_environment(lambda: {"state": b"%d" % step}) as session:
    loaded = session.restore()
    step = loaded.checkpoint.step if loaded else 0
    print("from", step, flush=True)
    while not session.should_stop():
        time.sleep(0.1)
        step += 1
        session.step(step)
    print("reason:", session.reason, "at", step, flush=True)
time.sleep(60)
"""
HOSTILE = """
import os, pathlib, socket, threading, time
folder = pathlib.Path(os.environ["SUBLET_SOCKET_DIR"])
os.mkfifo(folder / "a.sock")
(folder / "b.sock").symlink_to("/proc/1/root")
for number in range(100):
    (folder / f"c{number}.sock").touch()
made = socket.socket(socket.AF_UNIX)
made.bind(str(folder / "0.sock"))
made.listen(100)
print("hostile", flush=True)

def flood(taken):
    line = b'{"type":"checkpoint","id":"x","step":1,"begun":1,"complete":2,"uid":"%s"}' + b"\\n"
    try:
        while True:
            taken.sendall(line * 100 + b"\\xff" * 10000)
    except OSError:
        pass

while True:
    threading.Thread(target=flood, args=(made.accept()[0],), daemon=True).start()
"""
SOCKET = "sublet.dev/checkpoint-socket"
NOTICE = "sublet.dev/preemption-notice-seconds"
CLASSES = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: socket-low}
value: 1000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: socket-high}
value: 1000000
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sublet-e2e-") as made:
        yield Path(made)


def most_of_the_node(jobs: Jobs) -> dict[str, str]:
    """So much CPU that two such pods do not share it."""
    (node,) = json.loads(jobs.cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    text = node["status"]["allocatable"]["cpu"]
    millis = int(text.removesuffix("m")) if text.endswith("m") else int(float(text) * 1000)
    return {"cpu": f"{millis * 6 // 10}m", "memory": "16Mi"}


def with_amounts(made: Manifest, amounts: dict[str, str]) -> Manifest:
    made["spec"]["containers"][0]["resources"] = {"requests": amounts}
    return made


def metric(jobs: Jobs, name: str) -> float:
    with urllib.request.urlopen(f"http://{jobs.cluster.endpoints['agent_http']}/metrics", timeout=5) as answer:
        found = re.search(rf"^{name} (\S+)$", answer.read().decode(), re.M)
    return float(found[1]) if found else 0.0


def test_a_preempted_job_hears_of_it_on_its_socket_and_saves(jobs: Jobs, folder: Path) -> None:
    """By the reason on the socket and not SIGTERM; it goes once it has saved, long before its deadline."""
    jobs.cluster.apply(CLASSES)
    hostile = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hostile", "annotations": {SOCKET: "true"}}}
    jobs.cluster.apply(json.dumps(hostile | template(HOSTILE)))
    amounts = most_of_the_node(jobs)
    pods = with_amounts(template(TRAIN), amounts) | {"metadata": {"annotations": {NOTICE: "100"}}}
    checkpoint = {"url": str(folder), "maxCheckpoints": 2}
    low = training(
        "saves", "", 1, template=pods, checkpoint=checkpoint, schedulingConfig={"priorityClassName": "socket-low"}
    )
    jobs.submit(low)
    assert until(lambda: "from 0" in jobs.cluster.kubectl("logs", "saves-worker-0", check=False), 60.0)
    assert until(lambda: metric(jobs, "sublet_agent_checkpoint_socket_refusals_total") > 0)
    urgent = with_amounts(template("import time; time.sleep(600)"), amounts)
    jobs.submit(training("urgent", "", 1, template=urgent, schedulingConfig={"priorityClassName": "socket-high"}))
    assert until(lambda: "reason:" in jobs.cluster.kubectl("logs", "saves-worker-0", check=False), 60.0), (
        jobs.cluster.kubectl("get", "events")
    )
    told = jobs.cluster.kubectl("logs", "saves-worker-0", check=False)
    assert "SIGTERM" not in told and "reason: {" not in told, "by a signal, or by the file of the annotation"
    jobs.all_run("urgent", 1)
    assert list(folder.rglob("manifest.json"))
    jobs.delete("trainingjobs/urgent", "trainingjobs/saves")
    jobs.cluster.kubectl("delete", "pod", "hostile", "--wait=false")
