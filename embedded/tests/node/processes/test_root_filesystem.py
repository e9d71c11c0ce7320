"""Containers on the files of an image: their own root, processes, user, capabilities and mounts."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from embedded.cgroups.hierarchy import Cgroups
from embedded.node.images.commands import Missing, Refused
from embedded.node.objects.pod import PodObject
from embedded.node.objects.sources import Sources
from embedded.node.ports import Execution, Exit
from embedded.node.processes.container_process import ContainerProcess
from embedded.node.processes.mounting import images_possible
from embedded.node.processes.preparation import Provision
from embedded.node.processes.runtime import Place, ProcessRuntime

pytestmark = pytest.mark.kernel


@pytest.fixture
def runtime(cgroups: Cgroups, tmp_path: Path, image_store: Path) -> ProcessRuntime:
    if not images_possible():
        pytest.skip("no overlay file system, or no root")
    made = ProcessRuntime(cgroups, tmp_path, 2000, 4 << 30, Provision(image_store, {"KUBERNETES_SERVICE_HOST": "::1"}))
    made.make_node()
    return made


Script = Callable[[ContainerProcess], Awaitable[None]]


async def to_its_end(process: ContainerProcess) -> None:
    return None


def run(runtime: ProcessRuntime, built: PodObject, script: Script = to_its_end) -> tuple[Exit, str]:
    """The end of the pod's only container, and what it wrote; nothing of it may stay."""

    async def play() -> Exit:
        pod = runtime.adapted(built)
        runtime.make_pod(pod, Sources())
        process = runtime.start(pod, pod.spec.containers[0], 0, Sources())
        assert isinstance(process, ContainerProcess), process
        try:
            await script(process)
            return await asyncio.wait_for(process.wait(), 30)
        finally:
            process.kill()
            await runtime.remove_pod(pod)

    end = asyncio.run(play())
    return end, runtime.log_file(built, "main", 0).read_text()


def shell(pod: Any, script: str, security: dict[str, Any] | None = None, **more: Any) -> PodObject:
    container = {"image": "tiny:1", "command": None, "args": [script], "securityContext": security}
    built: PodObject = pod(containers=[{**container, **more.pop("container", {})}], **more)
    return built


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, "the condition never came true"
        await asyncio.sleep(0.01)


def test_its_own_files(runtime: ProcessRuntime, pod: Any, image_store: Path) -> None:
    """The image's files and no others, the image's environment; what it writes stays nowhere."""
    _, text = run(runtime, shell(pod, "echo $FROM $HOSTNAME $KUBERNETES_SERVICE_HOST; pwd; ls /; echo x > /usr/new"))
    lines = text.splitlines()
    assert lines[:2] == ["image web ::1", "/work"]
    assert lines[2:] == ["bin", "dev", "etc", "proc", "run", "sys", "usr", "work"]
    assert not (image_store / "tiny/1/rootfs/usr/new").exists() and not (image_store / "tiny/1/rootfs/work").exists()


@pytest.mark.parametrize(
    ("container", "text"),
    [
        pytest.param({"args": None}, "by default\n", id="as the image says"),
        pytest.param({"args": ["echo $(WHO)"], "env": [{"name": "WHO", "value": "me"}]}, "me\n", id="arguments"),
        pytest.param({"command": ["echo", "given"], "args": None}, "given\n", id="a command"),
        pytest.param({"command": ["/bin/echo"], "args": ["a", "b"]}, "a b\n", id="both"),
        pytest.param({"args": ["pwd"], "workingDir": "/usr/bin"}, "/usr/bin\n", id="a directory"),
    ],
)
def test_command(runtime: ProcessRuntime, pod: Any, container: dict[str, Any], text: str) -> None:
    """Entrypoint and Cmd, replaced as the CRI does."""
    assert run(runtime, shell(pod, "", container=container)) == (Exit(0), text)


def test_first_process(runtime: ProcessRuntime, pod: Any, cgroups: Cgroups) -> None:
    """It is process 1 among its own, in its container's cgroup; its end ends the rest."""
    script = "sleep 1000 & echo $$; hostname; ls /proc | grep -c '^[0-9]'; grep cpu: /proc/self/cgroup; exit 3"
    end, text = run(runtime, shell(pod, script.replace("$$", "$$$$")))
    lines = text.splitlines()
    assert (end, lines[:2]) == (Exit(3), ["1", "web"]) and int(lines[2]) < 6
    assert "/podu-1/" in lines[3] or "unified" in text
    assert cgroups.members(cgroups.layout.prefix) == set()


def test_machine_processes(runtime: ProcessRuntime, pod: Any) -> None:
    """With hostPID the machine's processes are seen; the container is none of the first."""
    _, text = run(runtime, shell(pod, f"ls -d /proc/{os.getpid()}; echo $$$$", hostPID=True))
    seen, own = text.splitlines()
    assert seen == f"/proc/{os.getpid()}" and int(own) > 1


