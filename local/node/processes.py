"""Containers as plain processes of this machine, each in its own cgroup from its first instruction on."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import structlog

from local.node import entry, environment, images, logs, volumes
from local.node.cgroups import Cgroups
from local.node.images import Missing, Refused
from local.node.podobject import PodContainer, PodObject
from local.node.ports import Exit
from local.node.resources import Ceiling, container_ceiling, oom_score, pod_ceiling, qos_class, shares
from model.fault import KernelFault
from model.qos import KubernetesQoS

log = structlog.get_logger()

# An interpreter of its own for the moment before the command: no site packages, no variables, so it starts in 7 ms.
_ENTRY = [sys.executable, "-I", "-S", str(Path(entry.__file__))]


class _Program(msgspec.Struct, frozen=True):
    """What a container runs; the command begins with an absolute path."""

    directory: Path
    command: list[str]
    variables: dict[str, str]


class ContainerProcess:
    """One container: its main process and whatever that started."""

    def __init__(self, container_id: str, path: str, process: subprocess.Popen[bytes], cgroups: Cgroups) -> None:
        self.container_id = container_id
        self._path = path
        self._process = process
        self._cgroups = cgroups
        self._pidfd = os.pidfd_open(process.pid)
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(self._pidfd, self._on_end)

    async def wait(self) -> Exit:
        """The end of the main process ends the container, as the end of process 1 ends a PID namespace."""
        await self._ended
        code = self._process.wait()
        out_of_memory = self._cgroups.oom_kills(self._path) > 0
        await self._cgroups.remove(self._path)
        return Exit(128 - code if code < 0 else code, out_of_memory)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        # The main process may have been started a moment ago and not be inside yet.
        self._signal(signal.SIGKILL)
        self._cgroups.kill(self._path)

    def _signal(self, number: signal.Signals) -> None:
        if not self._ended.done():
            signal.pidfd_send_signal(self._pidfd, number)

    def _on_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        if not self._ended.done():
            self._ended.set_result(None)


class ProcessRuntime:
    """Runs pods under the layout's kubepods. `cpu_millis` and `memory_bytes` are this machine's."""

    def __init__(self, cgroups: Cgroups, run_dir: Path, cpu_millis: int, memory_bytes: int) -> None:
        self._cgroups = cgroups
        self._layout = cgroups.layout
        self._run_dir = run_dir
        self._cpu_millis = cpu_millis
        self._memory_bytes = memory_bytes

    def make_node(self) -> None:
        """The cgroups above all pods, with the kubelet's values. Raises KernelFault."""
        for qos in KubernetesQoS:
            self._cgroups.create(self._layout.qos(qos))
        self._cgroups.set_ceiling(
            self._layout.kubepods, Ceiling(shares(self._cpu_millis), memory_limit_bytes=self._memory_bytes)
        )
        self.set_burstable(0)
        self.hold_best_effort()

    def hold_best_effort(self) -> None:
        """Weight 2 for BestEffort, written again only if somebody changed it; its quota is never touched."""
        path = self._layout.qos(KubernetesQoS.BEST_EFFORT)
        current = self._cgroups.read("cpu", path, "cpu.shares")
        if current is not None and current.strip() != str(shares(0)):
            self._cgroups.write("cpu", path, "cpu.shares", shares(0))

    def set_burstable(self, cpu_millis: int) -> None:
        self._cgroups.write("cpu", self._layout.qos(KubernetesQoS.BURSTABLE), "cpu.shares", shares(cpu_millis))

    def make_pod(self, pod: PodObject) -> None:
        path = self._pod_path(pod)
        self._cgroups.create(path)
        self._cgroups.set_ceiling(path, pod_ceiling(pod))
        try:
            self._home(pod).mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise KernelFault(str(self._home(pod)), f"cannot be made: {error.strerror}") from error

    def start(
        self, pod: PodObject, container: PodContainer, restart_count: int
    ) -> ContainerProcess | Refused | Missing:
        try:
            program = self._prepared(pod, container)
            if not isinstance(program, _Program):
                return program
            # First what a full disk refuses: then no cgroup is left over.
            output = logs.open_log(self.log_file(pod, container.name, restart_count))
            try:
                return self._launch(pod, container, program, output)
            finally:
                os.close(output)
        except OSError as error:
            raise KernelFault(f"container {container.name}", f"cannot be started: {error}") from error

    def _prepared(self, pod: PodObject, container: PodContainer) -> _Program | Refused | Missing:
        home = self._home(pod)
        if container.restart_policy == "Always":
            return Refused(
                "CreateContainerConfigError", "sidecars (restartPolicy of an init container) are not supported"
            )
        refused = volumes.refusal(pod, container)
        if refused:
            return Refused("CreateContainerConfigError", refused)
        try:
            variables = environment.environment(pod, container, images.search_path(container.image), str(home))
        except environment.Unsupported as error:
            return Refused("CreateContainerConfigError", str(error))
        directory = Path(environment.expand(container.working_dir or str(home), variables))
        if not directory.is_dir():
            return Missing(f"chdir to cwd ({directory}) set in config.json failed: no such file or directory")
        command = images.resolve(container, variables, images.find_from(directory))
        if isinstance(command, Refused | Missing):
            return command
        return _Program(directory, command, variables)

    def _launch(self, pod: PodObject, container: PodContainer, program: _Program, output: int) -> ContainerProcess:
        container_id = secrets.token_hex(32)
        qos = qos_class(pod)
        path = self._layout.container(qos, pod.uid, container_id)
        self._cgroups.create(path)
        self._cgroups.set_ceiling(path, container_ceiling(container))
        score = oom_score(container, qos, self._memory_bytes)
        launch = entry.launch_file((str(score), self._cgroups.procs_files(path), program.command, program.variables))
        try:
            process = subprocess.Popen(
                [*_ENTRY, str(launch)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=program.directory,
                env={},
                pass_fds=[launch],
                start_new_session=True,
            )
        finally:
            os.close(launch)
        return self._watched(process, container_id, path)

    def _watched(self, process: subprocess.Popen[bytes], container_id: str, path: str) -> ContainerProcess:
        try:
            return ContainerProcess(container_id, path, process, self._cgroups)
        except OSError:
            # Nobody would ever end or reap what cannot be watched.
            process.kill()
            self._cgroups.kill(path)
            process.wait()
            raise

    async def remove_pod(self, pod: PodObject) -> None:
        await self._cgroups.remove(self._pod_path(pod))
        shutil.rmtree(self._home(pod), ignore_errors=True)

    def remove_logs(self, pod: PodObject) -> None:
        shutil.rmtree(logs.pod_directory(self._run_dir, pod), ignore_errors=True)

    def keep_only(self, uids: set[str]) -> None:
        """Logs are named by uid at the end; private directories do not outlive the processes that used them."""
        shutil.rmtree(self._run_dir / "pods", ignore_errors=True)
        for directory in (self._run_dir / "logs").glob("*"):
            if directory.name.rpartition("_")[2] not in uids:
                shutil.rmtree(directory, ignore_errors=True)

    def log_file(self, pod: PodObject, container: str, restart_count: int) -> Path:
        return logs.log_file(self._run_dir, pod, container, restart_count)

    def _pod_path(self, pod: PodObject) -> str:
        return self._layout.pod(qos_class(pod), pod.uid)

    def _home(self, pod: PodObject) -> Path:
        """The pod's private directory: HOME and, without workingDir, where its containers start."""
        return self._run_dir / "pods" / pod.uid
