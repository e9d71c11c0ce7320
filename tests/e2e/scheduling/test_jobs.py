"""Jobs on many nodes through real kubectl: placed as they ask, preempted, and back again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import until
from tests.e2e.scheduling.conftest import RACKS, Scene
from tests.e2e.scheduling.manifests import Manifest

pytestmark = pytest.mark.slow

KIND = "trainingjobs.sublet.dev"


@pytest.fixture
def jobs(scene: Scene) -> Iterator[Scene]:
    """With the definition, and without a job afterwards."""
    scene.cluster.kubectl("apply", "-k", "deploy/crds/optional/sublet")
    yield scene
    scene.cluster.kubectl("delete", KIND, "--all", "--wait=false")
    assert until(lambda: not scene.pods())


def training(name: str, pool: str, cpu: str = "20", replicas: int = 4, **spec: Any) -> Manifest:
    """Pods of which a node has room for one."""
    container = {"name": "main", "image": "train", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"nodeSelector": {"pool": pool}, "containers": [container]}}
    resources = {"minReplicas": replicas, **spec.pop("resources", {})}
    whole = {"jobType": "PyTorchJob", "resources": resources, "template": template, **spec}
    return {"apiVersion": "sublet.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": whole}


def submit(scene: Scene, manifest: Manifest) -> None:
    done = until(lambda: scene.cluster.apply(json.dumps(manifest), check=False).returncode == 0)
    assert done, scene.cluster.apply(json.dumps(manifest), check=False).stderr


def status(scene: Scene, name: str) -> Manifest:
    found: Manifest = json.loads(scene.cluster.kubectl("get", KIND, name, "-o", "json")).get("status", {})
    return found


def reaches(scene: Scene, name: str, phase: str) -> Manifest:
    until(lambda: status(scene, name).get("phase") == phase)
    found = status(scene, name)
    assert found.get("phase") == phase, found
    return found


def test_all_in_one_domain(jobs: Scene) -> None:
    """The only rack with room for four pods of that size."""
    submit(jobs, training("packed", "gangs", resources={"topologyConstraint": "rack"}))
    reaches(jobs, "packed", "Running")
    assert set(jobs.places("packed-").values()) == {f"sim-{number}" for number in RACKS["r1"]}


def test_a_kind_of_gpus(jobs: Scene) -> None:
    """By a label that says so, whichever."""
    kinds = {"sim-0": "nvidia.com/gpu.product", "sim-5": "sublet.dev/gpu-type"}
    for node, label in kinds.items():
        jobs.cluster.kubectl("label", "node", node, f"{label}=A100")
    try:
        submit(jobs, training("chosen", "filters", replicas=2, resources={"gpuType": "A100"}))
        reaches(jobs, "chosen", "Running")
        assert set(jobs.places("chosen-").values()) == set(kinds)
    finally:
        for node, label in kinds.items():
            jobs.cluster.kubectl("label", "node", node, f"{label}-")


def test_a_job_that_is_preempted_waits_and_comes_back(jobs: Scene) -> None:
    """It counts as one eviction and no failure, whole as it is; `maxRetry: 0` does not end it."""
    submit(jobs, training("cheap", "preemption", maxRetry=0, schedulingConfig={"priorityClassName": "low"}))
    reaches(jobs, "cheap", "Running")
    submit(jobs, training("dear", "preemption", schedulingConfig={"priorityClassName": "high"}))
    reaches(jobs, "dear", "Running")
    found = reaches(jobs, "cheap", "Queued")
    assert (found["failures"], found["evictions"]) == (0, 1)
    assert len(jobs.places("dear-")) == 4 and jobs.places("cheap-") == {}
    jobs.cluster.kubectl("delete", KIND, "dear")
    assert reaches(jobs, "cheap", "Running")["evictions"] == 1


def test_a_job_that_may_preempt_nobody(jobs: Scene) -> None:
    """Whatever its priority; it waits in the queue."""
    submit(jobs, training("cheap", "preemption", schedulingConfig={"priorityClassName": "low"}))
    reaches(jobs, "cheap", "Running")
    terms = {"priorityClassName": "high", "preemptionPolicy": "Never"}
    submit(jobs, training("patient", "preemption", schedulingConfig=terms))
    found = reaches(jobs, "patient", "Queued")
    assert until(lambda: status(jobs, "patient").get("message")), found
    assert len(jobs.places("cheap-")) == 4 and status(jobs, "cheap")["evictions"] == 0
