"""Cluster facts from the API server: the agent's Node and pods, and every document that sets how they are treated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec
import structlog

from agent.core.observe.mirror_pods import undisputed
from agent.core.observe.topology import zones
from agent.ports import ClusterFacts
from agent.readpod import InternalError, read_pod
from agent.settings import AgentSettings
from kube import configmap, objects
from kube.client import KubeClient
from kube.dialects.coverage.of_node import unmet
from kube.dialects.koordinator import nodesettings
from kube.dialects.koordinator.nodesettings import Documents, Sources
from kube.dialects.upstream import core_objects
from kube.events import EventRecorder, ObjectRef
from kube.informer import Change, ChangeKind, Informer
from model.fault import ConfigurationFault
from model.node import Node
from model.nodesettings import NodeSettings
from model.pod.pod import Pod
from model.reason import Reason
from model.report import EvictionCost
from model.resources import CPU, MEMORY, ResourceVector
from model.topology import CpuInfo, KubeletPolicy, Zone

log = structlog.get_logger()

_SLO = "slo.koordinator.sh/v1alpha1"
_UNREAD = "its usage counts as the system's, and no more is lent than requested"
_ALIVE = "status.phase!=Succeeded,status.phase!=Failed"
"""Those that ended stay listed by the thousand, and each may be of 1.5 MB."""
_PAGE = 20
_MOST_BYTES = 16 << 20
"""Of a list of several; a pod has at most 9 MB in JSON."""
_NUMA_RESERVATION = "node.koordinator.sh/enable-numa-reservation"
_LIMIT_CPU = frozenset(
    {"cluster_switch", "entry_switches", "suppress", "slo_switch", "slo_suppress", "host_applications"}
    | {"slo_host_applications", "reserved", "reserved_cpus", "system_cpus", "raw_allocatable"}
)
"""Fields of Documents that the ceiling of best effort's CPU depends on."""


class PodList(Protocol):
    """Where pods come from; `unread` says of each that cannot be read what is wrong with it."""

    @property
    def pods(self) -> tuple[Pod, ...] | None: ...

    @property
    def unread(self) -> tuple[str, ...]: ...

    @property
    def age_seconds(self) -> float: ...


class WatchedPods:
    """The API server's pods of one node, translated."""

    def __init__(self, client: KubeClient, node_name: str) -> None:
        self._pods: dict[str, Pod] = {}
        self._unread: dict[str, str] = {}
        self._sorted: tuple[Pod, ...] | None = None
        self.informer = Informer(
            client,
            "v1/pods",
            objects.Pod,
            field_selector=f"spec.nodeName={node_name},{_ALIVE}",
            on_change=self._changed,
            kept=lambda pod: objects.Pod(objects.Metadata(uid=pod.metadata.uid)),
            page=_PAGE,
            most_bytes=_MOST_BYTES,
        )

    @property
    def pods(self) -> tuple[Pod, ...] | None:
        if self._sorted is None and self.informer.synced.is_set():
            self._sorted = undisputed(sorted(self._pods.values(), key=lambda pod: pod.key))
        return self._sorted

    @property
    def unread(self) -> tuple[str, ...]:
        return (*self._unread.values(), *self.informer.unread.values())

    @property
    def age_seconds(self) -> float:
        return self.informer.silent_seconds

    def _changed(self, change: Change[objects.Pod]) -> None:
        self._sorted = None
        uid = change.object.metadata.uid
        if change.kind is ChangeKind.DELETED:
            self._pods.pop(uid, None)
            self._unread.pop(uid, None)
            return
        try:
            self._pods[uid] = read_pod(change.object)
            self._unread.pop(uid, None)
        except ConfigurationFault as fault:
            if self._unread.get(uid) != str(fault):
                self._unread[uid] = str(fault)
                traced = fault.__cause__ if isinstance(fault, InternalError) else None
                log.error("pod unreadable", error=str(fault), effect=_UNREAD, exc_info=traced)


