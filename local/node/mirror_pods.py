"""Sublet's own programs as static pods of this node: the API server has a mirror of each, which says how it fares.

Who deletes a mirror ends nothing: it comes back, as a kubelet's does. A mirror of something that this node does not run
goes. The programs are no pods: they ask for nothing, have no cgroup below kubepods, and are what the node itself uses.

Source: kubernetes pkg/kubelet/pod/mirror_client.go, pkg/kubelet/config/common.go.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec
import psutil
import structlog

from embedded.cgroups.knobs import Use
from embedded.fault import KubernetesFault
from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.logs import files
from embedded.node.objects.pod import NodeObject, PodObject
from embedded.node.objects.times import moment
from embedded.node.pods.pod_status import pod_status
from embedded.node.pods.pod_view import ContainerView, PodView, Running, Terminated, Waiting
from embedded.node.pods.statistics import ResourceUsage, RunningPod
from embedded.node.pods.status_reporting import ready_of
from embedded.node.processes import mounting
from kube.informer import Change, ChangeKind
from local.probing import ProbeAddress, unanswered
from local.programkind import ProgramKind
from local.staticprograms import ProgramRun, StaticProgram, read_programs
from model.condition import ConditionType

log = structlog.get_logger()

NAMESPACE = "koordinator-system"
"""Where the published guides look for the programs."""
MIRROR, HASH = "kubernetes.io/config.mirror", "kubernetes.io/config.hash"
_SECONDS = 1.0
_PROBE_SECONDS = 2.0
_COPIED_BYTES = 10 << 20
_LISTED = {
    ProgramKind.AGENT: "koordlet",
    ProgramKind.SCHEDULER: "koord-scheduler",
    ProgramKind.ADMISSION: "koord-manager",
}
"""Which program of Koordinator's does the same work."""


class MirrorApi(Protocol):
    """What of the API server it takes; every method but `record` raises KubernetesFault."""

    async def create_pod(self, body: dict[str, Any]) -> None: ...

    async def delete_pod(self, pod: PodObject) -> None: ...

    async def patch_pod_status(self, pod: PodObject, status: dict[str, Any]) -> None: ...

    def record(self, pod: PodObject, reason: str, message: str, *, warning: bool = False) -> None: ...


class _Mirror(msgspec.Struct):
    """One pod of the API server's, and what was said there last."""

    pod: PodObject
    status: dict[str, Any] | None = None
    restarts: int | None = None
    file: Path | None = None


def is_mirror(pod: PodObject) -> bool:
    """Whether the pod stands for something that the node runs of its own accord."""
    return MIRROR in (pod.metadata.annotations or {})


def name_of(program: StaticProgram) -> str:
    """As of every static pod: the node's name comes last."""
    return f"sublet-{program.name}-{program.node}"


