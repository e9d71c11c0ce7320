"""What every namespace has: the service account `default` and the cluster's certificate authority."""

from __future__ import annotations

from embedded.apiserver.apimachinery.objects import Object, being_deleted
from embedded.apiserver.apimachinery.resource_types import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, ResourceType
from embedded.apiserver.registry.pod_service_accounts import AUTHORITY_MAP, DEFAULT_ACCOUNT
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.storage.records import Change, Event

_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class NamespaceDefaults:
    """Makes both in a new namespace, and again when somebody takes them away. `authority` is PEM, empty if unknown."""

    def __init__(self, resources: Resources, authority: str) -> None:
        self._resources = resources
        self._authority = authority

    def react(self, type_id: str, event: Event) -> None:
        record, gone = event.record, event.change is Change.DELETED
        if type_id == NAMESPACES.id and not gone:
            self._furnish(record.name)
        elif self._lacks(type_id, record.name, gone):
            self._furnish(record.namespace)

    def _lacks(self, type_id: str, name: str, gone: bool) -> bool:
        """Whether a namespace may lack something, or hold something else in its place, after such a change."""
        if type_id == CONFIG_MAPS.id:
            return name == AUTHORITY_MAP
        return gone and type_id == SERVICE_ACCOUNTS.id and name == DEFAULT_ACCOUNT

    def _furnish(self, namespace: str) -> None:
        found = self._resources.find(NAMESPACES, "", namespace)
        if found is None or being_deleted(found):
            return
        self._make(SERVICE_ACCOUNTS, namespace, {"metadata": {"name": DEFAULT_ACCOUNT}})
        if self._authority:
            self._make_authority(namespace)

    def _make(self, rtype: ResourceType, namespace: str, obj: Object) -> None:
        if self._resources.store.get(rtype.id, namespace, obj["metadata"]["name"]) is None:
            self._resources.create(rtype, namespace, obj)

    def _make_authority(self, namespace: str) -> None:
        annotations = {"kubernetes.io/description": _DESCRIPTION}
        data = {"ca.crt": self._authority}
        held = self._resources.find(CONFIG_MAPS, namespace, AUTHORITY_MAP)
        if held is None:
            wanted = {"metadata": {"name": AUTHORITY_MAP, "annotations": annotations}, "data": data}
            self._resources.create(CONFIG_MAPS, namespace, wanted)
        elif held.get("data") != data:
            self._resources.update(CONFIG_MAPS, namespace, AUTHORITY_MAP, lambda now: {**now, "data": data})
