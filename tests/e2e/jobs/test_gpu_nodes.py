"""Jobs that share four nodes of eight GPUs: the published gang, its place in the queue, and who goes for whom."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import RunningCluster, StartCluster, until
from tests.e2e.jobs.conftest import defined
from tests.e2e.jobs.manifests import Jobs, Manifest, training

pytestmark = pytest.mark.slow

NODES = ("--resource", "nvidia.com/gpu=8", "--resource", "cpu=96", "--resource", "memory=1Ti")
CLASSES = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: 1000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: equal}
value: 5500
"""
PUBLISHED = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: training-queue}
spec:
  weight: 10
  capability: {cpu: "512", memory: 2Ti, nvidia.com/gpu: "64"}
  reclaimable: true
  guarantee: {resource: {cpu: "128", memory: 512Gi, nvidia.com/gpu: "16"}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: distributed-training, namespace: ml-workloads}
spec:
  schedulerName: volcano
  minAvailable: 4
  queue: training-queue
  policies:
    - {event: PodEvicted, action: RestartJob}
    - {event: PodFailed, action: RestartJob}
  plugins: {ssh: [], svc: [], env: []}
  maxRetry: 3
  ttlSecondsAfterFinished: 3600
  tasks:
"""
TASK = """
    - name: {name}
      replicas: {replicas}
      template:
        spec:
          restartPolicy: OnFailure
          containers:
            - name: pytorch
              image: pytorch/pytorch:2.0-cuda12.1-cudnn8-runtime
              command: [sh, -c]
              args:
                - python -m torch.distributed.run --nproc_per_node=8 --nnodes=$VC_WORKER_NUM
                  --node_rank=$VC_TASK_INDEX --master_addr=$VC_MASTER_ADDR --master_port=29500 train.py
              resources:
                requests: {{nvidia.com/gpu: 8, cpu: "32", memory: 256Gi}}
                limits: {{nvidia.com/gpu: 8}}
              volumeMounts: [{{name: dshm, mountPath: /dev/shm}}]
          volumes: [{{name: dshm, emptyDir: {{medium: Memory, sizeLimit: 64Gi}}}}]
"""
"""As it is published, with the ranks that repeat."""


@pytest.fixture(scope="module")
def cluster(start_cluster: StartCluster, settings: tuple[str, ...]) -> RunningCluster:
    found = defined(start_cluster(options=["--no-process-node", "--simulated-nodes", "4", *NODES, *settings]))
    found.apply(CLASSES)
    found.kubectl("create", "namespace", "ml-workloads")
    return found


@pytest.fixture
def clean(jobs: Jobs) -> Iterator[Jobs]:
    """Without a job afterwards."""
    yield jobs
    jobs.cluster.kubectl("delete", "trainingjobs", "--all", "--wait=false")
    jobs.cluster.kubectl("delete", "jobs.batch.volcano.sh", "--all", "-n", "ml-workloads", "--wait=false")
    assert until(lambda: jobs.cluster.kubectl("get", "pods", "-n", "ml-workloads", "-o", "name") == "")
    # What a queue is guaranteed is kept from all others.
    queue = ("delete", "queues.scheduling.volcano.sh", "training-queue", "--ignore-not-found")
    assert until(lambda: jobs.cluster.run(*queue).returncode == 0)
    assert until(lambda: jobs.cluster.kubectl("get", "pods", "-o", "name") == "")


def whole(name: str, replicas: int = 1, **spec: Any) -> Manifest:
    """Pods of which each takes a node."""
    template = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "train"}]}}
    resources = {"minReplicas": replicas, "replicaResources": {"gpu": 8, "cpu": "32", "memory": "256Gi"}}
    return training(name, "", template=template, resources=resources, **spec)


def places(jobs: Jobs, name: str) -> set[str]:
    return {each["spec"]["nodeName"] for each in jobs.pods(name).values() if each["spec"].get("nodeName")}


def test_the_published_job(clean: Jobs) -> None:
    """32 GPUs on four nodes, together or not at all."""
    clean.submit(whole("before"))
    clean.reaches("trainingjobs/before", "Running")
    tasks = "".join(TASK.format(name=name, replicas=count) for name, count in (("master", 1), ("worker", 3)))
    assert until(lambda: clean.cluster.apply(PUBLISHED + tasks, check=False).returncode == 0)
    asked = ("get", "pods", "-n", "ml-workloads", "-o", "json")
    made = lambda: json.loads(clean.cluster.kubectl(*asked))["items"]  # noqa: E731
    assert until(lambda: len(made()) == 4)
    waits = lambda: [each["message"] for pod in made() for each in pod["status"].get("conditions", [])]  # noqa: E731
    assert until(lambda: any("nvidia.com/gpu" in told for told in waits())), waits()
    assert not any(pod["spec"].get("nodeName") for pod in made())
    clean.delete("trainingjobs/before")
    assert until(lambda: {pod["status"].get("phase") for pod in made()} == {"Running"}), made()
    assert {pod["spec"]["nodeName"] for pod in made()} == {f"sim-{number}" for number in range(4)}
    job = ("jobs.batch.volcano.sh", "distributed-training", "-n", "ml-workloads")
    status = ("get", *job, "-o", "jsonpath={.status.state.phase} {.status.running} {.status.minAvailable}")
    assert until(lambda: clean.cluster.kubectl(*status) == "Running 4 4"), clean.cluster.kubectl(*status)
    clean.cluster.kubectl("delete", *job, "--wait=false")
    assert until(lambda: made() == [])


def test_pods_that_need_not_start_together(clean: Jobs) -> None:
    """`gangScheduling: false`: what has room runs."""
    name = clean.submit(whole("apart", 6, schedulingConfig={"gangScheduling": False}))
    clean.reaches(name, "Running")
    assert until(lambda: len(places(clean, "apart")) == 4)
    assert until(lambda: clean.status(name)["replicaStatuses"]["worker"]["pending"] == 2)


def test_a_job_in_its_queue(clean: Jobs) -> None:
    """It waits for its queue's quota, says so, and takes no more."""
    spec = {"quota": {"hard": {"gpu": 8}}}
    queue = {"apiVersion": "sublet.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "small"}, "spec": spec}
    done = until(lambda: clean.cluster.apply(json.dumps(queue), check=False).returncode == 0)
    assert done, clean.cluster.apply(json.dumps(queue), check=False).stderr
    names = [clean.submit(whole(f"queued-{each}", schedulingConfig={"queue": "small"})) for each in "ab"]
    until(lambda: sorted(map(clean.phase, names)) == ["Queued", "Running"])
    assert sorted(map(clean.phase, names)) == ["Queued", "Running"]
    waiting = next(name for name in names if clean.phase(name) == "Queued")
    assert until(lambda: "small" in clean.status(waiting).get("message", "")), clean.status(waiting)
    told = clean.cluster.sublet("explain", "job", waiting.partition("/")[2]).stdout
    assert "queue small" in told and "QuotaExhausted" in told, told
    clean.delete(*names)
    # Refused while its status still counts jobs.
    gone = until(lambda: "deleted" in clean.cluster.kubectl("delete", "queues.sublet.dev", "small", check=False))
    assert gone, "queue small stays"


def test_who_waited_too_long_goes_first(clean: Jobs) -> None:
    """Before higher priority that came later, once its maxWaitTime is over."""
    full = clean.submit(whole("full", 4, schedulingConfig={"priorityClassName": "high"}))
    clean.reaches(full, "Running")
    late = whole("late", 4, schedulingConfig={"priorityClassName": "low", "maxWaitTime": "2s"})
    # It may preempt nobody: what counts here is who comes first.
    patient = whole("patient", 4, schedulingConfig={"priorityClassName": "high", "preemptionPolicy": "Never"})
    names = [clean.submit(each) for each in (late, patient)]
    for name in names:
        clean.reaches(name, "Queued")
    told = lambda: [each["type"] for each in clean.status(names[0])["conditions"]]  # noqa: E731
    assert until(lambda: "WaitTimeExceeded" in told())
    clean.delete(full)
    clean.reaches(names[0], "Running", 30.0)
    assert clean.phase(names[1]) != "Running"


EQUAL = {"priorityClassName": "equal"}
ANYWHERE = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]


