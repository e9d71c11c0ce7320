"""bench/preemption: what a preemption costs a small job that trains, on two process nodes of `sublet up`.

The job (the SDK's example, two workers, real processes) saves on notice alone. A pod of higher priority takes the node
on which it runs, again and again; the job goes on on the other node. What the runs wrote, and the manifests of
checkpoints, say what was lost.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import yaml

from bench.machine import Machine, this_machine
from kube.client import KubeClient
from model.fault import Fault

_ROOT = Path(__file__).parent.parent.parent
_JOB, _WORKERS, _NODES = "trains", 2, ("bench-1", "bench-2")
_STEPS, _STEP_SECONDS = 1_000_000, 0.05
_READY_SECONDS, _RUNNING_SECONDS, _STOP_SECONDS = 120.0, 120.0, 30.0
_PODS = "/api/v1/namespaces/default/pods"
_JOBS = "/apis/sublet.dev/v1alpha1/namespaces/default/trainingjobs"
_CLASSES = {"bench-high": 1_000_000, "bench-low": 1_000}


class PreemptionFault(Fault):
    """The cluster, or the job after a preemption, did not come up in time."""


class PreemptionEffort(msgspec.Struct, frozen=True):
    """How many preemptions, and how long the job trains before each after its first steps."""

    preemptions: int = 50
    between_seconds: float = 1.0


QUICK = PreemptionEffort(preemptions=3)


class Run(msgspec.Struct, frozen=True):
    """One run of the first worker; times are Unix seconds. `ended` is None of one that runs."""

    began: float
    begins_after: int
    ended: float | None = None


class Saved(msgspec.Struct, frozen=True):
    """A complete checkpoint: its step, and the moment of its state."""

    step: int
    begun: float


class Preemption(msgspec.Struct, frozen=True):
    """One preemption: seconds of training lost, seconds until the job ran again, and whether what it goes on from was
    begun after the notice: the job saves on notice alone, and none comes before somebody asks for its node.
    """

    lost: float
    down: float
    on_notice: bool


class Preemptions(msgspec.Struct, frozen=True):
    """All of them, as measured."""

    machine: Machine
    found: tuple[Preemption, ...]


def measure_preemption(effort: PreemptionEffort) -> Preemptions:
    """Raises a Fault where the cluster or the job does not come up."""
    machine = this_machine()
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as told:
        folder = Path(told)
        with _cluster(folder) as kubeconfig:
            asked = asyncio.run(_preempt(kubeconfig, folder, effort))
        return Preemptions(machine, tuple(costs(runs(folder), checkpoints(folder), asked)))


def costs(found: Sequence[Run], saved: Sequence[Saved], asked: Sequence[float]) -> Iterator[Preemption]:
    """What each run lost, as the next one tells by where it begins; `asked` is when somebody asked for its node."""
    for run, following in pairwise(found):
        if run.ended is None:
            continue
        used = [each for each in saved if each.step == following.begins_after and each.begun <= run.ended]
        state = max((each.begun for each in used), default=run.began)
        on_notice = bool(used) and any(run.began <= each <= state for each in asked)
        yield Preemption(run.ended - state, following.began - run.ended, on_notice)


def runs(folder: Path) -> list[Run]:
    """Of the first worker, in their order."""
    return [run_of(float(path.name.split("-")[1]), path.read_text()) for path in sorted(folder.glob("run-*-0"))]


def run_of(began: float, text: str) -> Run:
    """What a run wrote; a run that wrote nothing yet begins from nothing."""
    begins = re.search(r"^begins after step (\d+)$", text, re.MULTILINE)
    ended = re.search(r"^ended (\S+)$", text, re.MULTILINE)
    return Run(began, int(begins[1]) if begins else 0, float(ended[1]) if ended else None)


def checkpoints(folder: Path) -> list[Saved]:
    """All that are complete."""
    manifests = (json.loads(path.read_text()) for path in folder.glob(f"checkpoints/default/{_JOB}/*/manifest.json"))
    return [Saved(each["step"], each["begun"]) for each in manifests]


@contextmanager
def _cluster(folder: Path) -> Iterator[Path]:
    """`sublet up` as a process of its own; yields its kubeconfig."""
    run, output, settings = folder / "up", folder / "output", folder / "scheduler.yaml"
    settings.write_text("jobs: {restart_seconds: 0}\n")
    nodes = ("--process-nodes", "2", "--node-name", "bench", "--node-cpu", "2", "--node-memory", "4Gi")
    command = [sys.executable, "-m", "cli", "up", "--dir", str(run), *nodes, "--kernel", "simulated"]
    command += ["--scheduler-settings", str(settings)]
    with output.open("wb") as out:
        process = subprocess.Popen(command, cwd=_ROOT, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _READY_SECONDS
        while "ready after" not in output.read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise PreemptionFault("sublet up", f"is not ready: {output.read_text()[-2000:]}")
            time.sleep(0.2)
        yield run / "kubeconfig"
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


async def _preempt(kubeconfig: Path, folder: Path, effort: PreemptionEffort) -> list[float]:
    """When each was asked for."""
    asked = []
    async with KubeClient.later(kubeconfig, "sublet-bench") as client:
        await client.open()
        await _prepare(client, folder)
        before, node = await _running(client, frozenset())
        for number in range(effort.preemptions):
            await _trained(folder, number + 1)
            await asyncio.sleep(effort.between_seconds)
            name = f"urgent-{number}"
            asked.append(time.time())
            await client.create(_PODS, _urgent(name, node))
            before, node = await _running(client, before)
            await client.delete(f"{_PODS}/{name}", grace_seconds=0)
    return asked


async def _prepare(client: KubeClient, folder: Path) -> None:
    definition = _ROOT / "deploy/crds/optional/sublet/trainingjobs.yaml"
    for body in yaml.safe_load_all(definition.read_text()):
        await client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    for name, value in _CLASSES.items():
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        await client.create("/apis/scheduling.k8s.io/v1/priorityclasses", {**kind, "value": value})
    deadline = time.monotonic() + _RUNNING_SECONDS
    while True:
        try:
            await client.create(_JOBS, _job(folder))
            return
        except Fault:
            # The definition is served a moment later.
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.5)


async def _trained(folder: Path, number: int) -> None:
    """Returns once the first worker has done steps in its run of that number."""
    deadline = time.monotonic() + _RUNNING_SECONDS
    while time.monotonic() < deadline:
        found = sorted(folder.glob("run-*-0"))
        if len(found) >= number and "\nstep " in found[-1].read_text():
            return
        await asyncio.sleep(0.1)
    raise PreemptionFault(f"job {_JOB}", f"took no step within {_RUNNING_SECONDS:.0f} s")


async def _running(client: KubeClient, before: frozenset[str]) -> tuple[frozenset[str], str]:
    """Uids and the node of the job's pods, once all run and none of them is one of those."""
    deadline = time.monotonic() + _RUNNING_SECONDS
    while time.monotonic() < deadline:
        listed: dict[str, Any] = await client.get(_PODS, dict[str, Any], labelSelector=f"sublet.dev/job-name={_JOB}")
        pods = listed["items"]
        uids = frozenset(str(pod["metadata"]["uid"]) for pod in pods)
        phases = [pod["status"].get("phase") for pod in pods]
        if phases == ["Running"] * _WORKERS and before.isdisjoint(uids):
            return uids, str(pods[0]["spec"]["nodeName"])
        await asyncio.sleep(0.2)
    raise PreemptionFault(f"job {_JOB}", f"did not run within {_RUNNING_SECONDS:.0f} s")


