"""Containers as real processes in real cgroups."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from embedded.cgroups.hierarchy import Cgroups
from embedded.fault import KernelFault
from embedded.node.images.commands import Missing, Refused
from embedded.node.network.hosts_file import EndpointSliceObject
from embedded.node.objects.sources import SourceKind, SourceRef, Sources
from embedded.node.ports import Execution, Exit
from embedded.node.processes.container_process import ContainerProcess, heeds
from embedded.node.processes.mounting import namespaces_possible
from embedded.node.processes.preparation import Provision
from embedded.node.processes.runtime import ProcessRuntime

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
        runtime.make_pod(pod, Sources())
        process = runtime.start(pod, pod.spec.containers[0], 0, Sources())
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


@pytest.mark.parametrize(
    ("script", "end"),
    [
        pytest.param("echo up; exec sleep 1000", Exit(137), id="no handler, as most programs"),
        pytest.param("trap '' TERM; echo up; exec sleep 1000", Exit(137), id="ignored"),
        pytest.param("trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done", Exit(9), id="a handler"),
    ],
)
def test_terminate_as_process_1(runtime: ProcessRuntime, pod: Any, script: str, end: Exit) -> None:
    """A main process without a handler does not notice SIGTERM, which `terminate` tells; with one it decides itself."""
    built = pod(containers=shell(script))

    async def stop(process: ContainerProcess) -> None:
        await until(lambda: "up" in output(runtime, built))
        pid = process._main.pid
        await until(lambda: end.code == 9 or Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
        heeded = process.terminate()
        assert heeded == (end.code == 9)
        if not heeded:
            await asyncio.sleep(0.2)
            assert process._main.running
            process.kill()

    assert run(runtime, built, stop) == end


def test_terminate_before_the_command(runtime: ProcessRuntime, pod: Any) -> None:
    """A command that has not begun never begins."""
    built = pod(containers=shell("echo up"))

    async def stop(process: ContainerProcess) -> None:
        assert process.terminate()

    assert run(runtime, built, stop) == Exit(137)
    assert output(runtime, built) == ""


STATUS = "Name:\tx\nSigQ:\t1/2\nSigPnd:\t0000000000004000\nShdPnd:\t0000000000004000\nSigBlk:\t{}\nSigIgn:\t{}\nSigCgt:\t{}\n"
NONE, TERM = "0000000000000000", "0000000000004000"


@pytest.mark.parametrize(
    ("status", "heeded"),
    [
        pytest.param(STATUS.format(NONE, NONE, NONE), False, id="default action"),
        pytest.param(STATUS.format(NONE, NONE, TERM), True, id="handler"),
        pytest.param(STATUS.format(TERM, NONE, NONE), True, id="blocked, to be waited for"),
        pytest.param(STATUS.format(NONE, TERM, NONE), False, id="ignored"),
        pytest.param(STATUS.format(NONE, NONE, "ffffffffffffbfff"), False, id="handlers for all others"),
        pytest.param("", False, id="gone"),
    ],
)
def test_heeds(status: str, heeded: bool) -> None:
    """Process 1 notices a signal that it handles, or blocks."""
    assert heeds(status, signal.SIGTERM) is heeded


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


class HeldAtTheDoor(Cgroups):
    """Whoever enters a cgroup waits until somebody reads the pipe."""

    pipe: Path

    def procs_files(self, path: str) -> list[str]:
        return [str(self.pipe), *super().procs_files(path)]


def test_values_are_on_no_command_line(cgroups: Cgroups, pod: Any, tmp_path: Path) -> None:
    """Everyone on the machine reads those, also in the moment before the command runs."""
    held = HeldAtTheDoor(cgroups.layout)
    held.pipe = tmp_path / "pipe"
    os.mkfifo(held.pipe)
    runtime = ProcessRuntime(held, tmp_path, 2000, 4 << 30)
    runtime.make_node()
    built = pod(containers=shell('echo "$TOKEN"', env=[{"name": "TOKEN", "value": "a-secret"}]))

    async def look(process: ContainerProcess) -> None:
        files = (Path(f"/proc/{process._process.pid}/{name}") for name in ("cmdline", "environ"))
        assert b"a-secret" not in b"".join(file.read_bytes() for file in files)
        # Read to its end: a door that closes early would break the writer's pipe.
        assert held.pipe.read_text() == f"{process._process.pid}\n"

    assert run(runtime, built, look) == Exit(0)
    assert output(runtime, built) == "a-secret\n"


def test_a_path_with_an_equals_sign(runtime: ProcessRuntime, pod: Any, tmp_path: Path) -> None:
    """Is a command and no assignment; a name is looked up in the pod's PATH."""
    (tmp_path / "a=b").mkdir()
    (tmp_path / "a=b" / "say").write_text("#!/bin/sh\necho said\n")
    (tmp_path / "a=b" / "say").chmod(0o755)
    for command, path in ((f"{tmp_path}/a=b/say", "/bin"), ("say", f"{tmp_path}/a=b:/bin")):
        built = pod(containers=[{"command": [command], "env": [{"name": "PATH", "value": path}]}])
        assert run(runtime, built, nothing) == Exit(0)
    assert output(runtime, built) == "said\nsaid\n"