@pytest.mark.parametrize(("policy", "goes"), [("PreemptLower", False), ("PreemptAlways", True)])
def test_a_job_of_equal_priority_that_came_later(clean: Jobs, policy: str, goes: bool) -> None:
    """Goes for one that may preempt always, in the bands below koord-prod; for no other."""
    nodes = [f"sim-{number}" for number in range(4)]
    clean.cluster.kubectl("cordon", *nodes)
    first = clean.submit(whole("first", 4, schedulingConfig={**EQUAL, "preemptionPolicy": policy}))
    clean.reaches(first, "Queued")
    time.sleep(1.1)  # creation is told by the second
    later = whole("later", 4, schedulingConfig=EQUAL)
    later["spec"]["template"]["spec"]["tolerations"] = ANYWHERE
    second = clean.submit(later)
    clean.reaches(second, "Running", 30.0)
    clean.cluster.kubectl("uncordon", *nodes)
    if goes:
        clean.reaches(first, "Running", 30.0)
        assert clean.reaches(second, "Queued")["evictions"] == 1
    else:
        assert until(lambda: "4 Insufficient nvidia.com/gpu" in clean.status(first)["message"])
        assert (clean.phase(first), clean.status(second)["evictions"]) == ("Queued", 0)


ELASTIC = {
    "enabled": True,
    "minWorkers": 2,
    "maxWorkers": 6,
    "scalePolicy": {"scaleUpStep": 1, "scaleUpCooldown": "1s"},
}


def test_an_elastic_job_takes_what_there_is(clean: Jobs) -> None:
    """It grows to four nodes, gives up what finds no room, and shrinks for a job of higher priority; nothing restarts."""
    name = clean.submit(whole("grows", 2, elasticConfig=ELASTIC, schedulingConfig={"priorityClassName": "low"}))
    assert until(lambda: len(places(clean, "grows")) == 4), clean.status(name)
    tells = lambda reason: [each["message"] for each in clean.status(name)["events"] if each["reason"] == reason]  # noqa: E731
    assert until(lambda: "worker: 5 → 4 pods" in tells("Shrunk")), clean.status(name)
    dear = clean.submit(whole("dear", 1, schedulingConfig={"priorityClassName": "high"}))
    clean.reaches(dear, "Running", 30.0)
    assert until(lambda: clean.status(name)["evictions"] == 1 and len(clean.pods("grows")) == 3)
    status = clean.status(name)
    assert (status["phase"], status["failures"], status["scale"]) == ("Running", 0, {"worker": 3})
    assert status["replicaStatuses"]["worker"]["running"] == 3
