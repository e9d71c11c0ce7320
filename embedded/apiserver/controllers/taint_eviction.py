"""Pods leave nodes whose NoExecute taints they do not tolerate, or no longer."""

from __future__ import annotations

import msgspec

from embedded.apiserver.apimachinery.objects import Object, set_condition
from embedded.apiserver.apimachinery.resource_types import PODS
from embedded.apiserver.controllers.node_lifecycle import NodeLife
from embedded.apiserver.reconciling.event_recorder import record_event
from embedded.apiserver.reconciling.pods_by_node import PodsByNode
from embedded.apiserver.reconciling.work_queue import Key, WorkQueue
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.registry.taints import Toleration, stay_seconds
from embedded.apiserver.storage.records import Change, Event, Record

_COMPONENT = "taint-eviction-controller"
_REASON = "TaintManagerEviction"


class _Spec(msgspec.Struct, frozen=True, gc=False):
    tolerations: tuple[Toleration, ...] | None = None


class _Pod(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


_POD = msgspec.json.Decoder(_Pod)


class TaintEviction:
    """Looks at the pods of a node when its taints change, and at a pod when it comes to a tainted node."""

    def __init__(self, resources: Resources, nodes: NodeLife, pods: PodsByNode) -> None:
        self._resources = resources
        self._nodes = nodes
        self._pods = pods
        self._since: dict[Key, float] = {}  # when the taints of its node began to count for a pod
        self.waiting = WorkQueue()

    def react(self, type_id: str, event: Event) -> None:
        if type_id != PODS.id:
            return
        record = event.record
        if event.change is Change.DELETED or record.deleting:
            self._forget(record.key)
        elif self._nodes.no_execute_taints(record.fields["spec.nodeName"]):
            self.waiting.now(record.key)

    def take_due(self) -> list[Key]:
        """Pods to judge."""
        for node in self._nodes.changed:
            for key in self._pods.on(node):
                self.waiting.now(key)
        self._nodes.changed.clear()
        return self.waiting.take(self._resources.clock())

    def advance(self, key: Key) -> None:
        """Evict the pod, wait for the end of its toleration, or leave it alone."""
        record, now = self._resources.store.get(PODS.id, *key), self._resources.clock()
        if record is None or record.deleting or record.fields["status.phase"] in ("Succeeded", "Failed"):
            self._forget(key)
            return
        stay = self._stay_seconds(record)
        if stay is None:
            self._cancel(key, record)
        elif now >= (due := self._since.setdefault(key, now) + stay):
            self._evict(key, record)
        else:
            self.waiting.forget(key)
            self.waiting.at(key, due)

    def _stay_seconds(self, record: Record) -> float | None:
        taints = self._nodes.no_execute_taints(record.fields["spec.nodeName"])
        return stay_seconds(_POD.decode(record.body).spec.tolerations or (), taints)

    def _forget(self, key: Key) -> None:
        self._since.pop(key, None)
        self.waiting.forget(key)

    def _cancel(self, key: Key, record: Record) -> None:
        if key in self._since:
            self._tell(record, f"Cancelling deletion of Pod {key[0]}/{key[1]}")
        self._forget(key)

    def _evict(self, key: Key, record: Record) -> None:
        self._tell(record, f"Marking for deletion Pod {key[0]}/{key[1]}")
        disrupt(self._resources, key, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
        self._resources.delete(PODS, *key)
        self._forget(key)

    def _tell(self, record: Record, message: str) -> None:
        record_event(self._resources, self._resources.decoded(PODS, record), _REASON, message, _COMPONENT)


def disrupt(resources: Resources, key: Key, reason: str, message: str, **status: str) -> None:
    """Say on a pod that it is about to go for a reason that is not its own, with further status fields."""

    def change(pod: Object) -> Object:
        wanted = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
        set_condition(pod, wanted, resources.clock())
        pod["status"] |= status
        return pod

    resources.update(PODS, *key, change, subresource="status")