class ClusterEdge:
    """Keeps translated copies up to date; `facts` never waits.

    `kubepods` is the pods' root in the cgroup tree, `topology` the machine's CPUs, `kubelet` another source of pods,
    `costs` what losing a pod would cost its job, by uid, `paused` whether the fleet's switch forbids to lend,
    `acknowledged` and `zones_on_node` what the API server took of the offer last.
    """

    def __init__(
        self,
        client: KubeClient,
        node_name: str,
        settings: AgentSettings,
        events: EventRecorder,
        kubepods: str = "/kubepods",
        topology: Callable[[], CpuInfo | None] = lambda: None,
        kubelet: PodList | None = None,
        costs: Callable[[], Mapping[str, EvictionCost]] = dict,
        paused: Callable[[], bool] = lambda: False,
        acknowledged: Callable[[], Mapping[str, int]] = dict,
        zones_on_node: Callable[[], Mapping[int, ResourceVector] | None] = lambda: None,
    ) -> None:
        self._name = node_name
        self._kubepods = kubepods
        self._topology = topology
        self._events = events
        self._costs = costs
        self._paused = paused
        self._acknowledged = acknowledged
        self._zones_on_node = zones_on_node
        self._defaults = NodeSettings(
            settings.colocation,
            settings.suppress,
            settings.normalization,
            settings.eviction,
            burst=settings.burst,
            uclamp=settings.uclamp,
            oom_scores=settings.oom_scores,
        )
        self._node: Node | None = None
        self._last_node: Node | None = None
        self._documents: Documents | None = None
        self._settings = self._defaults
        self._problem = ""
        self._unmet: tuple[str, ...] = ()
        self._cpu: CpuInfo | None = None
        self._zones: tuple[Zone, ...] = ()
        self._dirty = True
        own = f"metadata.name={node_name}"
        self._config_name = settings.config_map
        self._nodes = Informer(client, "v1/nodes", objects.Node, field_selector=own, on_change=self._node_changed)
        self._config = configmap.follow(client, settings.config_map, self._document_changed)
        self._slos = Informer(
            client, f"{_SLO}/nodeslos", objects.NodeSLO, field_selector=own, on_change=self._document_changed
        )
        self._metrics = Informer(
            client, f"{_SLO}/nodemetrics", objects.NodeMetric, field_selector=own, on_change=self._document_changed
        )
        watched = None if kubelet else WatchedPods(client, node_name)
        self._pods: PodList = kubelet or watched  # type: ignore[assignment]
        informers: list[Informer[Any]] = [self._nodes, self._config, self._slos, self._metrics]
        self._informers = informers + ([watched.informer] if watched else [])

    async def run(self) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers:
                tasks.create_task(informer.run())

    def facts(self) -> ClusterFacts:
        unread, cpu = self._unread(), self._topology()
        if not unread and (self._dirty or cpu is not self._cpu):
            self._cpu = cpu
            self._resolve()
        documents = self._documents or Documents()
        return ClusterFacts(
            node=self._node,
            pods=self._pods.pods,
            settings=self._settings,
            settings_known=self._documents is not None,
            colocation=msgspec.structs.replace(documents.node, paused=self._paused()),
            zones=self._zones,
            cpu=cpu.basics if cpu else None,
            problem=unread or self._problem,
            pods_age_seconds=self._pods.age_seconds,
            processors=cpu.shared if cpu else (),
            given_away=cpu.given_away if cpu else (),
            kubelet_policy=cpu.policy if cpu else KubeletPolicy.NONE,
            costs=self._costs(),
            unsettled=bool(unread) or documents.config_map_deleted or not documents.unread.isdisjoint(_LIMIT_CPU),
            unmet=self._unmet,
            unread_pods=self._pods.unread,
            settings_deleted=documents.config_map_deleted,
            acknowledged=self._acknowledged(),
            zones_on_node=self._zones_on_node(),
        )

    @property
    def node_ref(self) -> ObjectRef:
        return ObjectRef(kind="Node", name=self._name, uid=self._node.uid if self._node else "")

    def condition(self, kind: str) -> objects.Condition | None:
        """The Node's own condition of that type, as it stands."""
        node = _only(self._nodes)
        conditions = node.status.conditions or () if node else ()
        return next((condition for condition in conditions if condition.type == kind), None)

    def version(self) -> str:
        """The Node's own resourceVersion, as far as it was heard of; "" where there is none."""
        node = _only(self._nodes)
        return node.metadata.resource_version if node else ""

    def _unread(self) -> str:
        """Which document was never looked up; empty once all were."""
        waits = (
            (f"Node {self._name}", self._nodes),
            (f"ConfigMap {self._config_name}", self._config),
            (f"NodeSLO {self._name}", self._slos),
            (f"NodeMetric {self._name}", self._metrics),
        )
        return next((f"{what}: not read yet" for what, informer in waits if not informer.synced.is_set()), "")

    def _node_changed(self, change: Change[objects.Node]) -> None:
        self._dirty = True
        if change.kind is ChangeKind.DELETED:
            self._node = None
            return
        try:
            self._node = self._last_node = core_objects.node(change.object)
        except ConfigurationFault as fault:
            log.error("node unreadable; the last good state stays", error=str(fault))

    def _document_changed(self, change: Change[Any]) -> None:
        self._dirty = True

    def _resolve(self) -> None:
        """Settings from every document as it is now; one that is wrong keeps what it said before.

        So does a Node that was deleted: without its labels a looser entry could match a machine that works on.
        """
        self._dirty = False
        node = self._last_node
        sources = Sources(node, _only(self._config), _only(self._slos), _only(self._metrics))
        self._documents, faults = nodesettings.read(sources, self._documents)
        told = [(Reason.CONFIGURATION_INVALID, str(fault)) for fault in faults]
        if self._documents.gone is not None:
            told.insert(0, (Reason.SETTINGS_DELETED, str(self._documents.gone)))
        problem = "; ".join(text for _, text in told)
        if problem != self._problem:
            for reason, text in told:
                log.error("document refused or gone; the last good settings stay, or nothing is lent", error=text)
                self._events.record(self.node_ref, reason.value, text, warning=True)
        self._problem = problem
        settings = nodesettings.node_settings(self._documents, self._defaults, self._kubepods)
        if settings != self._settings:
            log.info("settings in force", **_changes(self._settings, settings))
            self._settings = settings
        self._look_for_unmet(sources, self._documents)
        self._zones = zones(self._cpu, _reserved(node)) if self._cpu else ()

    def _look_for_unmet(self, sources: Sources, documents: Documents) -> None:
        """Fields that documents ask for and nobody acts on."""
        found = unmet(sources, documents, self._defaults, evicts=self._settings.eviction.enable)
        if found != self._unmet:
            self._unmet = found
            log.warning("fields of documents are not acted on, or in part", fields=found, see="docs/koordinator.md")


def _changes(before: NodeSettings, after: NodeSettings) -> dict[str, Any]:
    """Section → field → value, of what is not as it was."""
    old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
    return {
        section: {name: value for name, value in fields.items() if value != old[section][name]}
        if isinstance(fields, dict)
        else fields
        for section, fields in new.items()
        if fields != old[section]
    }


def _reserved(node: Node | None) -> ResourceVector:
    """What the kubelet reserves counts in the zones only where the node's label asks for that, as in Koordinator."""
    if node is None or node.labels.get(_NUMA_RESERVATION) != "true":
        return ResourceVector()
    return ResourceVector({name: max(node.capacity[name] - node.allocatable[name], 0) for name in (CPU, MEMORY)})


def _only(informer: Informer[Any]) -> Any:
    return next(iter(informer.items.values()), None)
