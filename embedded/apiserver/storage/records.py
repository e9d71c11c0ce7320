"""What the store keeps of an object, and what it remembers of a change."""

from enum import StrEnum
from functools import lru_cache

import msgspec

from embedded.apiserver.apimachinery.objects import Object, decode_object, encode
from embedded.apiserver.apimachinery.resource_types import ResourceType, field_values
from embedded.apiserver.apimachinery.selectors import Filter

_NAMING = ("kind", "apiVersion")


class Change(StrEnum):
    """Event types of the watch protocol."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Record(msgspec.Struct, frozen=True, gc=False):
    """One stored object: its bytes, and what lists and watches select by.

    The bytes are kept as `head`, kind and version from the first brace on, which many records share, and `rest`: a list
    of a built-in type says kind and version once, and joins what is left.
    """

    namespace: str
    name: str
    uid: str
    revision: int
    labels: dict[str, str]
    fields: dict[str, str]
    owners: tuple[str, ...]
    deleting: bool
    head: bytes
    rest: bytes
    original: bytes | None = None  # as it was written, where its definition has it read otherwise since

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace, self.name)

    @property
    def body(self) -> bytes:
        return self.head + self.rest

    @property
    def size_bytes(self) -> int:
        return len(self.head) + len(self.rest)

    def admitted_by(self, wanted: Filter) -> bool:
        return wanted.admits(self.namespace, self.labels, self.fields)


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """A change as one watcher sees it."""

    change: Change
    record: Record


class Event(msgspec.Struct, frozen=True, gc=False):
    """One change of one object: its state after it (its last one where it is gone), and before (None: not there)."""

    change: Change
    record: Record
    old: Record | None

    def seen_by(self, wanted: Filter) -> WatchEvent | None:
        """This change to someone who sees only part of the objects; None when they see nothing."""
        if wanted.admits_all:
            return WatchEvent(self.change, self.record)
        before = self.old is not None and self.old.admitted_by(wanted)
        after = self.change is not Change.DELETED and self.record.admitted_by(wanted)
        if after:
            return WatchEvent(Change.MODIFIED if before else Change.ADDED, self.record)
        return WatchEvent(Change.DELETED, self._left()) if before else None

    def _left(self) -> Record:
        """What someone sees of an object that leaves what they see: its last state there, as of this change."""
        if self.change is Change.DELETED or self.old is None:
            return self.record
        obj = decode_object(self.old.body)
        obj["metadata"]["resourceVersion"] = str(self.record.revision)
        return msgspec.structs.replace(self.old, revision=self.record.revision, rest=_rest(obj))


def record_of(rtype: ResourceType, obj: Object, revision: int, original: bytes | None = None) -> Record:
    """The record of an object in its stored form; `original` is how it was written, where that differs."""
    meta = obj["metadata"]
    return Record(
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        uid=meta["uid"],
        revision=revision,
        labels=dict(meta.get("labels") or ()),  # the object stays the caller's to change
        fields=field_values(rtype, obj),
        owners=tuple(owner["uid"] for owner in meta.get("ownerReferences") or ()),
        deleting=bool(meta.get("deletionTimestamp")),
        head=_head(obj.get("kind", rtype.kind), obj.get("apiVersion", rtype.api_version)),
        rest=_rest(obj),
        original=original,
    )


@lru_cache
def _head(kind: str, api_version: str) -> bytes:
    return encode({"kind": kind, "apiVersion": api_version})[:-1] + b","


def _rest(obj: Object) -> bytes:
    """All but kind and version, without the first brace; an object always has metadata."""
    return encode({key: value for key, value in obj.items() if key not in _NAMING})[1:]
