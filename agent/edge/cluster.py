"""The API server as the agent reads it: its own Node, the pods bound to it, its NodeSLO."""

from __future__ import annotations

import asyncio

import structlog

from agent.ports import ClusterFacts
from agent.settings import AgentSettings
from kube import objects
from kube.client import KubeClient
from kube.dialects import koordinator, upstream
from kube.events import EventRecorder, ObjectRef
from kube.informer import Change, ChangeKind, Informer
from model.fault import ConfigurationFault
from model.node import Node
from model.pod import Pod
from model.strategy import SuppressStrategy

log = structlog.get_logger()


class ClusterEdge:
    """Keeps translated copies up to date; `facts` is a snapshot of references and never waits."""

    def __init__(self, client: KubeClient, node_name: str, settings: AgentSettings, events: EventRecorder) -> None:
        self._settings = settings
        self._events = events
        self._name = node_name
        self._node: Node | None = None
        self._pods: dict[str, Pod] = {}
        self._sorted: tuple[Pod, ...] | None = None
        self._suppress = settings.suppress
        self._problem = ""
        self._nodes = Informer(
            client, "v1/nodes", objects.Node, field_selector=f"metadata.name={node_name}", on_change=self._node_changed
        )
        self._pod_informer = Informer(
            client, "v1/pods", objects.Pod, field_selector=f"spec.nodeName={node_name}", on_change=self._pod_changed
        )
        self._slos = Informer(
            client,
            "slo.koordinator.sh/v1alpha1/nodeslos",
            objects.NodeSLO,
            field_selector=f"metadata.name={node_name}",
            on_change=self._slo_changed,
        )

    async def run(self) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as tasks:
            for informer in (self._nodes, self._pod_informer, self._slos):
                tasks.create_task(informer.run())

    def facts(self) -> ClusterFacts:
        if self._sorted is None and self._pod_informer.synced.is_set():
            self._sorted = tuple(sorted(self._pods.values(), key=lambda pod: pod.key))
        unread = f"NodeSLO {self._name}: not read yet"
        return ClusterFacts(
            node=self._node,
            pods=self._sorted,
            colocation=self._settings.colocation,
            suppress=self._suppress,
            problem=self._problem if self._slos.synced.is_set() else unread,
            pods_age_seconds=self._pod_informer.silent_seconds,
        )

    @property
    def node_ref(self) -> ObjectRef:
        return ObjectRef(kind="Node", name=self._name, uid=self._node.uid if self._node else "")

    def _node_changed(self, change: Change[objects.Node]) -> None:
        if change.kind is ChangeKind.DELETED:
            self._node = None
            return
        try:
            self._node = upstream.node(change.object)
        except ConfigurationFault as fault:
            log.error("node unreadable; the last good state stays", error=str(fault))

    def _pod_changed(self, change: Change[objects.Pod]) -> None:
        self._sorted = None
        uid = change.object.metadata.uid
        if change.kind is ChangeKind.DELETED:
            self._pods.pop(uid, None)
            return
        try:
            self._pods[uid] = upstream.pod(change.object)
        except ConfigurationFault as fault:
            log.error("pod unreadable; its usage counts as the system's", error=str(fault))

    def _slo_changed(self, change: Change[objects.NodeSLO]) -> None:
        if change.kind is ChangeKind.DELETED:
            self._accept(self._settings.suppress)
            return
        try:
            self._accept(koordinator.suppress_strategy(change.object, self._settings.suppress))
        except ConfigurationFault as fault:
            self._problem = str(fault)
            log.error("NodeSLO refused; the last good one stays in force", error=str(fault))
            self._events.record(self.node_ref, "ConfigurationInvalid", str(fault), warning=True)

    def _accept(self, strategy: SuppressStrategy) -> None:
        self._suppress, self._problem = strategy, ""
        log.info("suppression settings in force", strategy=str(strategy))
