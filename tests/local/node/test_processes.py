"""Containers as real processes in real cgroups."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from local.node.cgroups import Cgroups
from local.node.images import Missing, Refused
from local.node.ports import Exit
from local.node.processes import ContainerProcess, ProcessRuntime

pytestmark = pytest.mark.kernel

PYTHON = {"image": "python:3", "restartPolicy": None}


@pytest.fixture
def runtime(cgroups: Cgroups, tmp_path: Path) -> ProcessRuntime:
    made = ProcessRuntime(cgroups, tmp_path, 2000, 4 << 30)
    made.make_node()
    return made


def shell(script: str, **more: Any) -> list[dict[str, Any]]:
    return [{"command": ["sh", "-c", script], **more}]


def run(runtime: ProcessRuntime, pod: Any, script: Callable[[ContainerProcess], Coroutine[Any, Any, None]]) -> Exit:
    """Start the pod's only container, play the script, and return its end; nothing may stay."""

    async def play() -> Exit:
        runtime.make_pod(pod)
        process = runtime.start(pod, pod.spec.containers[0], 0)
        assert isinstance(process, ContainerProcess)
        try:
            await script(process)
            return await asyncio.wait_for(process.wait(), 30)
        finally:
            process.kill()
            await runtime.remove_pod(pod)

    return asyncio.run(play())


async def nothing(process: ContainerProcess) -> None:
    return None


def output(runtime: ProcessRuntime, pod: Any) -> str:
    return runtime.log_file(pod, "main", 0).read_text()


@pytest.mark.parametrize(
    ("script", "end"),
    [
        pytest.param("exit 0", Exit(0), id="success"),
        pytest.param("exit 3", Exit(3), id="failure"),
        pytest.param("kill -9 $$$$", Exit(137), id="killed by a signal"),
        pytest.param("sleep 1000 & exit 0", Exit(0), id="what it leaves behind dies with it"),
    ],
)
def test_exit(runtime: ProcessRuntime, cgroups: Cgroups, pod: Any, script: str, end: Exit) -> None:
    """The exit code is that of the main process; afterwards its cgroup is empty and gone."""
    assert run(runtime, pod(containers=shell(script)), nothing) == end
    assert cgroups.members(cgroups.layout.prefix) == set()


def test_inside_from_the_start(runtime: ProcessRuntime, cgroups: Cgroups, pod: Any) -> None:
    """The command itself sees that it is in its container's cgroup, in every hierarchy."""
    built = pod(containers=shell("cat /proc/self/cgroup"))
    run(runtime, built, nothing)
    lines = [line for line in output(runtime, built).splitlines() if cgroups.layout.prefix in line]
    assert len(lines) == len(cgroups.layout.controllers)
    assert all(f"{cgroups.layout.prefix}/kubepods/besteffort/podu-1/" in line for line in lines)


def test_values(runtime: ProcessRuntime, cgroups: Cgroups, pod: Any) -> None:
    """Container, pod and the trees above hold the kubelet's values."""
    resources = {"requests": {"cpu": "250m", "memory": "16Mi"}, "limits": {"cpu": "500m", "memory": "32Mi"}}
    built = pod(containers=shell("sleep 1000", resources=resources))
    pod_path = f"{cgroups.layout.kubepods}/burstable/podu-1"
    seen: dict[str, tuple[str, ...]] = {}

    async def look(process: ContainerProcess) -> None:
        paths = {
            "container": f"{pod_path}/{process.container_id}",
            "pod": pod_path,
            "burstable": f"{cgroups.layout.kubepods}/burstable",
            "besteffort": f"{cgroups.layout.kubepods}/besteffort",
            "kubepods": cgroups.layout.kubepods,
        }
        runtime.set_burstable(250)
        for name, path in paths.items():
            knobs = (("cpu", "cpu.shares"), ("cpu", "cpu.cfs_quota_us"), ("memory", "memory.limit_in_bytes"))
            seen[name] = tuple((cgroups.read(controller, path, knob) or "").strip() for controller, knob in knobs)
        process.kill()

    assert run(runtime, built, look) == Exit(137)
    unlimited = "9223372036854771712"
    assert seen == {
        "container": ("256", "50000", str(32 << 20)),
        "pod": ("256", "50000", str(32 << 20)),
        "burstable": ("256", "-1", unlimited),
        "besteffort": ("2", "-1", unlimited),
        "kubepods": ("2048", "-1", str(4 << 30)),
    }


