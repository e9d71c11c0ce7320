"""The admission webhooks that stored configurations ask for, and where each listens."""

from __future__ import annotations

from collections.abc import Sequence
from random import choice

from embedded.apiserver.admission.context import labels_of_namespace, namespace_of_operation, served_versions
from embedded.apiserver.admission.webhook_call import Address, CallFailed
from embedded.apiserver.admission.webhook_rules import Webhook, webhooks_of
from embedded.apiserver.apimachinery.objects import Object, dig, name_of, namespace_of
from embedded.apiserver.apimachinery.resource_types import (
    ENDPOINTS,
    MUTATING_WEBHOOKS,
    SERVICES,
    VALIDATING_WEBHOOKS,
    ResourceType,
)
from embedded.apiserver.apimachinery.selectors import EVERYTHING
from embedded.apiserver.apimachinery.status import forbidden
from embedded.apiserver.cel.admission_variables import AdmissionVariables
from embedded.apiserver.cel.authorizer import AuthorizerContext
from embedded.apiserver.cel.expressions import EvaluationError
from embedded.apiserver.cel.match_conditions import hold
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.request.attributes import Authorizer
from embedded.apiserver.request.operation import Operation

# On a Service: where the webhook behind it is, for one that runs beside the cluster and not in a pod of it.
ADDRESS_ANNOTATION = "sublet.dev/address"
_HTTPS = 443


class WebhookSource:
    """Looks at the store each time; parses a kind's configurations only when one of them changed."""

    def __init__(self, resources: Resources, authorizer: Authorizer) -> None:
        self._resources = resources
        self._authorizer = authorizer
        self._facts: AdmissionVariables | None = None  # of the write that was asked about last
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
        return served_versions(self._resources, rtype)

    def wanted_as(self, hook: Webhook, operation: Operation) -> ResourceType | None:
        """The version a webhook wants to see the object in; raises 403 where its conditions cannot tell."""
        labels = labels_of_namespace(self._resources, operation)
        shown_as = hook.matching.wanted_as(operation, self.versions(operation.rtype), labels)
        if shown_as is None or not hook.conditions:
            return shown_as
        try:
            return shown_as if hold(hook.conditions, self._facts_of(operation), shown_as) else None
        except EvaluationError as error:
            if hook.ignores_failure:
                return None
            raise forbidden(operation.rtype, operation.name, str(error)) from None

    def _facts_of(self, operation: Operation) -> AdmissionVariables:
        if self._facts is None or self._facts.operation is not operation:
            asking = AuthorizerContext(operation.user, self._authorizer)
            self._facts = AdmissionVariables(operation, namespace_of_operation(self._resources, operation), asking)
        return self._facts

    def address(self, client: Object) -> Address:
        """Raises CallFailed where nobody listens behind a service."""
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
            base = f"https://{service_endpoint(self._resources, found, service.get('port', _HTTPS))}"
        path = str(service.get("path") or "/")
        return Address(f"{base.rstrip('/')}{path}", authorities, f"{name}.{namespace}.svc")


def service_endpoint(resources: Resources, service: Object, number: int) -> str:
    """HOST:PORT of one ready endpoint behind a port of a Service; raises CallFailed where there is none.

    As kube-apiserver's `pkg/util/proxy`, which needs no service network for it either.
    """
    name = name_of(service)
    ports = (port for port in service["spec"].get("ports") or () if port["port"] == number)
    wanted = next(ports, None)
    if wanted is None:
        raise CallFailed(f'no service port {number} found for service "{name}"')
    held = resources.find(ENDPOINTS, namespace_of(service), name) or {}
    places = [
        f"{address['ip']}:{port['port']}"
        for subset in held.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
        if (port.get("name") or "") == (wanted.get("name") or "")
    ]
    if not places:
        raise CallFailed(f'no endpoints available for service "{name}"')
    return choice(places)
