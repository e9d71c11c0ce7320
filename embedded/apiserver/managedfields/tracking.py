"""Following who changes what, from the first server-side apply to an object on.

An object that nobody ever applied has no `managedFields`, so that the many writes of controllers and kubelets cost
nothing; the first apply then makes one entry for what is there. The real server did so at first, and can still.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from embedded.apiserver.apimachinery.objects import Object, decode, dig, rfc3339
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.managedfields import managers
from embedded.apiserver.managedfields.fieldsets import difference, fields_of
from embedded.apiserver.managedfields.managers import Claim, FieldManager, Managers
from embedded.apiserver.managedfields.paths import NONE, Path, Paths
from embedded.apiserver.managedfields.structure import problems, whole_schema

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_BEFORE = "before-first-apply"
_CLIENT_SIDE = "kubectl-client-side-apply"
_KEPT_BY_SERVER = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
NOBODYS: Paths = frozenset(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{name}") for name in _KEPT_BY_SERVER)]
)
# Fields that Go always writes, also when there is nothing in them: a built-in object owns them from the start, so no
# write ever adds them.
_ALWAYS_THERE = frozenset({"f:metadata", "f:spec", "f:status", "f:template", "f:jobTemplate", "f:containers"})


@dataclass(frozen=True, slots=True)
class FieldWriter:
    """Who writes, through which part of the object, and when (seconds since the epoch)."""

    manager: str
    subresource: str
    now: float

    @property
    def time(self) -> str:
        return rfc3339(self.now)


def bare(obj: Object) -> Object:
    """The object without its `managedFields`."""
    meta = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    return {**obj, "metadata": meta}


def managers_of(obj: Object) -> Managers:
    return managers.read(dig(obj, "metadata.managedFields"))


def set_managers(obj: Object, held: Managers) -> None:
    if held:
        obj["metadata"]["managedFields"] = managers.written(held)
    else:
        obj["metadata"].pop("managedFields", None)


def tracked(rtype: ResourceType, old: Object, new: Object, sent: Any, author: FieldWriter) -> Managers:
    """The managers after an update. `sent` is the `managedFields` of the request, which it may rewrite or reset."""
    if author.subresource or sent is None:
        held = managers_of(old)
    elif managers.resets(sent):
        return managers.NOBODY
    else:
        held = managers.read(sent) or managers_of(old)
    return updated(rtype, old, new, held, author) if held else held


def updated(rtype: ResourceType, old: Object, new: Object, held: Managers, author: FieldWriter) -> Managers:
    """The managers after somebody has written the difference between two objects without applying it."""
    found = difference(whole_schema(rtype), bare(old), bare(new))
    left = managers.released(held, found.written | found.removed)
    mine = ownable(rtype, found.written)
    if not mine:
        return left
    owner = FieldManager(author.manager, "Update", author.subresource, rtype.api_version)
    before = held[owner].paths - found.removed if owner in held else NONE
    return managers.capped({**left, owner: Claim(before | mine, rtype.api_version, author.time)})


def ownable(rtype: ResourceType, paths: Paths) -> Paths:
    """Of written paths those that somebody can own."""
    return frozenset(path for path in paths - NOBODYS if rtype.custom is not None or not _always_there(path, paths))


def _always_there(path: Path, paths: Paths) -> bool:
    return path[-1] in _ALWAYS_THERE and any(len(p) > len(path) and p[: len(path)] == path for p in paths)


def first_managers(rtype: ResourceType, live: Object, now: float) -> Managers:
    """Who owns what is there before the first apply: kubectl what it applied itself, somebody the rest."""
    everything = ownable(rtype, difference(whole_schema(rtype), {}, bare(live)).added)
    by_kubectl = last_applied_fields(rtype, live)
    if by_kubectl:
        by_kubectl |= {("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")}
        by_kubectl |= {path[:depth] for path in by_kubectl for depth in range(1, len(path))}
        by_kubectl &= everything
    claims = {_CLIENT_SIDE: by_kubectl, _BEFORE: everything - by_kubectl}
    return {
        FieldManager(name, "Update", "", rtype.api_version): Claim(paths, rtype.api_version, rfc3339(now))
        for name, paths in claims.items()
        if paths
    }


def last_applied_fields(rtype: ResourceType, live: Object) -> Paths:
    """The fields that `kubectl apply` wrote last on the client's side and that are still as it wrote them."""
    annotations = dig(live, "metadata.annotations") or {}
    try:
        config = decode(annotations.get(LAST_APPLIED, "null"))
    except ValueError:
        return NONE
    schema = whole_schema(rtype)
    if not isinstance(config, dict) or config.get("apiVersion") != rtype.api_version or any(problems(schema, config)):
        return NONE
    found = difference(schema, config, bare(live))
    return fields_of(schema, config) - found.changed - found.added - found.removed