def test_best_effort_is_held(runtime: ProcessRuntime, cgroups: Cgroups) -> None:
    """A changed weight is put back; a ceiling that the agent set stays."""
    path = f"{cgroups.layout.kubepods}/besteffort"
    cgroups.write("cpu", path, "cpu.shares", 512)
    cgroups.write("cpu", path, "cpu.cfs_quota_us", 20_000)
    runtime.hold_best_effort()
    assert (cgroups.read("cpu", path, "cpu.shares") or "").strip() == "2"
    assert (cgroups.read("cpu", path, "cpu.cfs_quota_us") or "").strip() == "20000"


def test_out_of_memory(runtime: ProcessRuntime, pod: Any) -> None:
    """A container that outgrows its limit is OOM-killed, and the end says so."""
    grow = {"image": "python:3", "command": ["python3", "-c", "b = bytearray(300 << 20)"]}
    end = run(runtime, pod(containers=[{**grow, "resources": {"limits": {"memory": "32Mi"}}}]), nothing)
    assert end == Exit(137, oom_killed=True)


def test_terminate_then_kill(runtime: ProcessRuntime, cgroups: Cgroups, pod: Any) -> None:
    """SIGTERM reaches the main process only; SIGKILL reaches everything, grandchildren in other sessions too."""
    built = pod(
        containers=shell(
            "trap 'echo told' TERM; setsid sh -c 'sleep 1000 & sleep 1000' & echo up; while :; do sleep 0.05; done"
        )
    )

    async def stop(process: ContainerProcess) -> None:
        await until(lambda: "up" in output(runtime, built))
        process.terminate()
        await until(lambda: "told" in output(runtime, built))
        assert len(cgroups.members(cgroups.layout.prefix)) >= 3
        process.kill()

    assert run(runtime, built, stop) == Exit(137)
    assert cgroups.members(cgroups.layout.prefix) == set()


def test_environment_and_directory(runtime: ProcessRuntime, pod: Any, tmp_path: Path) -> None:
    """Names that no shell can hold arrive, nothing else does; a pod starts in its private directory."""
    script = "import os; print(sorted(k for k in os.environ if k != 'LC_CTYPE'), os.environ['my.var-x'], os.getcwd())"
    container = {
        "image": "python:3",
        "command": ["python3", "-c", script],
        "env": [{"name": "my.var-x", "value": "a b=c"}],
    }
    built = pod(containers=[container])
    run(runtime, built, nothing)
    assert output(runtime, built).split() == [
        *("['HOME',", "'HOSTNAME',", "'LANG',", "'PATH',", "'my.var-x']"), "a", "b=c", str(tmp_path / "pods" / "u-1"),
    ]  # fmt: skip
    assert not (tmp_path / "pods" / "u-1").exists()


@pytest.mark.parametrize(
    ("container", "kind", "words"),
    [
        pytest.param({"command": ["nonesuch"]}, Missing, "not found", id="no program"),
        pytest.param({"workingDir": "/nowhere"}, Missing, "/nowhere", id="no directory"),
        pytest.param({"envFrom": [{"secretRef": {"name": "s"}}]}, Refused, "envFrom", id="secret"),
        pytest.param({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}, Refused, "volume v", id="volume"),
    ],
)
def test_not_started(runtime: ProcessRuntime, pod: Any, container: dict[str, Any], kind: type, words: str) -> None:
    """What cannot run is told apart by whose fault it is, and leaves no cgroup."""
    built = pod(containers=[container])
    runtime.make_pod(built)
    outcome = runtime.start(built, built.spec.containers[0], 0)
    assert isinstance(outcome, kind) and words in outcome.message


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, "the condition never came true"
        await asyncio.sleep(0.01)
