"""NodeMetric and NodeSLO: the leader makes one of each for every Node, keeps their specs as `slo-controller-config`
says, and leaves their deletion to the Node's own (owner references).

Objects made by somebody else, without our label, are left alone: a NodeSLO written by hand is a person's word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

from kube import configmap, objects
from kube.client import KubeClient, PatchKind, path_of
from kube.dialects.koordinator import nodeobjects
from kube.events import EventRecorder, ObjectRef
from kube.informer import Change, ChangeKind, Informer
from kube.reconcile import Reconciler
from model.fault import KubernetesFault
from scheduler.controllers.node_objects_plan import (
    GROUP,
    PLURALS,
    NodeFacts,
    ObjectWrite,
    Present,
    node_facts,
    plan,
    present,
    told,
)

log = structlog.get_logger()

_UNDEFINED_SECONDS = 60.0
"""Rest where the definition is not installed, which does not end by asking more often."""
_CONFLICT = 409
_NOT_FOUND = 404


class NodeObjects:
    """`saw_node` and `saw_metric` take every change of those; `run` writes while `leading`."""

    def __init__(
        self,
        client: KubeClient,
        leading: Callable[[], bool],
        *,
        recorder: EventRecorder | None = None,
        enabled: bool = True,
        config_map: str = "koordinator-system/slo-controller-config",
    ) -> None:
        self._enabled = enabled
        self._recorder = recorder
        self._client = client
        self._leading = leading
        self._nodes: dict[str, NodeFacts] = {}
        self._present: dict[str, dict[str, Present]] = {kind: {} for kind in PLURALS}
        self._documents = nodeobjects.NodeDocuments()
        self._undefined: set[str] = set()
        self._told = ""
        self._reconciler = Reconciler(self._reconcile, leading, self._failed)
        self._config = configmap.follow(client, config_map, self._configured)
        self._slos = Informer(
            client, f"{GROUP}/nodeslos", objects.NodeSLO, on_change=lambda change: self._saw("NodeSLO", change)
        )

    def saw_node(self, change: Change[objects.Node]) -> None:
        """Only what the objects depend on counts: a heartbeat is no news here."""
        meta = change.object.metadata
        if change.kind is ChangeKind.DELETED:
            self._nodes.pop(meta.name, None)
            return
        facts = node_facts(meta)
        if self._nodes.get(meta.name) != facts:
            self._nodes[meta.name] = facts
            self._reconciler.add(meta.name)

    def saw_metric(self, change: Change[objects.NodeMetric]) -> None:
        self._saw("NodeMetric", change)

    async def run(self) -> None:
        """Never returns, unless there is nothing to do."""
        if not self._enabled:
            return
        async with asyncio.TaskGroup() as group:
            for informer in (self._config, self._slos):
                group.create_task(informer.run())
            await self._config.synced.wait()
            await self._slos.synced.wait()
            group.create_task(self._reconciler.run())

    def _saw(self, kind: str, change: Change[Any]) -> None:
        """A report of the agent's is no news either: its spec is as it was."""
        meta, known = change.object.metadata, self._present[kind]
        if change.kind is ChangeKind.DELETED:
            known.pop(meta.name, None)
            self._reconciler.add(meta.name)
            return
        now = present(meta, change.object.spec)
        if known.get(meta.name) != now:
            known[meta.name] = now
            self._reconciler.add(meta.name)

    def _configured(self, change: Change[objects.ConfigMap]) -> None:
        """A ConfigMap that was deleted says nothing; agents lend nothing then by themselves."""
        source = None if change.kind is ChangeKind.DELETED else change.object
        self._documents, faults = nodeobjects.read(source, self._documents)
        for fault in faults:
            log.error("slo-controller-config not read", error=str(fault), effect="what it said before stays")
        if source is not None and self._recorder is not None and self._leading():
            for reason, text in told(source, faults):
                self._recorder.record(_about(source), reason.value, text, warning=True)
        self._look_at_all()

    def _look_at_all(self) -> None:
        for name in self._nodes:
            self._reconciler.add(name)

    async def _reconcile(self, name: str) -> None:
        node = self._nodes.get(name)
        if node is None:
            return
        there = {kind: known[name] for kind, known in self._present.items() if name in known}
        for write in plan(name, node, there, self._documents, self._undefined):
            await self._write(write)

    async def _write(self, write: ObjectWrite) -> None:
        """Made where there is none; replaced only while it is the very object that was seen. Raises KubernetesFault."""
        await self._reconciler.led()
        resource = f"{GROUP}/{PLURALS[write.kind]}"
        try:
            if write.present is None:
                await self._client.create(path_of(resource), write.made)
            else:
                await self._client.patch(path_of(resource, name=write.name), write.patch, PatchKind.JSON)
        except KubernetesFault as fault:
            if fault.status == _NOT_FOUND and write.present is None:
                self._await_definition(write.kind)
            elif fault.status not in (_CONFLICT, _NOT_FOUND):  # another was faster, and the watch will say so
                raise

    def _await_definition(self, kind: str) -> None:
        """Nothing of the kind is tried for a while."""

        def again() -> None:
            self._undefined.discard(kind)
            self._look_at_all()

        if kind not in self._undefined:
            self._undefined.add(kind)
            asyncio.get_running_loop().call_later(_UNDEFINED_SECONDS, again)

    def _failed(self, name: str, fault: KubernetesFault, seconds: float) -> None:
        """Many nodes share one trouble: it is told when it changes."""
        if self._told != str(fault.what):
            self._told = str(fault.what)
            log.warning("object of a node not written", node=name, error=str(fault), retry_seconds=seconds)


def _about(source: objects.ConfigMap) -> ObjectRef:
    meta = source.metadata
    return ObjectRef("ConfigMap", meta.name, meta.namespace, meta.uid, "v1")
