"""Cluster objects that admission decides by: profiles, namespaces, priority classes, queues and nodes, watched.

Answers come from the last state that was seen, however old: a profile from a minute ago is better than none. Without
the definition of ClusterColocationProfile there are none. A pod that is to be evicted is read each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Mapping
from typing import Any

import msgspec
import structlog

from admission.core.evictions import StoredPod
from admission.core.queue_rules import KnownQueue
from admission.known_queues import KnownQueues
from kube import objects
from kube.client import KubeClient, decode, path_of
from kube.dialects.koordinator import profiles
from kube.dialects.queues.reading import QueueObject, read
from kube.dialects.upstream import core_objects
from kube.informer import SOON_SECONDS, Change, ChangeKind, Informer
from model.fault import KubernetesFault
from model.priority import PriorityClass
from model.profile import ColocationProfile

log = structlog.get_logger()

_FETCH_SECONDS = 2.0
_POD_SECONDS = 1.5
"""Less than the API server waits for us (2 s): whether an eviction is judged is decided here and told in our log."""


class _PodMetadata(msgspec.Struct, frozen=True):
    uid: str = ""
    labels: dict[str, str] | None = None


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    priority: int | None = None


class _Pod(msgspec.Struct, frozen=True):
    """Of a pod what its eviction is judged by: nothing else of it can make it unreadable."""

    metadata: _PodMetadata = _PodMetadata()
    spec: _PodSpec = _PodSpec()


QUEUES: Mapping[tuple[str, str], tuple[str, type[Any]]] = {
    ("sublet.dev", "Queue"): ("sublet.dev/v1alpha1/queues", objects.Queue),
    ("scheduling.volcano.sh", "Queue"): ("scheduling.volcano.sh/v1beta1/queues", objects.VolcanoQueue),
    ("scheduling.sigs.k8s.io", "ElasticQuota"): (
        "scheduling.sigs.k8s.io/v1alpha1/elasticquotas",
        objects.ElasticQuota,
    ),
}
"""API group and kind → path and type of objects that are queues."""


def _read_queue(raw: bytes, type_: type[Any]) -> QueueObject | None:
    """None for what is no such object, which the review says."""
    try:
        return read(msgspec.json.decode(raw, type=type_, strict=False))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


class ClusterView:
    """admission.check_result.Surroundings."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._profiles: dict[str, ColocationProfile] = {}
        self._classes: dict[str, PriorityClass] = {}
        self._informers: tuple[Informer[Any], ...] = (
            Informer(
                client,
                "config.koordinator.sh/v1alpha1/clustercolocationprofiles",
                objects.ClusterColocationProfile,
                on_change=self._profile_changed,
                undefined_seconds=SOON_SECONDS,
            ),
            Informer(
                client, "scheduling.k8s.io/v1/priorityclasses", objects.PriorityClass, on_change=self._class_changed
            ),
        )
        self._known_queues = KnownQueues()
        self._queues: tuple[Informer[Any], ...] = tuple(
            Informer(client, path, kind, on_change=self._known_queues.apply, undefined_seconds=SOON_SECONDS)
            for path, kind in QUEUES.values()
        )
        self._local_queues = Informer(
            client, "kueue.x-k8s.io/v1beta2/localqueues", objects.LocalQueue, undefined_seconds=SOON_SECONDS
        )
        self._namespaces = Informer(client, "v1/namespaces", objects.Namespace)
        self._nodes = Informer(client, "v1/nodes", objects.Node)

    def work(self) -> list[Coroutine[Any, Any, None]]:
        """What has to run for the view to stay fresh."""
        return [informer.run() for informer in (*self._all, *self._queues, self._local_queues)]

    @property
    def synced(self) -> bool:
        """Whether everything was seen once that pods are changed by; queues are not waited for."""
        return all(informer.synced.is_set() for informer in self._all)

    @property
    def silent_seconds(self) -> float:
        """How long nothing was heard of the collection that has been silent the longest."""
        return max(informer.silent_seconds for informer in self._all)

    def profiles(self) -> tuple[ColocationProfile, ...]:
        return tuple(self._profiles[name] for name in sorted(self._profiles))

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        found = self._namespaces.items.get(name)
        return None if found is None else core_objects.namespace_labels(found)

    def classes(self) -> Mapping[str, PriorityClass]:
        return self._classes

    def queues(self) -> Mapping[str, KnownQueue] | None:
        known = all(informer.synced.is_set() for informer in self._queues)
        return self._known_queues.view() if known else None

    def local_queues(self) -> Collection[str]:
        return {item.metadata.name for item in self._local_queues.items.values()}

    def node_labels(self) -> Mapping[str, Mapping[str, str]]:
        return {name: node.metadata.labels or {} for name, node in self._nodes.items.items()}

    async def look_for(self, namespace: str) -> None:
        """Ask for a namespace that is not known: a pod often follows it faster than the watch does."""
        if namespace in self._namespaces.items:
            return
        try:
            async with asyncio.timeout(_FETCH_SECONDS):
                found = await self._client.get(path_of("v1/namespaces", name=namespace), objects.Namespace)
        except (KubernetesFault, TimeoutError) as error:
            log.warning("namespace not found", namespace=namespace, error=str(error) or "no answer in time")
            return
        self._namespaces.items.setdefault(namespace, found)

    async def look_for_parent(self, group: str, kind: str, raw: bytes) -> None:
        """Ask for the parent that a queue names and that is not known: one is often made right before the other."""
        if (group, kind) not in QUEUES:
            return
        path, type_ = QUEUES[group, kind]
        written = _read_queue(raw, type_)
        parent = written.queue.parent if written is not None and written.queue is not None else ""
        if written is None or not parent or parent in self._known_queues.view():
            return
        try:
            async with asyncio.timeout(_FETCH_SECONDS):
                at = path_of(path, namespace=written.metadata.namespace or None, name=parent)
                self._known_queues.add(await self._client.get(at, type_))
        except (KubernetesFault, TimeoutError) as error:
            log.info("parent of a queue not found", queue=written.where, error=str(error) or "no answer in time")

    async def find_pod(self, namespace: str, name: str) -> StoredPod:
        """As it is stored: without a resourceVersion the API server asks etcd, and not its own copy."""
        path = path_of("v1/pods", namespace=namespace, name=name)
        content = await self._client.request("GET", path, timeout_seconds=_POD_SECONDS)
        found = decode(content, _Pod, path)
        labels, spec = found.metadata.labels or {}, found.spec
        return StoredPod(namespace, name, found.metadata.uid, spec.node_name, labels, spec.priority)

    @property
    def _all(self) -> tuple[Informer[Any], ...]:
        return (*self._informers, self._namespaces, self._nodes)

    def _profile_changed(self, change: Change[objects.ClusterColocationProfile]) -> None:
        name = change.object.metadata.name
        if change.kind is ChangeKind.DELETED:
            self._profiles.pop(name, None)
            return
        self._profiles[name] = profiles.profile(change.object)
        if self._profiles[name].fault:
            log.error("profile is applied to no pod", profile=name, error=self._profiles[name].fault)

    def _class_changed(self, change: Change[objects.PriorityClass]) -> None:
        name = change.object.metadata.name
        if change.kind is ChangeKind.DELETED:
            self._classes.pop(name, None)
        else:
            self._classes[name] = core_objects.priority_class(change.object)