def test_signals_are_as_a_new_process_has_them(runtime: ProcessRuntime, pod: Any) -> None:
    """None ignored, none blocked: a writer ends with its reader."""
    built = pod(containers=[{"command": ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]}])
    run(runtime, built, nothing)
    # What Linux has below its real-time signals; the C library keeps two of those for itself.
    ordinary = (1 << 31) - 1
    assert [int(line.split()[1], 16) & ordinary for line in output(runtime, built).splitlines()] == [0, 0]


def test_what_cannot_be_executed_says_so(runtime: ProcessRuntime, pod: Any, tmp_path: Path) -> None:
    """In the container's log, with an exit code of its own."""
    (tmp_path / "odd").write_bytes(b"\0")
    (tmp_path / "odd").chmod(0o755)
    built = pod(containers=[{"command": [f"{tmp_path}/odd"]}])
    assert run(runtime, built, nothing) == Exit(125)
    assert "Exec format error" in output(runtime, built)


@pytest.mark.parametrize("taken", ["pods", "logs"])
def test_a_machine_that_refuses_files(cgroups: Cgroups, pod: Any, tmp_path: Path, taken: str) -> None:
    """A full disk and the like are the machine's fault: a KernelFault, so that the pod is tried again."""
    (tmp_path / taken).write_text("in the way")
    runtime, built = ProcessRuntime(cgroups, tmp_path, 2000, 4 << 30), pod()
    runtime.make_node()
    with pytest.raises(KernelFault):
        runtime.make_pod(built, Sources())
        runtime.start(built, built.spec.containers[0], 0, Sources())


def test_a_process_that_cannot_be_watched_is_ended(runtime: ProcessRuntime, cgroups: Cgroups, pod: Any) -> None:
    """Nobody would own it."""

    class FullLoop(asyncio.SelectorEventLoop):
        def add_reader(self, *arguments: Any) -> None:
            raise OSError(errno.ENOSPC, "no room for another watch")

    async def play() -> None:
        built = pod()
        runtime.make_pod(built, Sources())
        with pytest.raises(KernelFault, match="no room for another watch"):
            runtime.start(built, built.spec.containers[0], 0, Sources())

    with asyncio.Runner(loop_factory=FullLoop) as runner:
        runner.run(play())
    assert cgroups.members(cgroups.layout.prefix) == set()


@pytest.mark.parametrize(
    ("container", "kind", "words"),
    [
        pytest.param({"command": ["nonesuch"]}, Missing, "not found", id="no program"),
        pytest.param({"workingDir": "/nowhere"}, Missing, "/nowhere", id="no directory"),
        pytest.param({"envFrom": [{"secretRef": {"name": "s"}}]}, Refused, 'secret "s" not found', id="secret"),
    ],
)
def test_not_started(runtime: ProcessRuntime, pod: Any, container: dict[str, Any], kind: type, words: str) -> None:
    """What cannot run is told apart by whose fault it is, and leaves no cgroup."""
    built = pod(containers=[container])
    runtime.make_pod(built, Sources())
    outcome = runtime.start(built, built.spec.containers[0], 0, Sources())
    assert isinstance(outcome, kind) and words in outcome.message


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, "the condition never came true"
        await asyncio.sleep(0.01)


def test_execute(runtime: ProcessRuntime, cgroups: Cgroups, pod: Any) -> None:
    """A command runs in the container's cgroup and environment; one that takes too long is killed, children too."""
    built = pod(containers=shell("sleep 1000", env=[{"name": "WHO", "value": "me"}]))
    seen: list[Execution] = []

    async def ask(process: ContainerProcess) -> None:
        seen.append(await process.execute(["sh", "-c", "echo $WHO; cat /proc/self/cgroup; exit 3"], 30))
        seen.append(await process.execute(["sleep", "1000"], 0.05))
        seen.append(await process.execute(["sh", "-c", "sleep 1000 & head -c 1000000 /dev/zero"], 30))
        with pytest.raises(KernelFault, match="nonesuch"):
            await process.execute(["nonesuch"], 30)
        process.kill()

    run(runtime, built, ask)
    assert seen[0].code == 3 and seen[0].output.startswith(b"me\n") and b"/podu-1/" in seen[0].output
    assert seen[1].code is None
    assert (seen[2].code, len(seen[2].output)) == (0, 10 * 1024)
    assert cgroups.members(cgroups.layout.prefix) == set()


