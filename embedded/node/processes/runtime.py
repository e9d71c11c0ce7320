"""Containers as plain processes of this machine, each in its own cgroup from its first instruction on."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import msgspec
import structlog

from embedded.cgroups.ceilings import Ceiling, shares
from embedded.cgroups.hierarchy import Cgroups
from embedded.cgroups.knobs import Use
from embedded.fault import KernelFault
from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.images.commands import Missing, Refused
from embedded.node.logs import files
from embedded.node.network.addresses import Addresses, pod_range
from embedded.node.network.listeners import listening
from embedded.node.objects.pod import PodContainer, PodObject
from embedded.node.objects.pod_resources import container_ceiling, oom_score, pod_ceiling, qos_class
from embedded.node.objects.sources import Sources
from embedded.node.processes import mounting
from embedded.node.processes.attachment import MainStreams
from embedded.node.processes.container_process import ContainerProcess, Program
from embedded.node.processes.preparation import Preparation, Provision
from embedded.node.processes.spawning import spawn
from embedded.node.volumes import container_mounts, volumes
from embedded.node.volumes.host_view import HostView
from embedded.node.volumes.volumes import Places
from embedded.resources import CPU, MEMORY, ResourceVector

log = structlog.get_logger()


class Place(msgspec.Struct, frozen=True):
    """The node's number on its machine, and what is shown of the machine where the node is not all of it.

    `routed` says from which addresses its pods have theirs; see addresses.
    """

    number: int = 1
    shown: Path | None = None
    routed: bool = False


# The kubelet's limit for one container's termination message.
_MESSAGE_BYTES = 4096


class ProcessRuntime:
    """Runs pods under the layout's kubepods. `cpu_millis` and `memory_bytes` are this machine's.

    `place` is where the node stands among others: its part of the addresses, and of the machine as pods see it.
    """

    def __init__(
        self,
        cgroups: Cgroups,
        run_dir: Path,
        cpu_millis: int,
        memory_bytes: int,
        provision: Provision | None = None,
        place: Place | None = None,
    ) -> None:
        self._cgroups = cgroups
        self._layout = cgroups.layout
        self._run_dir = run_dir
        self._cpu_millis = cpu_millis
        self._memory_bytes = memory_bytes
        self._allocatable = ResourceVector({CPU: cpu_millis, MEMORY: memory_bytes})
        self._logs = files.LogKeeper()
        here = place or Place()
        self._addresses = Addresses(pod_range(here.number, routed=here.routed))
        self._host = HostView(run_dir, cgroups.layout, here.shown)
        self._preparation = Preparation(run_dir, self._host, provision or Provision(), self._allocatable)
        self._named: dict[str, PodObject] = {}

    def make_node(self) -> None:
        """The cgroups above all pods, with the kubelet's values. Raises KernelFault."""
        for qos in KubernetesQoS:
            self._cgroups.create(self._layout.qos(qos))
        self._host.make()
        self._cgroups.set_ceiling(
            self._layout.kubepods, Ceiling(shares(self._cpu_millis), memory_limit_bytes=self._memory_bytes)
        )
        self.set_burstable(0)
        self.hold_best_effort()

    def hold_best_effort(self) -> None:
        """Weight 2 for BestEffort, written again only if somebody changed it; its quota is never touched."""
        self._cgroups.hold_shares(self._layout.qos(KubernetesQoS.BEST_EFFORT), shares(0))

    def set_burstable(self, cpu_millis: int) -> None:
        self._cgroups.hold_shares(self._layout.qos(KubernetesQoS.BURSTABLE), shares(cpu_millis))

    def adapted(self, pod: PodObject) -> PodObject:
        """The pod as it runs here: with its addresses, and without a token nobody reads."""
        trimmed = container_mounts.without_unread_tokens(pod, self._preparation.has_image)
        addresses = {"pod_ip": self._addresses.take(pod), "host_ip": self._addresses.host}
        status = msgspec.structs.replace(trimmed.status, **addresses)
        return msgspec.structs.replace(trimmed, status=status)

    def make_pod(self, pod: PodObject, sources: Sources) -> None:
        path = self._pod_path(pod)
        self._cgroups.create(path)
        self._cgroups.set_ceiling(path, pod_ceiling(pod))
        try:
            self._home(pod).mkdir(parents=True, exist_ok=True, mode=0o700)
            mounting.set_up(pod, self._places(pod))
            volumes.set_up(pod, self._places(pod), sources, self._allocatable)
            if self._preparation.needs_etc(pod):
                self._preparation.write_etc(pod)
                self._named[pod.uid] = pod
        except OSError as error:
            raise KernelFault(error.filename or str(self._home(pod)), f"cannot be made: {error.strerror}") from error

    def bound_pod(self, pod: PodObject, held: PodObject) -> None:
        path, ceiling = self._pod_path(pod), pod_ceiling(pod).widest(pod_ceiling(held))
        self._check_memory("pod", path, ceiling)
        self._cgroups.set_ceiling(path, ceiling)

    def resize(self, pod: PodObject, container: PodContainer, container_id: str) -> None:
        path, ceiling = self._layout.container(qos_class(pod), pod.uid, container_id), container_ceiling(container)
        self._check_memory(f'container "{container.name}"', path, ceiling)
        self._cgroups.set_ceiling(path, ceiling)

    def _check_memory(self, what: str, path: str, ceiling: Ceiling) -> None:
        """The kernel would kill, or refuse, as the kubelet knows, too (`validateMemoryResizeAction`)."""
        limit, use = ceiling.memory_limit_bytes, self._cgroups.use(path)
        if limit is not None and use is not None and use.working_set_bytes > limit:
            amounts = f"memory limit ({limit}) below current usage ({use.working_set_bytes})"
            raise KernelFault(path, f"attempting to set {what} {amounts}")

    def write_files(self, pod: PodObject, sources: Sources) -> None:
        """What the pod's volumes are to hold now; a volume that holds it already is left alone."""
        volumes.write_files(pod, self._places(pod), sources, self._allocatable)

    def write_names(self) -> None:
        """Services, or who is behind them, have changed: so have the names that containers know."""
        for pod in self._named.values():
            try:
                self._preparation.write_etc(pod)
            except OSError as error:
                log.warning("hosts file not written", pod=pod.full_name, error=str(error))

    def start(
        self, pod: PodObject, container: PodContainer, restart_count: int, sources: Sources
    ) -> ContainerProcess | Refused | Missing:
        try:
            program = self._preparation.prepare(pod, container, restart_count, sources)
            if not isinstance(program, Program):
                return program
            # First what a full disk refuses: then no cgroup is left over.
            file = self.log_file(pod, container.name, restart_count)
            output = files.open_log(file)
            try:
                streams = MainStreams(container, output, file)
                process = self._launch(pod, container, program, streams)
            finally:
                os.close(output)
            self._logs.add(file)
            return process
        except OSError as error:
            raise KernelFault(f"container {container.name}", f"cannot be started: {error}") from error

    def _launch(
        self, pod: PodObject, container: PodContainer, program: Program, streams: MainStreams
    ) -> ContainerProcess:
        container_id = secrets.token_hex(32)
        qos = qos_class(pod)
        path = self._layout.container(qos, pod.uid, container_id)
        self._cgroups.create(path)
        self._cgroups.set_container(path, container_ceiling(container))
        score = oom_score(container, qos, self._memory_bytes)
        launch = program.launch(score, self._cgroups.procs_files(path), self._cgroups.mark(path))
        stdin, output = streams.numbers
        try:
            spawned = spawn(launch, output, stdin=stdin)
        except OSError:
            streams.close()
            raise
        try:
            return ContainerProcess(container_id, path, spawned, self._cgroups, launch, program.find, streams)
        except OSError:
            streams.close()
            # Nobody would ever end or reap what cannot be watched.
            os.close(spawned.door)
            spawned.process.kill()
            self._cgroups.kill(path)
            spawned.process.wait()
            raise

    def look_at_logs(self) -> None:
        """To be called every `logs.files.LOOK_SECONDS`: times of lines, and rotation."""
        self._logs.look()

    def container_ended(self, pod: PodObject, container: str, restart_count: int) -> None:
        self._logs.remove(self.log_file(pod, container, restart_count))

    def termination_message(self, pod: PodObject, container: str, restart_count: int) -> str:
        try:
            with self._places(pod).message(container, restart_count).open("rb") as file:
                return file.read(_MESSAGE_BYTES).decode(errors="replace")
        except OSError:
            return ""

    def use(self, pod: PodObject, container_id: str = "") -> Use | None:
        """Of the pod, or of one running container."""
        qos = qos_class(pod)
        path = self._layout.container(qos, pod.uid, container_id) if container_id else self._layout.pod(qos, pod.uid)
        return self._cgroups.use(path)

    def use_of_all(self) -> Use | None:
        """Of all pods together."""
        return self._cgroups.use(self._layout.kubepods)

    def processes(self, pod: PodObject) -> int:
        return len(self._cgroups.members(self._pod_path(pod)))

    def listeners(self, pod: PodObject, port: int) -> list[str]:
        """Addresses at which a process of the pod, and no other, listens on a TCP port."""
        return listening(self._cgroups.members(self._pod_path(pod)), port)

    def disk_bytes(self, pod: PodObject) -> int:
        """Logs, volumes and the private directory; walks the trees."""
        trees = (files.pod_directory(self._run_dir, pod), self._places(pod).root, self._home(pod))
        return sum(files.tree_bytes(each) for each in trees)

    async def remove_pod(self, pod: PodObject) -> None:
        await self._cgroups.remove(self._pod_path(pod))
        self._named.pop(pod.uid, None)
        self._addresses.release(pod)
        mounting.remove(self._home(pod))
        mounting.remove(self._places(pod).root)

    def remove_logs(self, pod: PodObject) -> None:
        mounting.remove(files.pod_directory(self._run_dir, pod))

    def keep_only(self, uids: set[str]) -> None:
        """Logs are named by uid at the end; private directories do not outlive the processes that used them."""
        mounting.remove(self._run_dir / "pods")
        for directory in (*(self._run_dir / "kubelet" / "pods").glob("*"), *(self._run_dir / "logs").glob("*")):
            if directory.name.rpartition("_")[2] not in uids:
                mounting.remove(directory)

    def log_file(self, pod: PodObject, container: str, restart_count: int) -> Path:
        return files.log_file(self._run_dir, pod, container, restart_count)

    def _pod_path(self, pod: PodObject) -> str:
        return self._layout.pod(qos_class(pod), pod.uid)

    def _home(self, pod: PodObject) -> Path:
        return self._preparation.home(pod)

    def _places(self, pod: PodObject) -> Places:
        return self._preparation.places(pod)
