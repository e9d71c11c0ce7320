"""Pods that nobody would ever remove: those of nodes that are gone, and finished ones beyond a number.

https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-garbage-collection
"""

from __future__ import annotations

import heapq

import msgspec

from embedded.apiserver.apimachinery.resource_types import NODES, PODS
from embedded.apiserver.controllers.taint_eviction import disrupt
from embedded.apiserver.reconciling.pods_by_node import PodsByNode
from embedded.apiserver.reconciling.work_queue import Key, WorkQueue
from embedded.apiserver.registry.resources import DeleteOptions, Resources
from embedded.apiserver.storage.records import Change, Event, Record

FINISHED_LIMIT = 12_500
QUARANTINE_SECONDS = 40.0  # a node that is registered again at once keeps its pods
_AT_ONCE = DeleteOptions(grace_seconds=0)
_OVER = ("Succeeded", "Failed")


class _Metadata(msgspec.Struct, rename="camel", frozen=True, gc=False):
    creation_timestamp: str = ""


class _Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata


_POD = msgspec.json.Decoder(_Pod)


class PodCollector:
    """Knows finished pods by age, and which pods are without a node since when."""

    def __init__(self, resources: Resources, pods: PodsByNode, finished_limit: int = FINISHED_LIMIT) -> None:
        self._resources = resources
        self._pods = pods
        self._limit = finished_limit
        self._finished: dict[Key, str] = {}  # key → creation time
        self.waiting = WorkQueue()

    def react(self, type_id: str, event: Event) -> None:
        record, gone = event.record, event.change is Change.DELETED
        if type_id == NODES.id and gone:
            self._orphaned(self._pods.on(record.name))
        elif type_id == PODS.id and gone:
            self._finished.pop(record.key, None)
            self.waiting.forget(record.key)
        elif type_id == PODS.id:
            self._pod_changed(record)

    def _pod_changed(self, record: Record) -> None:
        if record.fields["status.phase"] in _OVER and record.key not in self._finished:
            self._finished[record.key] = _POD.decode(record.body).metadata.creation_timestamp
        if self._without_node(record):
            self._orphaned([record.key])

    def _without_node(self, record: Record) -> bool:
        node = record.fields["spec.nodeName"]
        return bool(node) and self._resources.store.get(NODES.id, "", node) is None

    def _orphaned(self, keys: list[Key]) -> None:
        for key in keys:
            self.waiting.at(key, self._resources.clock() + QUARANTINE_SECONDS)

    def advance(self, key: Key) -> None:
        """Fail and delete a pod whose node is still gone."""
        record = self._resources.store.get(PODS.id, *key)
        if record is None or not self._without_node(record):
            return
        phase = record.fields["status.phase"]
        disrupt(
            self._resources,
            key,
            "DeletionByPodGC",
            "PodGC: node no longer exists",
            phase=phase if phase in _OVER else "Failed",
        )
        self._resources.delete(PODS, *key, _AT_ONCE)

    def trim(self) -> int:
        """Delete the oldest finished pods beyond the limit; returns how many."""
        surplus = len(self._finished) - self._limit
        oldest = heapq.nsmallest(surplus, self._finished.items(), key=lambda item: (item[1], item[0]))
        for key, _ in oldest:
            self._resources.delete(PODS, *key, _AT_ONCE)
        return len(oldest)