SCRIPT = """#!/bin/sh
cat /none/cfg/script | head -1
echo written > /none/data/file
echo "$(stat -f -c %T /none/mem) $(cat /sub/file) $(pwd)"
echo no > /none/cfg/x || echo no > /host/x
echo bye > /dev/termination-log
exit 5
"""


def test_volumes(runtime: ProcessRuntime, pod: Any, tmp_path: Path) -> None:
    """A container sees its volumes where it wants them; the machine sees nothing of it, and nothing stays."""
    if not namespaces_possible():
        pytest.skip("no mount namespaces here")
    host = tmp_path / "host"
    host.mkdir()
    volumes = [
        {"name": "cfg", "configMap": {"name": "c", "defaultMode": 0o755}},
        {"name": "data", "emptyDir": {}},
        {"name": "mem", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "host", "hostPath": {"path": str(host)}},
    ]
    mounts = [
        {"name": "cfg", "mountPath": "/none/cfg"},
        {"name": "data", "mountPath": "/none/data"},
        {"name": "mem", "mountPath": "/none/mem"},
        {"name": "data", "mountPath": "/sub"},
        {"name": "host", "mountPath": "/host", "readOnly": True},
    ]
    built = pod(
        volumes=volumes,
        containers=[{"command": ["/none/cfg/script"], "workingDir": "/none/data", "volumeMounts": mounts}],
    )
    sources = Sources({SourceRef(SourceKind.CONFIG_MAP, "c"): {"script": SCRIPT.encode()}})
    seen: list[str] = []

    async def play() -> Exit:
        runtime.make_pod(built, sources)
        process = runtime.start(built, built.spec.containers[0], 0, sources)
        assert isinstance(process, ContainerProcess)
        end = await asyncio.wait_for(process.wait(), 30)
        seen.append(runtime.termination_message(built, "main", 0))
        assert any(str(tmp_path) in line for line in Path("/proc/self/mountinfo").read_text().splitlines())
        await runtime.remove_pod(built)
        return end

    assert asyncio.run(play()) == Exit(5)
    lines = output(runtime, built).splitlines()
    assert lines[:2] == ["#!/bin/sh", "tmpfs written /none/data"]
    assert [line.rpartition(": ")[2] for line in lines[2:]] == ["Read-only file system"] * 2
    assert seen == ["bye\n"]
    assert (
        not Path("/none").exists() and not list(host.iterdir()) and not (tmp_path / "kubelet" / "pods" / "u-1").exists()
    )
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()


def test_execute_among_volumes(runtime: ProcessRuntime, pod: Any) -> None:
    """A hook or probe sees what its container sees, from the moment the container begins."""
    if not namespaces_possible():
        pytest.skip("no mount namespaces here")
    mounts = [{"name": "data", "mountPath": "/none/data"}]
    built = pod(volumes=[{"name": "data", "emptyDir": {}}], containers=shell("sleep 1000", volumeMounts=mounts))
    seen: list[Execution] = []

    async def ask(process: ContainerProcess) -> None:
        seen.append(await process.execute(["sh", "-c", "echo in > /none/data/x && ls /none"], 30))
        process.kill()

    run(runtime, built, ask)
    assert seen == [Execution(0, b"data\n")]


def test_what_a_pod_mounted_is_not_its_own(runtime: ProcessRuntime, pod: Any, tmp_path: Path) -> None:
    """A directory of the machine bound into HOME is unmounted, and keeps what it holds."""
    host = tmp_path / "host"
    host.mkdir()
    (host / "precious").write_text("mine")
    built = pod(containers=shell(f"mkdir $HOME/m && mount --bind {host} $HOME/m && ls $HOME/m"))
    run(runtime, built, nothing)
    if output(runtime, built) != "precious\n":
        pytest.skip("this machine lets nobody mount")
    assert (host / "precious").read_text() == "mine"
    assert not (tmp_path / "pods" / "u-1").exists()


