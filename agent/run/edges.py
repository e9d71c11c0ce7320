"""The wiring of one agent's edges: those of its cluster, and through `machine` those of its machine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from agent.core.evict.pod_notices import NoticeOrigin
from agent.core.observe.layout import Layout
from agent.edge.checkpoints import CheckpointFile
from agent.edge.cluster import ClusterEdge
from agent.edge.evictor import ApiEvictor, EvictorContext
from agent.edge.network import NetworkEdge, PodNetworks
from agent.edge.podsockets import PodSockets, SocketPlaces
from agent.edge.processes import processes
from agent.edge.publisher import NodePublisher
from agent.edge.thawer import Thawer
from agent.edge.topology import kubelet_cpus
from agent.edge.zones import ZonePublisher
from agent.files.statefile import StateFile, guard_file
from agent.options import AgentOptions
from agent.report.node_patches import WatchedNode
from agent.run.lifecycle import AgentLifecycle
from agent.run.machine import AgentMachine, MachinePaths
from agent.run.withdrawal import LeftoverOffer
from agent.settings import AgentSettings
from kube.client import KubeClient
from kube.events import EventRecorder
from model.condition import ConditionType
from model.report import CheckpointSaved, EvictionCost

if TYPE_CHECKING:
    from agent.edge.kubelet import KubeletPods


class ProcessContext(NamedTuple):
    """What outlives a change of mode; `ticked` is set by the first tick of the process."""

    options: AgentOptions
    layout: Layout
    state: StateFile
    client: KubeClient
    kubelet: KubeletPods | None
    lifecycle: AgentLifecycle
    ticked: asyncio.Event


class AgentCallbacks(NamedTuple):
    """What edges ask of the agent they belong to: to tick at once, what an eviction would cost, to hear of a save."""

    wake: Callable[[], None]
    costs: Callable[[], Mapping[str, EvictionCost]]
    saved: Callable[[CheckpointSaved], None]


class Edges:
    """Every edge, constructed once; `observing` ones write nothing."""

    def __init__(
        self,
        lasting: ProcessContext,
        settings: AgentSettings,
        agent: AgentCallbacks,
        stack: contextlib.AsyncExitStack,
        *,
        observing: bool,
    ) -> None:
        options, layout, state, client, kubelet, lifecycle, _ = lasting
        name = options.node_name
        self.machine = AgentMachine(
            MachinePaths(
                options.cgroup_root,
                options.proc,
                options.sys,
                guard_file(options.state_file),
                options.cpu_manager_state,
            ),
            layout,
            state,
            settings.brake_interval_seconds,
            agent.wake,
            stack,
            dry=observing,
        )
        self.thawer = Thawer(options.cgroup_root, layout) if layout.version == 1 and not observing else None
        self.events = EventRecorder(client, "sublet-agent", name)
        self.cluster = ClusterEdge(
            client,
            name,
            settings,
            self.events,
            layout.root,
            lambda: self.machine.cpu_info,
            kubelet,
            agent.costs,
            lambda: lifecycle.paused,
            lambda: self.publisher.acknowledged,
            lambda: self.zones.on_node,
        )
        self.publisher = NodePublisher(
            client, name, settings, WatchedNode(self.cluster.condition, self.cluster.version)
        )
        self.zones = ZonePublisher(
            client,
            name,
            settings.topology_seconds,
            lambda: self.machine.cpu_info,
            lambda pods: kubelet_cpus(options.cpu_manager_state, pods),
        )
        self.pod_sockets = PodSockets(
            SocketPlaces(options.kubelet_pods, self.machine.tree),
            lambda: self.cluster.facts().pods,
            self.machine.discovery.pods,
            agent.saved,
            state.evictions.pending,
        )
        context = EvictorContext(
            self.events,
            lambda: self.cluster.node_ref,
            lambda notice: self.pod_sockets.notify(NoticeOrigin.AGENT, notice),
            lambda uid: self.pod_sockets.withdraw(NoticeOrigin.AGENT, uid),
            state.keep,
        )
        self.evictor = ApiEvictor(client, context, dry=observing, saved=state.evictions)
        self.network = NetworkEdge(options.proc)
        self.pod_networks = PodNetworks(self._processes, lambda: self.network.newest, _links_of_pods)
        self.checkpoints = CheckpointFile(options.prediction_file or options.state_file.with_name("prediction.json"))
        # Only where it is the node's one agent: one that observes for a person must not undo what another offers.
        self.leftover_offer = self._leftover_offer() if observing and settings.fleet else None

    def record(self, reason: str, message: str, *, warning: bool) -> None:
        """An Event of the node."""
        self.events.record(self.cluster.node_ref, reason, message, warning=warning)

    def _leftover_offer(self) -> LeftoverOffer:
        return LeftoverOffer(self.publisher, lambda: self.cluster.condition(ConditionType.COLOCATION_READY))

    def _processes(self) -> dict[str, int]:
        pods = self.cluster.facts().pods or ()
        return processes(self.machine.tree, pods, self.machine.discovery.pods())


def _links_of_pods(pods: Mapping[str, int]) -> Mapping[str, tuple[str, ...]]:
    from agent.edge.podlinks import links_of_pods

    return links_of_pods(pods)