def status(runtime: ProcessRuntime, pod: Any, security: dict[str, Any], **spec: Any) -> dict[str, str]:
    _, text = run(runtime, shell(pod, "grep -E '^(Uid|Gid|Groups|Cap|NoNew)' /proc/self/status", security, **spec))
    return {key: " ".join(value.split()) for key, _, value in (line.partition(":") for line in text.splitlines())}


DEFAULT_MASK = 0xA80425FB


@pytest.mark.parametrize(
    ("security", "expected"),
    [
        pytest.param({}, {"CapEff": DEFAULT_MASK, "CapBnd": DEFAULT_MASK, "NoNewPrivs": 0}, id="nothing said"),
        pytest.param({"capabilities": {"drop": ["ALL"]}}, {"CapEff": 0, "CapPrm": 0, "CapBnd": 0}, id="none"),
        pytest.param({"capabilities": {"drop": ["ALL"], "add": ["KILL"]}}, {"CapEff": 32, "CapBnd": 32}, id="one"),
        pytest.param(
            {"runAsUser": 1000, "capabilities": {"drop": ["ALL"], "add": ["KILL"]}},
            {"CapEff": 0, "CapPrm": 0, "CapBnd": 32, "CapAmb": 0, "CapInh": 0},
            id="an ordinary user executes with none",
        ),
        pytest.param({"allowPrivilegeEscalation": False}, {"NoNewPrivs": 1}, id="no new privileges"),
    ],
)
def test_capabilities(runtime: ProcessRuntime, pod: Any, security: dict[str, Any], expected: dict[str, int]) -> None:
    """As runc sets them, for a program that was executed."""
    held = status(runtime, pod, security)
    assert {name: int(held[name], 16) for name in expected} == expected


def test_privileged(runtime: ProcessRuntime, pod: Any) -> None:
    """All that the node itself has, and the machine's devices."""
    own = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapPrm"))
    held = status(runtime, pod, {"privileged": True})
    assert held["CapEff"] == held["CapBnd"] == own.split()[1]
    _, text = run(runtime, shell(pod, "ls /dev | wc -l", {"privileged": True}, metadata={"uid": "u-2"}))
    assert int(text) >= len(list(Path("/dev").iterdir()))


def test_user(runtime: ProcessRuntime, pod: Any) -> None:
    """Number, group and groups; files of volumes belong to the group; another program cannot become root."""
    spec = {"securityContext": {"fsGroup": 2000, "supplementalGroups": [7]}, "volumes": [{"name": "d", "emptyDir": {}}]}
    held = status(runtime, pod, {"runAsUser": 1000, "runAsGroup": 5}, **spec)
    assert (held["Uid"], held["Gid"], held["Groups"]) == ("1000 " * 3 + "1000", "5 " * 3 + "5", "5 7 2000")
    mounts = {"volumeMounts": [{"name": "d", "mountPath": "/d"}]}
    script = "touch /d/x && stat -c '%u %g' /d/x; touch /x || echo $HOME"
    _, text = run(runtime, shell(pod, script, {"runAsUser": 1000}, container=mounts, metadata={"uid": "u-2"}, **spec))
    assert text.splitlines()[0] == "1000 2000" and text.splitlines()[-1] == "/home/app"


def test_read_only(runtime: ProcessRuntime, pod: Any) -> None:
    """Volumes may be written all the same, where they lie on a link of the image too."""
    spec = {"volumes": [{"name": "d", "emptyDir": {}}]}
    mounts = {"volumeMounts": [{"name": "d", "mountPath": "/run/d"}]}
    script = "touch /x; touch /run/d/x && ls /nowhere/yet/d; touch /dev/shm/y && echo shm"
    _, text = run(runtime, shell(pod, script, {"readOnlyRootFilesystem": True}, container=mounts, **spec))
    assert text.splitlines() == ["touch: /x: Read-only file system", "x", "shm"]


def test_hidden_places(runtime: ProcessRuntime, pod: Any) -> None:
    """What would change or betray the machine is read-only or empty."""
    script = "echo 1 > /proc/sys/vm/swappiness; touch /sys/x; wc -c < /proc/kcore; ls /dev"
    _, text = run(runtime, shell(pod, script))
    lines = text.splitlines()
    assert [each.rpartition(": ")[2] for each in lines[:2]] == ["Read-only file system"] * 2
    assert lines[2] == "0" or "no such file" in lines[2]
    assert {"null", "zero", "urandom", "shm", "fd"} <= set(lines[3:]) and len(lines) < 25


def test_etc(runtime: ProcessRuntime, pod: Any) -> None:
    """Names that the node writes, and a message that any user may leave."""
    built = shell(
        pod, "cat /etc/hosts /etc/hostname; echo bye > /dev/termination-log", {"runAsUser": 1000}, restartPolicy="Never"
    )
    seen: list[str] = []

    async def look(process: ContainerProcess) -> None:
        await process.wait()
        seen.append(runtime.termination_message(built, "main", 0))

    _, text = run(runtime, built, look)
    assert text.splitlines()[-2:] == ["127.65.0.2\tweb", "web"] and seen == ["bye\n"]


