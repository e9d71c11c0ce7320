"""Jobs of both kinds, and what tests ask of them through kubectl."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.e2e.conftest import RunningCluster, until

DEFINITIONS = ("deploy/crds/optional/sublet", "deploy/crds/optional/volcano")
SLEEPS = "import time; time.sleep(600)"
Manifest = dict[str, Any]


def template(script: str, **spec: Any) -> Manifest:
    """A pod that runs a Python script; a real process where its node has any."""
    container = {"name": "main", "image": "python", "command": [sys.executable, "-c", script]}
    amounts = {"requests": {"cpu": "10m", "memory": "16Mi"}}
    return {"spec": {"terminationGracePeriodSeconds": 1, "containers": [{**container, "resources": amounts}], **spec}}


def nowhere(script: str = "") -> Manifest:
    """One for which there is no node."""
    return template(script, nodeSelector={"kubernetes.io/hostname": "nowhere"}, restartPolicy="Never")


def training(name: str, script: str, replicas: int = 2, kind: str = "PyTorchJob", **spec: Any) -> Manifest:
    """None takes a field away."""
    whole = {"jobType": kind, "resources": {"minReplicas": replicas}, "template": template(script), **spec}
    whole = {key: each for key, each in whole.items() if each is not None}
    return {"apiVersion": "sublet.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": whole}


def task(name: str, replicas: int, script: str, **more: Any) -> Manifest:
    return {"name": name, "replicas": replicas, "template": template(script, restartPolicy="Never"), **more}


def volcano(name: str, script: str, **spec: Any) -> Manifest:
    """A master and three workers, as published, with the plugins that give them ranks."""
    tasks = [task("master", 1, script), task("worker", 3, script)]
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
        """`kind/name`, as kubectl takes it."""
        done = until(lambda: self.cluster.apply(json.dumps(manifest), check=False).returncode == 0)
        assert done, self.cluster.apply(json.dumps(manifest), check=False).stderr
        kind = "jobs.batch.volcano.sh" if manifest["kind"] == "Job" else "trainingjobs"
        return f"{kind}/{manifest['metadata']['name']}"

    def patch(self, job: str, change: Manifest) -> None:
        self.cluster.kubectl("patch", job, "--type=merge", "-p", json.dumps(change))

    def delete(self, *jobs: str) -> None:
        """With what they have."""
        self.cluster.kubectl("delete", *jobs, "--wait=false")
        for job in jobs:
            assert until(lambda job=job: self.pods(job.partition("/")[2]) == {})

    def status(self, job: str) -> Manifest:
        found: Manifest = json.loads(self.cluster.kubectl("get", job, "-o", "json")).get("status", {})
        return found

    def phase(self, job: str) -> str:
        status = self.status(job)
        return str(status.get("phase") or status.get("state", {}).get("phase", ""))

    def passed(self, job: str) -> list[str]:
        """Phases of a Volcano Job so far."""
        return [each["status"] for each in self.status(job)["conditions"]]

    def reaches(self, job: str, phase: str, seconds: float = 60.0) -> Manifest:
        """The status in that phase."""
        until(lambda: self.phase(job) == phase, seconds)
        found = self.status(job)
        assert self.phase(job) == phase, found
        return found

    def pods(self, name: str) -> dict[str, Manifest]:
        asked = ("get", "pods", "-l", f"sublet.dev/job-name={name}", "-o", "json")
        return {each["metadata"]["name"]: each for each in json.loads(self.cluster.kubectl(*asked))["items"]}

    def uids(self, name: str) -> set[str]:
        return {each["metadata"]["uid"] for each in self.pods(name).values()}

    def run_anew(self, name: str, number: int, before: set[str]) -> bool:
        """Whether all pods run, and none of them is one of those."""
        pods = self.pods(name).values()
        fresh = {each["metadata"]["uid"] for each in pods}.isdisjoint(before)
        return len(pods) == number and fresh and all(each["status"].get("phase") == "Running" for each in pods)

    def all_run(self, name: str, number: int) -> None:
        assert until(lambda: self.run_anew(name, number, set()), 60.0), self.pods(name)

    def evict(self, pod: str) -> None:
        """As a drain does, by the eviction API."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"}}
        path = f"/api/v1/namespaces/default/pods/{pod}/eviction"
        done = self.cluster.posted(path, json.dumps(body))
        assert done.returncode == 0, done.stderr

    def event(self, job: str, reason: str) -> str:
        """The message of an Event of that reason on the job; empty where there is none."""
        selector = f"reason={reason},involvedObject.name={job.partition('/')[2]}"
        return self.cluster.kubectl("get", "events", "--field-selector", selector, "-o", "jsonpath={.items[*].message}")