def test_a_restart_keeps_what_pods_wrote(runtime: ProcessRuntime, pod: Any, tmp_path: Path) -> None:
    """In emptyDir volumes of pods that are still there; files from a ConfigMap are written again."""
    volumes = [
        {"name": "data", "emptyDir": {}},
        {"name": "mem", "emptyDir": {"medium": "Memory"}},
        {"name": "cfg", "configMap": {"name": "c", "defaultMode": 0o400}},
    ]
    built, root, ref = (
        pod(volumes=volumes),
        tmp_path / "kubelet" / "pods" / "u-1",
        SourceRef(SourceKind.CONFIG_MAP, "c"),
    )
    emptied = root / "volumes" / "kubernetes.io~empty-dir"
    runtime.make_pod(built, Sources({ref: {"old": b"1", "both": b"1"}}))
    for name in ("data", "mem"):
        (emptied / name / "file").write_text(name)
    runtime.keep_only({"u-1"})
    runtime.make_pod(built, Sources({ref: {"both": b"2"}}))
    assert [(emptied / name / "file").read_text() for name in ("data", "mem")] == ["data", "mem"]
    shown = [each for each in (root / "cfg").iterdir() if not each.name.startswith("..")]
    assert [(each.name, each.read_text()) for each in shown] == [("both", "2")]
    asyncio.run(runtime.remove_pod(built))
    assert not root.exists()


def test_only_declared_variables_are_put_in(runtime: ProcessRuntime, pod: Any) -> None:
    """`$(HOME)` stays as written, as under any kubelet, unless env says what it is."""
    command = {"command": ["echo", "$(HOSTNAME) $(PATH) $(A)"], "env": [{"name": "A", "value": "a"}]}
    built = pod(containers=[command])
    run(runtime, built, nothing)
    assert output(runtime, built) == "$(HOSTNAME) $(PATH) a\n"


def test_what_a_dead_node_left_mounted_goes(runtime: ProcessRuntime, pod: Any, tmp_path: Path) -> None:
    """The next start removes volumes of pods that are gone, memory ones included."""
    built = pod(volumes=[{"name": "mem", "emptyDir": {"medium": "Memory"}}])
    runtime.make_pod(built, Sources())
    assert (tmp_path / "kubelet/pods/u-1/volumes/kubernetes.io~empty-dir/mem").is_mount()
    runtime.keep_only(set())
    assert not (tmp_path / "kubelet" / "pods" / "u-1").exists()


def test_resize(runtime: ProcessRuntime, cgroups: Cgroups, pod: Any) -> None:
    """A running container and its pod get other values, up and down; what is held in memory is not cut into."""

    def sized(cpu: str, memory: str) -> Any:
        resources = {"requests": {"cpu": cpu, "memory": "8Mi"}, "limits": {"cpu": cpu, "memory": memory}}
        script = "python3 -c \"b = bytearray(64 << 20); print('up', flush=True); import time; time.sleep(1000)\""
        return pod(containers=shell(script, image="python:3", resources=resources))

    first = sized("500m", "128Mi")
    path = f"{cgroups.layout.kubepods}/burstable/podu-1"
    seen: list[tuple[str, ...]] = []

    async def resize(process: ContainerProcess) -> None:
        await until(lambda: "up" in output(runtime, first))
        held = first
        for wanted in (sized("1500m", "256Mi"), sized("250m", "96Mi")):
            runtime.bound_pod(wanted, held)
            runtime.resize(wanted, wanted.spec.containers[0], process.container_id)
            runtime.bound_pod(wanted, wanted)
            held = wanted
            for each in (path, f"{path}/{process.container_id}"):
                knobs = (("cpu", "cpu.shares"), ("cpu", "cpu.cfs_quota_us"), ("memory", "memory.limit_in_bytes"))
                seen.append(tuple((cgroups.read(controller, each, knob) or "").strip() for controller, knob in knobs))
        small = sized("250m", "16Mi")
        runtime.bound_pod(small, held)
        with pytest.raises(KernelFault, match=r'attempting to set container "main" memory limit \(16777216\) below'):
            runtime.resize(small, small.spec.containers[0], process.container_id)
        process.kill()

    assert run(runtime, first, resize) == Exit(137)
    assert seen == [("1536", "150000", str(256 << 20))] * 2 + [("256", "25000", str(96 << 20))] * 2


def test_peers_of_a_pod_with_a_subdomain(cgroups: Cgroups, tmp_path: Path, pod: Any) -> None:
    """Containers on the machine's own files find pods below a headless Service, and what the machine knows, too."""
    if not namespaces_possible():
        pytest.skip("containers cannot have mounts of their own on this machine")
    labels = {"kubernetes.io/service-name": "train"}
    told = {
        "metadata": {"namespace": "shop", "labels": labels},
        "endpoints": [{"addresses": ["127.65.0.9"], "hostname": "w1"}],
    }
    provision = Provision(slices=lambda: [msgspec.convert(told, EndpointSliceObject)])
    runtime = ProcessRuntime(cgroups, tmp_path, 2000, 4 << 30, provision)
    runtime.make_node()
    script = "getent hosts w1.train | grep -q 127.65.0.9 && getent hosts localhost"
    built = pod(containers=shell(script, **PYTHON), subdomain="train", hostname="w0")
    assert run(runtime, built, nothing).code == 0
