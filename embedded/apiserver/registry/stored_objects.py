"""What the rules about one object may ask of the others: a port, so that they stand below what calls them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.storage.object_store import Store
from embedded.apiserver.storage.records import Record


class StoredObjects(Protocol):
    """Implemented by `resources.Resources`."""

    @property
    def store(self) -> Store: ...

    def find(self, rtype: ResourceType, namespace: str, name: str) -> Object | None:
        """A copy, None where there is none."""

    def objects(self, rtype: ResourceType) -> Iterator[Object]:
        """Copies of all."""

    def decoded(self, rtype: ResourceType, record: Record) -> Object: ...

    def create(self, rtype: ResourceType, namespace: str, obj: Object) -> Object:
        """Raises StatusError."""