def mirror_of(program: StaticProgram, node_uid: str) -> dict[str, Any]:
    """The pod that stands for a program; the same over its restarts."""
    asked = {"host": program.host, "port": program.port, "scheme": "HTTP"}
    probes: dict[str, Any] = {}
    if program.port:
        probes = {
            "livenessProbe": {"httpGet": {"path": "/healthz", **asked}, "periodSeconds": 10},
            "readinessProbe": {"httpGet": {"path": "/readyz", **asked}, "periodSeconds": int(_PROBE_SECONDS)},
        }
    container = {"name": program.name, "image": "sublet", "command": ["python", "-m", program.name], **probes}
    spec = {
        "containers": [container],
        "nodeName": program.node,
        "hostNetwork": True,
        "hostPID": True,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
        "automountServiceAccountToken": False,
    }
    hash_ = hashlib.sha256(msgspec.json.encode(spec, order="deterministic")).hexdigest()[:32]
    owner = {"apiVersion": "v1", "kind": "Node", "name": program.node, "uid": node_uid, "controller": True}
    metadata = {
        "name": name_of(program),
        "namespace": NAMESPACE,
        "labels": {
            "app.kubernetes.io/name": f"sublet-{program.name}",
            "app.kubernetes.io/part-of": "sublet",
            "koord-app": _LISTED[program.name],
            "koordinator.sh/qosClass": "SYSTEM",
        },
        "annotations": {MIRROR: hash_, HASH: hash_, "kubernetes.io/config.source": "file"},
        "ownerReferences": [owner],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


class Mirrors:
    """`observe` takes the informer's changes; `run` keeps the API server's pods equal to what the file says.

    `node` is our Node as last seen, `address` its own. Pods are known by `namespace/name`.
    """

    def __init__(
        self,
        api: MirrorApi,
        file: Path | None,
        run_dir: Path,
        node: Callable[[], NodeObject | None],
        address: str,
        now: Callable[[], datetime],
    ) -> None:
        self._api = api
        self._file = file
        self._run_dir = run_dir
        self._node = node
        self._address = address
        self._now = now
        self._keeper = files.LogKeeper()
        self._mirrors: dict[str, _Mirror] = {}
        self._programs: dict[str, StaticProgram] = {}
        self._ready: dict[str, tuple[int, bool]] = {}
        self._told = ""
        self._changed = asyncio.Event()

    def observe(self, change: Change[PodObject]) -> None:
        """A mirror came, changed or went."""
        pod = change.object
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        held = self._mirrors.get(key)
        if change.kind is ChangeKind.DELETED:
            if held is not None and held.pod.uid == pod.uid:
                self._forget(self._mirrors.pop(key))
        elif held is not None and held.pod.uid == pod.uid:
            held.pod = pod
            if held.status is not None and ready_of(held.status) != _shown_ready(pod):
                held.status = None  # a node that was thought dead had it taken away, and is to say it again
        else:
            if held is not None:
                self._forget(held)
            self._mirrors[key] = _Mirror(pod)
        self._changed.set()

    async def run(self) -> None:
        """Never returns, and never raises a KubernetesFault."""
        probing = asyncio.create_task(self._probe_all())
        try:
            while True:
                self._changed.clear()
                await self.settle()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), _SECONDS)
        finally:
            probing.cancel()

    async def settle(self) -> None:
        """One look at the file, and what follows from it at the API server."""
        node = self._node()
        found = read_programs(self._file, node.metadata.name) if self._file and node else ()
        if found is None or node is None:
            return
        self._programs = {f"{NAMESPACE}/{name_of(each)}": each for each in found}
        try:
            for key, mirror in list(self._mirrors.items()):
                if key not in self._programs:
                    await self._api.delete_pod(mirror.pod)
            for key, program in self._programs.items():
                await self._keep(key, mirror_of(program, node.metadata.uid), program)
            self._told = ""
        except KubernetesFault as fault:
            if str(fault) != self._told:
                log.warning("mirror pods wait", error=str(fault))
            self._told = str(fault)
        self._keeper.look()

    async def _keep(self, key: str, wanted: dict[str, Any], program: StaticProgram) -> None:
        mirror = self._mirrors.get(key)
        if mirror is None:
            await self._api.create_pod(wanted)
            return
        held = (mirror.pod.metadata.annotations or {}).get(MIRROR)
        if mirror.pod.deleting or mirror.pod.terminal or held != wanted["metadata"]["annotations"][MIRROR]:
            await self._api.delete_pod(mirror.pod)
            return
        self._follow_log(mirror, program)
        self._tell(mirror, program)
        status = self._status(mirror.pod, program)
        if status != mirror.status:
            await self._api.patch_pod_status(mirror.pod, status)
            mirror.status = status

    def _status(self, pod: PodObject, program: StaticProgram) -> dict[str, Any]:
        view = PodView(
            KubernetesQoS.BEST_EFFORT,
            moment(pod.status.start_time) or self._now(),
            (self._view(pod, program),),
            address=self._address,
            host_address=self._address,
        )
        return pod_status(view, "Always", pod.status.conditions or [], self._now())

    def _view(self, pod: PodObject, program: StaticProgram) -> ContainerView:
        """The container: its run is the program's."""
        run, restarts = program.run, program.restarts
        own = ContainerView(program.name, "sublet", restart_count=restarts, started=not run.over)
        if run.over:
            words = f"back-off restarting failed container={program.name} pod={pod.full_name}"
            waiting = Waiting("CrashLoopBackOff", words)
            return msgspec.structs.replace(own, state=waiting, last=_ended(program, run, restarts))
        previous = program.previous
        return msgspec.structs.replace(
            own,
            state=Running(_at(run.started_seconds)),
            last=_ended(program, previous, restarts - 1) if previous else None,
            container_id=_container_id(program, restarts),
            ready=self._ready.get(name_of(program)) == (run.pid, True),
        )

    def _tell(self, mirror: _Mirror, program: StaticProgram) -> None:
        """Events, where it began or ended since they were told last."""
        state = program.restarts * 2 + program.run.over
        if mirror.restarts is not None and state > mirror.restarts:
            pod = _static(mirror.pod)
            if program.run.over:
                words = f"Back-off restarting failed container {program.name} in pod {mirror.pod.full_name}"
                self._api.record(pod, "BackOff", words, warning=True)
            else:
                self._api.record(pod, "Started", f"Container started: {program.name}")
        mirror.restarts = state

    async def _probe_all(self) -> None:
        while True:
            await asyncio.gather(*(self._probe(each) for each in list(self._programs.values()) if not each.run.over))
            await asyncio.sleep(_PROBE_SECONDS)

    async def _probe(self, program: StaticProgram) -> None:
        door = ProbeAddress(program.host, program.port, socket=program.socket)
        ready = not await unanswered(door, 1.0, "/readyz")
        if self._ready.get(name_of(program)) != (program.run.pid, ready):
            self._ready[name_of(program)] = program.run.pid, ready
            self._changed.set()

    # -- logs --------------------------------------------------------------------------------------------------

    def _follow_log(self, mirror: _Mirror, program: StaticProgram) -> None:
        """The kubelet's file of this run is a link to the program's own; what the run before said is kept beside it."""
        file = files.log_file(self._run_dir, mirror.pod, program.name, program.restarts)
        if mirror.file == file:
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        if mirror.file is not None:
            self._keeper.remove(mirror.file)
        if program.previous is not None:
            before = files.log_file(self._run_dir, mirror.pod, program.name, program.restarts - 1)
            before.unlink(missing_ok=True)
            before.write_bytes(_slice(Path(program.log), program.previous.log_begin, program.run.log_begin))
        file.unlink(missing_ok=True)
        file.symlink_to(program.log)
        files.write_begin(file, program.run.log_begin)
        self._keeper.add(file)
        mirror.file = file

    def _forget(self, mirror: _Mirror) -> None:
        if mirror.file is not None:
            self._keeper.remove(mirror.file)
        mounting.remove(files.pod_directory(self._run_dir, mirror.pod))

    def log_file(self, namespace: str, name: str, container: str, *, previous: bool) -> Path | str | None:
        """A program's output, or a sentence why there is none; None where the pod is no mirror."""
        mirror, program = self._mirrors.get(f"{namespace}/{name}"), self._programs.get(f"{namespace}/{name}")
        if mirror is None or program is None:
            return None
        if container != program.name:
            return f"container {container} is not valid for pod {name}"
        file = files.log_file(self._run_dir, mirror.pod, container, program.restarts - (1 if previous else 0))
        if file.exists():
            return file
        if previous:
            return f'previous terminated container "{container}" in pod "{name}" not found'
        return f'container "{container}" in pod "{name}" is waiting to start: ContainerCreating'

    def running(self, namespace: str, name: str, container: str) -> bool | None:
        """Whether the program may write more; None where the pod is no mirror."""
        program = self._programs.get(f"{namespace}/{name}")
        return None if program is None else container == program.name and not program.run.over

    def objection(self, namespace: str, name: str) -> str | None:
        """Why nothing can be started in the pod, nor reached through it; None where it is no mirror."""
        if f"{namespace}/{name}" not in self._programs:
            return None
        # No colon: what YAML takes for an object a real API server takes for one of its own, and shows none of it.
        return (
            f"pod {name} shows a program that sublet up runs outside of pods, which cannot be entered; "
            "kubectl logs has its output, endpoints.json in the directory of sublet up its addresses"
        )

    # -- use ---------------------------------------------------------------------------------------------------

    def living(self) -> Iterator[RunningPod]:
        """The mirrors of programs that run."""
        for key, mirror in self._mirrors.items():
            program = self._programs.get(key)
            if program is not None and not program.run.over:
                yield RunningPod(mirror.pod, (self._view(mirror.pod, program),))

    def use(self, pod: PodObject) -> Use | None:
        """What a program and the processes it started use; None where the pod is no mirror, or nothing runs."""
        program = self._programs.get(f"{pod.metadata.namespace}/{pod.metadata.name}")
        return use_of_processes(program.run.pid) if program is not None and not program.run.over else None