def _job(folder: Path) -> dict[str, Any]:
    example = [sys.executable, str(_ROOT / "sdk/examples/train.py"), "--steps", str(_STEPS)]
    trains = shlex.join([*example, "--step-seconds", str(_STEP_SECONDS)])
    record = f'"{folder}/run-$(date +%s.%N)-$RANK"'
    script = f'record={record}; {trains} >> "$record" 2>&1 & child=$!; trap "kill $child" TERM; '
    script += 'wait $child; code=$?; wait $child; echo "ended $(date +%s.%N)" >> "$record"; exit $code'
    container = {
        "name": "main",
        "image": "train",
        "command": ["/bin/sh", "-c", script],
        "env": [{"name": "PYTHONPATH", "value": str(_ROOT / "sdk")}],
        "resources": {"requests": {"cpu": "1", "memory": "64Mi"}},
    }
    spec = {
        "jobType": "PyTorchJob",
        "resources": {"minReplicas": _WORKERS},
        "schedulingConfig": {"priorityClassName": "bench-low"},
        "checkpoint": {"url": str(folder / "checkpoints"), "gracePeriod": "60s"},
        "template": {"spec": {"containers": [container], "terminationGracePeriodSeconds": 30}},
    }
    return {"apiVersion": "sublet.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": _JOB}, "spec": spec}


def _urgent(name: str, node: str) -> dict[str, Any]:
    """It has the node for itself."""
    resources = {"requests": {"cpu": "2", "memory": "64Mi"}}
    spec = {
        "schedulerName": "sublet-scheduler",
        "priorityClassName": "bench-high",
        "nodeSelector": {"kubernetes.io/hostname": node},
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "sleep", "command": ["sleep", "600"], "resources": resources}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
