"""Two process nodes with a job of three workers that trains the example of the SDK, and a gang that takes its room."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.checkpoints.slowed import EXAMPLE
from tests.e2e.conftest import ROOT, RunningCluster, StartCluster, until
from tests.e2e.jobs.conftest import SETTINGS, defined
from tests.e2e.jobs.manifests import SLEEPS, Jobs, Manifest, training

SLOWED = Path(__file__).with_name("slowed.py")
NODES = ("--process-nodes", "2", "--node-name", "here", "--node-cpu", "4", "--node-memory", "16Gi")
FIRST, SECOND = "here-1", "here-2"
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
"""
WORKERS = 3
NOTICE = "sublet.dev/preemption-notice"
Environment = dict[str, str]
Notices = dict[str, dict[str, str]]
"""By pod."""


def on(node: str) -> Manifest:
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def pod_spec(command: list[str], variables: Environment | None = None, **spec: Any) -> Manifest:
    """A pod of one CPU."""
    container = {
        "name": "main", "image": "python", "command": command,
        "env": [{"name": name, "value": value} for name, value in (variables or {}).items()],
        "resources": {"requests": {"cpu": "1", "memory": "64Mi"}},
    }  # fmt: skip
    return {"containers": [container], "terminationGracePeriodSeconds": 5, **spec}


def notices_of(pods: Iterable[Manifest]) -> Notices:
    found = {each["metadata"]["name"]: each["metadata"].get("annotations", {}) for each in pods}
    return {pod: json.loads(each[NOTICE]) for pod, each in found.items() if NOTICE in each}


def documents(text: str) -> Iterator[Manifest]:
    """One JSON document after the other, the last may be cut."""
    decoder, at = json.JSONDecoder(), 0
    with contextlib.suppress(ValueError):
        while text[at:].strip():
            found, at = decoder.raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
            yield found


class Training(Jobs):
    """Trains, makes room, takes room; `python` runs the example, which is slow until `hurry`."""

    def __init__(self, cluster: RunningCluster, folder: Path, python: str = sys.executable) -> None:
        super().__init__(cluster)
        self.folder, self.python = folder, python
        self.variables: Environment = {"PYTHONPATH": str(ROOT / "sdk")}
        self.slowly = folder / "slowly"
        self.slowly.touch()

    def hurry(self) -> None:
        """Nobody is to be told any more: each job may be done."""
        self.slowly.unlink()

    @property
    def url(self) -> str:
        """Where checkpoints are."""
        return str(self.folder / "checkpoints")

    def command(self, steps: int, step_seconds: float) -> list[str]:
        return [self.python, str(SLOWED), str(self.slowly), "--steps", str(steps), "--step-seconds", str(step_seconds)]

    def train(self, name: str, *, steps: int = 300, step_seconds: float = 0.03, grace: str = "30s", **spec: Any) -> str:
        """A job of low priority that saves on notice alone."""
        checkpoint = {"url": self.url, "gracePeriod": grace}
        made = training(
            name, "", replicas=WORKERS, checkpoint=checkpoint, schedulingConfig={"priorityClassName": "low"}, **spec
        )
        made["spec"]["template"] = {"spec": pod_spec(self.command(steps, step_seconds), self.variables)}
        return self.submit(made)

    def gang(self, name: str, node: str, priority: str = "high", size: int = WORKERS) -> str:
        """A job that sleeps there."""
        made = training(name, "", replicas=size, schedulingConfig={"priorityClassName": priority})
        made["spec"]["template"] = {"spec": pod_spec([sys.executable, "-c", SLEEPS], **on(node))}
        made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
        return self.submit(made)

    def logs(self, pod: str) -> str:
        return self.cluster.kubectl("logs", pod, check=False)

    def reaches_step(self, name: str, step: int) -> None:
        """Every worker has done so many."""
        for worker in range(WORKERS):
            pod = f"{name}-worker-{worker}"
            assert until(lambda pod=pod: f"step {step}\n" in self.logs(pod), 120.0), self.logs(pod)

    def nodes(self, name: str) -> set[str]:
        return {each["spec"].get("nodeName", "") for each in self.pods(name).values()}

    def notices(self, name: str) -> Notices:
        """That stand on its pods now."""
        return notices_of(self.pods(name).values())

    @contextmanager
    def watched(self, name: str) -> Iterator[Callable[[], Notices]]:
        """The notices that its pods have had since the block began: one may be gone before anybody asks."""
        command = self.cluster.command("get", "pods", "-l", f"sublet.dev/job-name={name}", "--watch", "-o", "json")
        seen = self.folder / "watched"
        with seen.open("wb") as output, subprocess.Popen(command, stdout=output) as watcher:
            try:
                yield lambda: notices_of(each for each in documents(seen.read_text()) if NOTICE in str(each))
            finally:
                watcher.kill()

    def begun_after(self, name: str) -> list[int]:
        """After which step each worker began, of the pods that are there."""
        told = (re.findall(r"begins after step (\d+)", self.logs(pod)) for pod in sorted(self.pods(name)))
        return [int(each[0]) for each in told if each]

    def losses(self, name: str) -> list[str]:
        told = (re.findall(r"done: loss (\S+)", self.logs(pod)) for pod in sorted(self.pods(name)))
        return [each[0] for each in told if each]

    def saved_steps(self, name: str) -> list[int]:
        """Of complete checkpoints, the oldest first."""
        manifests = sorted((self.folder / "checkpoints" / "default" / name).glob("*/manifest.json"))
        return [json.loads(each.read_text())["step"] for each in manifests]

    def uninterrupted_loss(self, steps: int = 300) -> str:
        """Of the same program with nobody in its way."""
        told = {
            "SUBLET_CHECKPOINT_URL": str(self.folder / "whole"), "SUBLET_JOB_NAMESPACE": "default",
            "SUBLET_JOB_NAME": f"whole-{steps}",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, str(EXAMPLE), "--steps", str(steps)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "sdk"), **told},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return re.findall(r"done: loss (\S+)", done.stdout)[0]

    def clear(self, *names: str) -> None:
        self.delete(*(f"trainingjobs/{name}" for name in names))


@pytest.fixture(scope="module")
def cluster(start_cluster: StartCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """With the definitions of jobs, and classes of priority."""
    file = tmp_path_factory.mktemp("settings") / "scheduler.yaml"
    file.write_text(SETTINGS)
    found = defined(start_cluster(options=(*NODES, "--scheduler-settings", str(file))))
    found.apply(CLASSES)
    yield found


@pytest.fixture
def trains(cluster: RunningCluster, tmp_path: Path) -> Training:
    return Training(cluster, tmp_path)