class WithMirrors:
    """What runs on the node, the programs that are no pods of it included."""

    def __init__(self, uses: ResourceUsage, mirrors: Mirrors) -> None:
        self._uses = uses
        self._mirrors = mirrors

    def use(self, pod: PodObject, container_id: str = "") -> Use | None:
        """A program is the one container of its pod."""
        return self._mirrors.use(pod) if is_mirror(pod) else self._uses.use(pod, container_id)

    def use_of_all(self) -> Use | None:
        return self._uses.use_of_all()


def use_of_processes(pid: int) -> Use | None:
    """CPU time and resident memory of a process and of those below it; pages that several share count for each."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.Error:
        return None
    cpu, memory = 0.0, 0
    for each in family:
        with suppress(psutil.Error):
            times = each.cpu_times()
            cpu += times.user + times.system + (times.children_user + times.children_system)
            memory += each.memory_info().rss
    return Use(round(cpu * 1e9), memory, memory)


def _static(mirror: PodObject) -> PodObject:
    """What Events are about, whatever mirror stands for it at the time: kubectl describe asks for those of the hash."""
    uid = (mirror.metadata.annotations or {})[MIRROR]
    return msgspec.structs.replace(mirror, metadata=msgspec.structs.replace(mirror.metadata, uid=uid))


def _shown_ready(pod: PodObject) -> str | None:
    return next((each.status for each in pod.status.conditions or () if each.type == ConditionType.READY), None)


def _ended(program: StaticProgram, run: ProgramRun, restarts: int) -> Terminated:
    code = 128 - run.exit_code if run.exit_code < 0 else run.exit_code
    return Terminated(
        code,
        "Completed" if code == 0 else "Error",
        _at(run.ended_seconds) if run.over else None,
        _at(run.started_seconds),
        _container_id(program, restarts),
    )


def _container_id(program: StaticProgram, restarts: int) -> str:
    return f"{name_of(program)}-{restarts}"


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _slice(log_: Path, begin: int, end: int) -> bytes:
    """The last of what stands between two offsets; empty where the log is gone."""
    try:
        with log_.open("rb") as file:
            begin = max(begin, end - _COPIED_BYTES)
            return os.pread(file.fileno(), max(0, end - begin), begin)
    except OSError:
        return b""
