"""NodeMetric and NodeSLO: the leader makes one of each for every Node, keeps their specs as `slo-controller-config`
says, and leaves their deletion to the Node's own (owner references).

Objects made by somebody else, without our label, are left alone: a NodeSLO written by hand is a person's word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
import structlog

from kube import configmap, objects
from kube.client import KubeClient, PatchKind, path_of
from kube.dialects import nodeobjects
from kube.dialects.coverage.asking_settings import in_config
from kube.dialects.document import annotated
from kube.dialects.nodesettings import ANNOTATION_STRATEGY
from kube.dialects.sloconfig import ColocationFields
from kube.events import EventRecorder, ObjectRef
from kube.informer import Change, ChangeKind, Informer
from model.fault import ConfigurationFault, KubernetesFault
from model.reason import Reason, words

log = structlog.get_logger()

_GROUP = "slo.koordinator.sh/v1alpha1"
_PLURALS = {"NodeMetric": "nodemetrics", "NodeSLO": "nodeslos"}
MANAGED_BY = {"app.kubernetes.io/managed-by": "sublet"}
_WORKERS = 4
_RETRY_SECONDS = 5.0
_PATIENT_RETRY_SECONDS = 60.0
"""After a refusal, and where the definition is not installed: neither ends by asking more often."""
_FENCE_SECONDS = 1.0
"""Rest between two looks at a lease that is not renewed in time: what differs is written once it is."""
_CONFLICT = 409
_NOT_FOUND = 404


class _Held(msgspec.Struct, frozen=True):
    """One of our objects as it is."""

    uid: str
    managed: bool
    spec: Any


class _Wanted(msgspec.Struct, frozen=True):
    """What decides how a Node's objects are to look."""

    uid: str
    labels: Mapping[str, str]
    strategy: str


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
        self._nodes: dict[str, _Wanted] = {}
        self._held: dict[str, dict[str, _Held]] = {kind: {} for kind in _PLURALS}
        self._documents = nodeobjects.NodeDocuments()
        self._undefined: set[str] = set()
        self._due: dict[str, None] = {}
        self._told = ""
        self._wake = asyncio.Event()
        self._config = configmap.follow(client, config_map, self._configured)
        self._slos = Informer(
            client, f"{_GROUP}/nodeslos", objects.NodeSLO, on_change=lambda change: self._saw("NodeSLO", change)
        )

    def saw_node(self, change: Change[objects.Node]) -> None:
        """Only what the objects depend on counts: a heartbeat is no news here."""
        meta = change.object.metadata
        if change.kind is ChangeKind.DELETED:
            self._nodes.pop(meta.name, None)
            return
        strategy = (meta.annotations or {}).get(ANNOTATION_STRATEGY, "")
        wanted = _Wanted(meta.uid, meta.labels or {}, strategy)
        if self._nodes.get(meta.name) != wanted:
            self._nodes[meta.name] = wanted
            self._look_at(meta.name)

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
            for _ in range(_WORKERS):
                group.create_task(self._work())

    def _saw(self, kind: str, change: Change[Any]) -> None:
        """A report of the agent's is no news either: its spec is as it was."""
        meta, held = change.object.metadata, self._held[kind]
        if change.kind is ChangeKind.DELETED:
            held.pop(meta.name, None)
            self._look_at(meta.name)
            return
        managed = MANAGED_BY.items() <= (meta.labels or {}).items()
        now = _Held(meta.uid, managed, change.object.spec)
        if held.get(meta.name) != now:
            held[meta.name] = now
            self._look_at(meta.name)

    def _configured(self, change: Change[objects.ConfigMap]) -> None:
        """A ConfigMap that was deleted says nothing; agents lend nothing then by themselves."""
        source = None if change.kind is ChangeKind.DELETED else change.object
        self._documents, faults = nodeobjects.read(source, self._documents)
        for fault in faults:
            log.error("slo-controller-config not read", error=str(fault), effect="what it said before stays")
        if source is not None and self._recorder is not None and self._leading():
            for reason, text in _told(source, faults):
                self._recorder.record(_about(source), reason.value, text, warning=True)
        for name in self._nodes:
            self._look_at(name)

    def _look_at(self, name: str) -> None:
        self._due[name] = None
        self._wake.set()

    async def _work(self) -> None:
        while True:
            while not self._due:
                self._wake.clear()
                await self._wake.wait()
            name = next(iter(self._due))
            del self._due[name]
            try:
                for request in self._requests(name):
                    await self._write(*request)
            except KubernetesFault as fault:
                self._later(name, fault)

    def _later(self, name: str, fault: KubernetesFault) -> None:
        """Many nodes share one trouble: it is told when it changes."""
        seconds = _PATIENT_RETRY_SECONDS if 400 <= fault.status < 500 else _RETRY_SECONDS
        asyncio.get_running_loop().call_later(seconds, self._look_at, name)
        if self._told != str(fault.what):
            self._told = str(fault.what)
            log.warning("object of a node not written", node=name, error=str(fault), retry_seconds=seconds)

    def _await_definition(self, kind: str) -> None:
        """Nothing of the kind is tried for a while."""

        def again() -> None:
            self._undefined.discard(kind)
            for name in self._nodes:
                self._look_at(name)

        if kind not in self._undefined:
            self._undefined.add(kind)
            asyncio.get_running_loop().call_later(_PATIENT_RETRY_SECONDS, again)

    def _requests(self, name: str) -> Iterator[tuple[str, str, dict[str, Any], _Held | None, str]]:
        """(kind, node, wanted spec, what there is, the Node's uid) of each object that is not as it should be."""
        node = self._nodes.get(name)
        if node is None:
            return
        for kind, spec in self._specs(name, node).items():
            held = self._held[kind].get(name)
            differs = held is None or (held.managed and (held.spec or {}) != spec)
            if differs and kind not in self._undefined:
                yield kind, name, spec, held, node.uid

    def _specs(self, name: str, node: _Wanted) -> dict[str, dict[str, Any]]:
        try:
            own = annotated({ANNOTATION_STRATEGY: node.strategy}, ANNOTATION_STRATEGY, ColocationFields, f"Node {name}")
        except ConfigurationFault:
            own = None  # the node's agent tells it
        return {
            "NodeMetric": nodeobjects.node_metric_spec(self._documents, node.labels, own),
            "NodeSLO": nodeobjects.node_slo_spec(self._documents, node.labels),
        }

    async def _write(self, kind: str, name: str, spec: dict[str, Any], held: _Held | None, node_uid: str) -> None:
        """Made where there is none; replaced only while it is the very object that was seen. Raises KubernetesFault."""
        while not self._leading():
            await asyncio.sleep(_FENCE_SECONDS)
        resource = f"{_GROUP}/{_PLURALS[kind]}"
        try:
            if held is None:
                await self._client.create(path_of(resource), _object(kind, name, spec, node_uid))
            else:
                patch = [
                    {"op": "test", "path": "/metadata/uid", "value": held.uid},
                    {"op": "add", "path": "/spec", "value": spec},
                ]
                await self._client.patch(path_of(resource, name=name), patch, PatchKind.JSON)
        except KubernetesFault as fault:
            if fault.status == _NOT_FOUND and held is None:
                self._await_definition(kind)
            elif fault.status not in (_CONFLICT, _NOT_FOUND):  # another was faster, and the watch will say so
                raise


def _object(kind: str, name: str, spec: dict[str, Any], node_uid: str) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid}
    return {
        "apiVersion": _GROUP,
        "kind": kind,
        "metadata": {"name": name, "labels": MANAGED_BY, "ownerReferences": [owner]},
        "spec": spec,
    }


def _about(source: objects.ConfigMap) -> ObjectRef:
    meta = source.metadata
    return ObjectRef("ConfigMap", meta.name, meta.namespace, meta.uid, "v1")


def _told(source: objects.ConfigMap, faults: Iterable[ConfigurationFault]) -> Iterator[tuple[Reason, str]]:
    """Events on the ConfigMap: what of it cannot be read, and what nobody acts on."""
    yield from ((Reason.CONFIGURATION_INVALID, str(fault)) for fault in faults)
    names = [asked.row.name for asked in in_config(source)]
    if names:
        yield Reason.NOT_ACTED_ON, f"{words(Reason.NOT_ACTED_ON)}: {', '.join(names)}"
