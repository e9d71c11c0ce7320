"""What a write is judged by besides itself: the versions of its type, and the namespace it happens in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from embedded.apiserver.apimachinery.objects import Object, dig
from embedded.apiserver.apimachinery.resource_types import NAMESPACES, ResourceType
from embedded.apiserver.apimachinery.status import not_found
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.request.operation import Operation


def served_versions(resources: Resources, rtype: ResourceType) -> Sequence[ResourceType]:
    """Every version a resource is served in, the given one first."""
    return (rtype,) if rtype.custom is None else resources.registry.versions_of(rtype)


def namespace_of_operation(resources: Resources, operation: Operation) -> Object | None:
    """The namespace an object is in; None for one that is in none, or is one."""
    if not operation.namespace or operation.rtype is NAMESPACES:
        return None
    return resources.find(NAMESPACES, "", operation.namespace)


def labels_of_namespace(resources: Resources, operation: Operation) -> Mapping[str, str]:
    """Of a Namespace being written those it will have; raises 404 for a namespace that is gone meanwhile."""
    if not operation.namespace:
        return {}
    if operation.rtype is NAMESPACES and operation.new is not None:
        return dig(operation.new, "metadata.labels") or {}
    namespace = resources.store.get(NAMESPACES.id, "", operation.namespace)
    if namespace is None:
        raise not_found(NAMESPACES, operation.namespace)
    return namespace.labels
