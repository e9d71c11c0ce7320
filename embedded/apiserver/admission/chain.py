"""Several kinds of admission one after the other, as if they were one."""

from __future__ import annotations

from embedded.apiserver.admission.admitted_writes import AdmissionHooks
from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.registry.resources import DeleteOptions, Draft
from embedded.apiserver.request.operation import Operation


class AdmissionChain:
    """Implements `admitted_writes.AdmissionHooks`; the first that refuses is heard alone."""

    def __init__(self, *links: AdmissionHooks) -> None:
        self._links = links

    def concern(self, rtype: ResourceType, namespace: str, subresource: str) -> bool:
        return any(link.concern(rtype, namespace, subresource) for link in self._links)

    async def mutate(self, draft: Draft) -> None:
        for link in self._links:
            await link.mutate(draft)

    async def validate(self, draft: Draft) -> None:
        for link in self._links:
            await link.validate(draft)

    async def validate_deletion(self, rtype: ResourceType, old: Object, options: DeleteOptions) -> None:
        for link in self._links:
            await link.validate_deletion(rtype, old, options)

    async def validate_connection(self, operation: Operation, warnings: list[str]) -> None:
        for link in self._links:
            await link.validate_connection(operation, warnings)