def test_execute(runtime: ProcessRuntime, pod: Any) -> None:
    """Beside it, as the same user among the same processes; one that takes too long ends."""
    seen: list[Execution] = []

    async def ask(process: ContainerProcess) -> None:
        seen.append(await process.execute(["sh", "-c", "id -u; cat /proc/1/comm; grep CapBnd /proc/self/status"], 30))
        seen.append(await process.execute(["sleep", "1000"], 0.3))
        seen.append(await process.execute(["sh", "-c", "exit 7"], 30))
        process.kill()

    security = {"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}}
    end, _ = run(runtime, shell(pod, "exec sleep 1000", security), ask)
    assert end == Exit(137)
    assert seen[0] == Execution(0, b"1000\nsleep\nCapBnd:\t0000000000000000\n")
    assert (seen[1].code, seen[2].code) == (None, 7)


@pytest.mark.parametrize("early", [True, False], ids=["before it has begun", "while it runs"])
def test_terminate(runtime: ProcessRuntime, pod: Any, early: bool) -> None:
    """SIGTERM reaches a process 1 that handles it; one that has not begun is killed."""
    built = shell(pod, "trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done")

    async def stop(process: ContainerProcess) -> None:
        if not early:
            await until(lambda: "up" in runtime.log_file(built, "main", 0).read_text())
        process.terminate()

    assert run(runtime, built, stop)[0] == Exit(137 if early else 9)


def test_host_path(cgroups: Cgroups, pod: Any, tmp_path: Path, image_store: Path) -> None:
    """The node's own cgroups as if they were all; what is not there is made in the run directory."""
    if not images_possible():
        pytest.skip("no overlay file system, or no root")
    view = tmp_path / "view"
    for name, content in (("proc/stat", "cpu mine\n"), ("proc/meminfo", "MemTotal: 1 kB\n")):
        (view / name).parent.mkdir(parents=True, exist_ok=True)
        (view / name).write_text(content)
    runtime = ProcessRuntime(cgroups, tmp_path, 2000, 4 << 30, Provision(image_store), Place(3, view))
    runtime.make_node()
    wanted = {"cg": "/sys/fs/cgroup", "proc": "/proc", "made": "/nonesuch/made", "kubelet": "/var/lib/kubelet"}
    kinds = {name: "DirectoryOrCreate" if name == "made" else "Directory" for name in wanted}
    spec = {"volumes": [{"name": n, "hostPath": {"path": p, "type": kinds[n]}} for n, p in wanted.items()]}
    mounts = {"volumeMounts": [{"name": name, "mountPath": f"/host/{name}"} for name in wanted]}
    script = (
        "head -n 1 /host/proc/stat /proc/meminfo; touch /host/made/x; ls -d /host/cg/kubepods /host/cg/cpu/kubepods"
    )
    _, text = run(runtime, shell(pod, script, container=mounts, **spec))
    assert "cpu mine" in text and "MemTotal: 1 kB" in text and "kubepods\n" in text
    assert (tmp_path / "host/nonesuch/made/x").exists() and not Path("/nonesuch").exists()


@pytest.mark.parametrize(
    ("container", "security", "kind", "words"),
    [
        pytest.param({"command": ["nonesuch"]}, {}, Missing, "not found", id="no program"),
        pytest.param({}, {"runAsNonRoot": True}, Refused, "image will run as root", id="root"),
        pytest.param({"command": ["/usr/bin/python3"]}, {}, Missing, "not found", id="the machine's programs"),
    ],
)
def test_not_started(
    runtime: ProcessRuntime, pod: Any, container: dict[str, Any], security: dict[str, Any], kind: type, words: str
) -> None:
    """What the image does not have, or the pod forbids."""
    built = runtime.adapted(shell(pod, "", security, container=container))
    runtime.make_pod(built, Sources())
    outcome = runtime.start(built, built.spec.containers[0], 0, Sources())
    asyncio.run(runtime.remove_pod(built))
    assert isinstance(outcome, kind) and words in outcome.message


def test_nothing_stays_mounted(runtime: ProcessRuntime, pod: Any, tmp_path: Path, image_store: Path) -> None:
    """On the machine neither a mount nor a file is left, and the image is as it was."""
    before = sorted((str(each), stat.S_IMODE(each.lstat().st_mode)) for each in image_store.rglob("*"))
    run(runtime, shell(pod, "echo x > /etc/new; sleep 0"))
    mounted = Path("/proc/self/mountinfo").read_text()
    assert str(tmp_path) not in mounted and str(image_store) not in mounted
    assert not (tmp_path / "volumes/u-1").exists()
    assert sorted((str(each), stat.S_IMODE(each.lstat().st_mode)) for each in image_store.rglob("*")) == before
