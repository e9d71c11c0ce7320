"""Builds the node from its parts, runs it, and takes it apart again."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from embedded.cgroups import ownership
from embedded.cgroups.hierarchy import Cgroups
from embedded.fault import ConfigurationFault, KernelFault, KubernetesFault
from embedded.node.kernels.kernels import Simulator, confine, open_cgroups
from embedded.node.kernels.partial_view_upkeep import PartialViewUpkeep
from embedded.node.logs.server import LogHandlers, read_token, tls_context
from embedded.node.machine.facts import read_machine, share_of_machine
from embedded.node.machine.share import Share
from embedded.node.network.addresses import pod_range
from embedded.node.network.hosts_file import EndpointSliceObject, ServiceObject
from embedded.node.objects.environment import api_server_variables
from embedded.node.objects.pod import NodeObject, PodObject
from embedded.node.pods.housekeeping import Housekeeping, MachineSignals, NodeReporter
from embedded.node.pods.kubelet import Kubelet
from embedded.node.pods.statistics import NodeUses, Statistics, use_of_machine
from embedded.node.ports import Services
from embedded.node.processes import mounting
from embedded.node.processes.preparation import Provision
from embedded.node.processes.runtime import Place, ProcessRuntime
from embedded.node.registration.registration import NodeFacts, Registration
from embedded.node.settings import Kernel, NodeSettings
from embedded.node.streams.server import PodStreams
from embedded.ready_file import write_ready_file
from kube.client import KubeClient
from kube.events import EventRecorder, ObjectRef
from kube.informer import Informer
from local.node import amplification
from local.node.all_pods import AllPods
from local.node.api import KubeApi, KubeNodeApi
from local.node.callers import certified_callers, token_callers, trust_clients_of
from local.node.mirror_pods import Mirrors, WithMirrors
from local.node.token_server import LOG_ADDRESS, TokenServer

log = structlog.get_logger()

STOP_GRACE_SECONDS = 2.0
_GOODBYE_SECONDS = 1.0
_BEST_EFFORT_SECONDS = 60.0
_NAMES_SECONDS = 5.0


async def serve(settings: NodeSettings) -> None:
    """Run until SIGTERM or SIGINT, then leave nothing behind. Raises Fault when it cannot start."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    _make_private(settings.run_dir)
    context, token = tls_context(settings.tls_cert, settings.tls_key), read_token(settings.kubelet_token_file)
    if settings.client_ca is not None:
        trust_clients_of(context, settings.client_ca)
    share = share_of_machine(*settings.share, settings.claim)
    cgroups, me = open_cgroups(settings), ownership.this_process()
    killed = await ownership.take(cgroups, me)
    if killed:
        log.warning("leftovers of a dead process node killed", processes=killed, prefix=cgroups.layout.prefix)
    async with Simulator(settings) if settings.kernel is Kernel.SIMULATED else contextlib.nullcontext():
        try:
            confine(cgroups, share, me)
            async with await KubeClient.connect(settings.kubeconfig, "sublet-node") as client:
                node = _Node(settings, share, cgroups, client, token)
                await node.run(context, stop)
        finally:
            await ownership.release(cgroups)
            for name in ("host", "kubelet"):
                mounting.remove(settings.run_dir / name)
            log.info("node stopped", node=settings.node_name)


