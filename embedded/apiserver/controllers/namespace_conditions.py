"""Why a namespace that is being deleted is still there, as its conditions tell it.

https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/namespace-v1/#NamespaceStatus
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from embedded.apiserver.apimachinery.objects import Object, copy, set_condition
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.storage.records import Record

_SETTLED = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    finalizers: tuple[str, ...] | None = None


class _Held(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata


_HELD = msgspec.json.Decoder(_Held)


def terminating_status(namespace: Object, left: Iterable[tuple[ResourceType, Record]], now: float) -> Object:
    """The namespace's status while these objects are left in it."""
    resources: Counter[str] = Counter()
    finalizers: Counter[str] = Counter()
    for rtype, record in left:
        resources[f"{rtype.plural}.{rtype.group}"] += 1
        finalizers.update(_HELD.decode(record.body).metadata.finalizers or ())
    fresh = {**namespace, "status": copy(namespace.get("status") or {})}
    for kind, reason, message in (*_SETTLED, _content(resources), _finalizers(finalizers)):
        status = "True" if reason.startswith("Some") else "False"
        set_condition(fresh, {"type": kind, "status": status, "reason": reason, "message": message}, now)
    found: Object = fresh["status"]
    return found


def _content(found: Counter[str]) -> tuple[str, str, str]:
    kind = "NamespaceContentRemaining"
    if not found:
        return kind, "ContentRemoved", "All content successfully removed"
    parts = ", ".join(f"{name} has {number} resource instances" for name, number in sorted(found.items()))
    return kind, "SomeResourcesRemain", f"Some resources are remaining: {parts}"


def _finalizers(found: Counter[str]) -> tuple[str, str, str]:
    kind = "NamespaceFinalizersRemaining"
    if not found:
        return kind, "ContentHasNoFinalizers", "All content-preserving finalizers finished"
    parts = ", ".join(f"{name} in {number} resource instances" for name, number in sorted(found.items()))
    return kind, "SomeFinalizersRemain", f"Some content in the namespace has finalizers remaining: {parts}"
