"""Keeps the EndpointSlices and Endpoints of every Service that selects pods equal to those pods."""

from __future__ import annotations

from embedded.apiserver.apimachinery.objects import Object, being_deleted, name_of, namespace_of
from embedded.apiserver.apimachinery.resource_types import ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES, ResourceType
from embedded.apiserver.apimachinery.selectors import Filter, Requirement, Selector, admits
from embedded.apiserver.controllers.endpoint_plan import (
    CONTROLLER,
    MANAGED_BY,
    SERVICE_NAME,
    SlicePlan,
    endpoints_of,
    plan_slices,
)
from embedded.apiserver.reconciling.adoption import owner_reference
from embedded.apiserver.reconciling.work_queue import Key, WorkQueue
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.storage.records import Change, Event, Record
from embedded.apiserver.workloads.pods import SeenPods, WorkloadPod


class EndpointController:
    """Looks at a Service when it, what is made of it or a pod behind it changes.

    The endpoints of a Service without selector are for others to write.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._selectors: dict[str, dict[str, Selector]] = {}  # namespace → Service → the pods behind it
        self._seen = SeenPods()
        self.waiting = WorkQueue()

    def react(self, type_id: str, event: Event) -> None:
        record, gone = event.record, event.change is Change.DELETED
        if type_id == SERVICES.id:
            self._service_changed(record, gone)
        elif type_id == PODS.id:
            self._pod_changed(event)
            if gone:
                self._seen.forget(record.uid)
        elif type_id == ENDPOINT_SLICES.id and record.labels.get(MANAGED_BY) == CONTROLLER:
            self._look_at(record.namespace, record.labels.get(SERVICE_NAME, ""))
        elif type_id == ENDPOINTS.id:
            self._look_at(record.namespace, record.name)

    def _look_at(self, namespace: str, name: str) -> None:
        if name in self._selectors.get(namespace, {}):
            self.waiting.now((namespace, name))

    def _service_changed(self, record: Record, gone: bool) -> None:
        services = self._selectors.setdefault(record.namespace, {})
        known = services.pop(record.name, None) is not None
        wanted = {} if gone else self._resources.decoded(SERVICES, record)["spec"].get("selector") or {}
        if wanted:
            terms = (Requirement(key, "in", frozenset((value,))) for key, value in sorted(wanted.items()))
            services[record.name] = tuple(terms)
        if known or wanted:
            self.waiting.now(record.key)

    def _pod_changed(self, event: Event) -> None:
        for name, selector in self._selectors.get(event.record.namespace, {}).items():
            before = event.old is not None and admits(selector, event.old.labels)
            if before or admits(selector, event.record.labels):
                self.waiting.now((event.record.namespace, name))

    async def advance(self, key: Key) -> None:
        """Bring what is made of one Service up to date."""
        service = self._resources.find(SERVICES, *key)
        if service is None:
            self._forget(key)
            return
        selector = self._selectors.get(key[0], {}).get(key[1])
        if selector is None or being_deleted(service) or service["spec"]["type"] == "ExternalName":
            return
        pods = [self._seen.of(record) for record in self._resources.store.select(PODS.id, Filter(key[0], selector))]
        self._write_slices(key[0], service, plan_slices(service, pods, self._slices(key)))
        self._write_endpoints(key, service, pods)

    def _slices(self, key: Key) -> list[Object]:
        wanted = {SERVICE_NAME: key[1], MANAGED_BY: CONTROLLER}
        terms = tuple(Requirement(label, "in", frozenset((value,))) for label, value in wanted.items())
        found = self._resources.objects(ENDPOINT_SLICES, Filter(key[0], terms))
        return [each for each in found if not being_deleted(each)]

    def _forget(self, key: Key) -> None:
        """EndpointSlices go with their owner; Endpoints have none."""
        if self._resources.store.get(ENDPOINTS.id, *key) is not None:
            self._resources.delete(ENDPOINTS, *key)

    def _write_slices(self, namespace: str, service: Object, plan: SlicePlan) -> None:
        for wanted in plan.create:
            wanted["metadata"]["ownerReferences"] = [owner_reference(SERVICES, service)]
            self._resources.create(ENDPOINT_SLICES, namespace, wanted)
        for fresh in plan.change:
            self._replace(ENDPOINT_SLICES, fresh)
        for name in plan.delete:
            self._resources.delete(ENDPOINT_SLICES, namespace, name)

    def _write_endpoints(self, key: Key, service: Object, pods: list[WorkloadPod]) -> None:
        wanted, held = endpoints_of(service, pods), self._resources.find(ENDPOINTS, *key)
        if held is None:
            self._resources.create(ENDPOINTS, key[0], wanted)
            return
        meta = {**held["metadata"], "labels": wanted["metadata"]["labels"]}
        fresh = {**held, "metadata": meta, "subsets": wanted["subsets"]}
        if fresh != {"subsets": [], **held}:
            self._replace(ENDPOINTS, fresh)

    def _replace(self, rtype: ResourceType, fresh: Object) -> None:
        self._resources.update(rtype, namespace_of(fresh), name_of(fresh), lambda _: fresh)