class _Node:
    """The parts of one running node."""

    def __init__(self, settings: NodeSettings, share: Share, cgroups: Cgroups, client: KubeClient, token: str) -> None:
        self._settings = settings
        self._routed = settings.client_ca is not None
        self._part = None if share.whole else PartialViewUpkeep(settings, share, cgroups)
        self._cgroups = cgroups
        self._machine = read_machine(settings.run_dir, share, routed=self._routed)
        self._memory_bytes = share.bound_memory_bytes
        self._names = Informer(
            client, "v1/services", ServiceObject, on_change=lambda change: self._runtime.write_names()
        )
        self._behind = Informer(
            client,
            "discovery.k8s.io/v1/endpointslices",
            EndpointSliceObject,
            label_selector="service.kubernetes.io/headless",
            on_change=lambda change: self._runtime.write_names(),
        )
        self._runtime = ProcessRuntime(
            cgroups,
            settings.run_dir,
            self._machine.cpu_millis,
            self._machine.memory_bytes,
            Provision(
                settings.images, api_server_variables(client.host), self._names.items.values, self._behind.items.values
            ),
            Place(share.number, None if share.whole else settings.run_dir / "view", self._routed),
        )
        self._events = EventRecorder(client, "kubelet", settings.node_name)
        self._own = Informer(client, "v1/nodes", NodeObject, field_selector=f"metadata.name={settings.node_name}")
        self._node_api = KubeNodeApi(client, settings.node_name)
        api = KubeApi(client, self._events, self._read_node)
        self._kubelet = Kubelet(
            Services(api, self._runtime, _now, settings.backoff_base_seconds),
            lambda: self._own.items.get(settings.node_name),
        )
        self._pods = Informer(
            client,
            "v1/pods",
            PodObject,
            field_selector=f"spec.nodeName={settings.node_name}",
            on_change=lambda change: self._all_pods.observe(change),
        )
        self._mirrors = Mirrors(
            api,
            settings.static_programs,
            settings.run_dir,
            lambda: self._own.items.get(settings.node_name),
            self._machine.address,
            _now,
        )
        self._all_pods = AllPods(self._kubelet, self._mirrors)
        uses = NodeUses(WithMirrors(self._runtime, self._mirrors), self._part.use if self._part else use_of_machine)
        self._statistics = Statistics(settings.node_name, uses, self._all_pods.living, _now)
        admits = certified_callers(client, settings.node_name) if self._routed else token_callers(token)
        logs = LogHandlers(self._all_pods, self._statistics, self._all_pods.running).handlers()
        self._server = TokenServer(admits, logs, PodStreams(self._all_pods).handlers())
        self._registration: Registration | None = None

    async def run(self, context: Any, stop: asyncio.Event) -> None:
        self._runtime.make_node()
        port = await self._server.start(context, self._log_address)
        name, addresses = self._settings.node_name, str(pod_range(self._settings.share[0], routed=self._routed))
        facts = NodeFacts(name, self._machine, port, addresses, amplification.raw_allocatable(self._machine))
        self._registration = Registration(self._node_api, facts, _now)
        loops: list[asyncio.Task[Any]] = [asyncio.create_task(self._work(self._registration, port))]
        loops += [asyncio.create_task(each) for each in self._loops()]
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([*loops, stopping], return_when=asyncio.FIRST_COMPLETED)
            for task in loops:
                if task.done():
                    task.result()
        finally:
            for task in (stopping, *loops):
                task.cancel()
            await asyncio.gather(self._kubelet.stop(STOP_GRACE_SECONDS), self._say_goodbye(self._registration))
            await self._server.stop()

    @property
    def _log_address(self) -> str:
        """The embedded API server asks every node at the one address."""
        return self._machine.address if self._routed else LOG_ADDRESS

    async def _work(self, registration: Registration, port: int) -> None:
        """Register, look around, become ready, then serve pods for ever."""
        await registration.register()
        watching = [asyncio.create_task(informer.run()) for informer in self._informers()]
        try:
            await self._own.synced.wait()
            await self._pods.synced.wait()
            await self._know_names()
            pods = asyncio.create_task(self._kubelet.run())
            watching.append(pods)
            await registration.become_ready()
            watching.append(asyncio.create_task(self._mirrors.run()))
            self._announce(port)
            await asyncio.gather(registration.heartbeat(), *watching)
        finally:
            for task in watching:
                task.cancel()

    def _informers(self) -> list[Informer[Any]]:
        """Names of Services are only for containers with an image."""
        return [self._own, self._pods, self._names, self._behind]

    async def _know_names(self) -> None:
        """Pods may start without, since the names reach them later too."""
        if self._settings.images:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._names.synced.wait(), _NAMES_SECONDS)

    def _loops(self) -> list[Coroutine[Any, Any, None]]:
        shown = [self._part.run()] if self._part else []
        return [self._events.run(), self._hold_best_effort(), *self._care(), *shown]

    def _care(self) -> list[Coroutine[Any, Any, None]]:
        levels = MachineSignals(self._runtime, self._memory_bytes, self._settings.run_dir)
        keeper = Housekeeping(self._runtime, self._kubelet, self._statistics, levels, self._settings.eviction)
        return keeper.loops(NodeReporter(self._show_pressures, self._record), _now)

    async def _show_pressures(self, pressures: frozenset[str]) -> None:
        if self._registration:
            await self._registration.show_pressures(pressures)

    def _record(self, reason: str, message: str) -> None:
        name = self._settings.node_name
        self._events.record(ObjectRef("Node", name, uid=name), reason, message, warning=True)

    async def _hold_best_effort(self) -> None:
        while True:
            await asyncio.sleep(_BEST_EFFORT_SECONDS)
            try:
                self._runtime.hold_best_effort()
            except KernelFault as fault:
                log.warning("best-effort weight not set", error=str(fault))

    async def _say_goodbye(self, registration: Registration) -> None:
        with contextlib.suppress(KubernetesFault, TimeoutError):
            await asyncio.wait_for(registration.become_unready(), _GOODBYE_SECONDS)

    async def _read_node(self) -> NodeObject:
        if self._registration is None:
            raise KubernetesFault(self._settings.node_name, "the node is not registered yet")
        return await self._node_api.read_node()

    def _announce(self, port: int) -> None:
        prefix = self._cgroups.layout.prefix
        log.info("node ready", node=self._settings.node_name, cgroup_prefix=prefix, log_port=port)
        if self._settings.ready_file:
            facts = {
                "node": self._settings.node_name,
                "cgroup_prefix": prefix,
                "cgroup_root": str(self._settings.cgroup_root),
                "cgroup_version": self._cgroups.layout.version,
                "kubepods": self._cgroups.layout.kubepods,
                "kernel": self._settings.kernel.value,
                "log_address": self._log_address,
                "log_port": port,
                **(self._part.directories if self._part else {}),
            }
            write_ready_file(self._settings.ready_file, facts)


def _now() -> datetime:
    return datetime.now(UTC)


def _make_private(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o700)
    except OSError as error:
        raise ConfigurationFault(f"--run-dir {directory}", f"not usable: {error.strerror}") from error
