"""The admission webhooks that stored configurations ask for, and where each listens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from local.apiserver.objects import Object, dig
from local.apiserver.registry import MUTATING_WEBHOOKS, NAMESPACES, SERVICES, VALIDATING_WEBHOOKS, ResourceType
from local.apiserver.resources import Resources
from local.apiserver.selectors import EVERYTHING
from local.apiserver.status import not_found
from local.apiserver.webhook_call import Address, CallFailed
from local.apiserver.webhook_operations import Operation
from local.apiserver.webhook_rules import Webhook, webhooks_of

# On a Service: where the embedded cluster, which has no service network, finds the webhook behind it.
ADDRESS_ANNOTATION = "sublet.dev/address"


class Configured:
    """Looks at the store each time; parses a kind's configurations only when one of them changed."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._parsed: dict[str, tuple[list[int], list[Webhook]]] = {}

    def mutating(self) -> list[Webhook]:
        """In calling order: by the name of the configuration, then by the place in it."""
        return self._webhooks(MUTATING_WEBHOOKS)

    def validating(self) -> list[Webhook]:
        return self._webhooks(VALIDATING_WEBHOOKS)

    def _webhooks(self, kind: ResourceType) -> list[Webhook]:
        store = self._resources.store
        if not store.count(kind.id):
            return []
        revisions = [record.revision for record in store.select(kind.id, EVERYTHING)]
        known = self._parsed.get(kind.id)
        if known is None or known[0] != revisions:
            found = [hook for obj in self._resources.objects(kind) for hook in webhooks_of(obj)]
            known = self._parsed[kind.id] = (revisions, found)
        return known[1]

    def versions(self, rtype: ResourceType) -> Sequence[ResourceType]:
        return (rtype,) if rtype.custom is None else self._resources.registry.versions_of(rtype)

    def wanted_as(self, hook: Webhook, operation: Operation) -> ResourceType | None:
        return hook.wanted_as(operation, self.versions(operation.rtype), self._namespace_labels(operation))

    def _namespace_labels(self, operation: Operation) -> Mapping[str, str]:
        """Of a Namespace being written those it will have; raises 404 for a namespace that is gone meanwhile."""
        if not operation.namespace:
            return {}
        if operation.rtype is NAMESPACES and operation.new is not None:
            return dig(operation.new, "metadata.labels") or {}
        namespace = self._resources.store.get(NAMESPACES.id, "", operation.namespace)
        if namespace is None:
            raise not_found(NAMESPACES, operation.namespace)
        return namespace.labels

    def address(self, client: Object) -> Address:
        """Raises CallFailed for a service whose place nobody has told."""
        authorities = client.get("caBundle") or ""
        service = client.get("service")
        if service is None:
            return Address(client["url"], authorities)
        namespace, name = service["namespace"], service["name"]
        found = self._resources.find(SERVICES, namespace, name)
        if found is None:
            raise CallFailed(f'service "{name}" not found')
        base = (dig(found, "metadata.annotations") or {}).get(ADDRESS_ANNOTATION)
        if not base:
            raise CallFailed(
                f'service "{namespace}/{name}" cannot be reached: the embedded cluster has no service network; use '
                f"clientConfig.url, or annotate the Service with {ADDRESS_ANNOTATION}: https://HOST:PORT"
            )
        path = str(service.get("path") or "/")
        return Address(f"{base.rstrip('/')}{path}", authorities, f"{name}.{namespace}.svc")
