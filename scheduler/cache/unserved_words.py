"""Labels and annotations of pods that nobody serves or reads, each name told once of a namespace."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kube.dialects import misread
from kube.dialects.unserved import Unserved, in_metadata
from kube.objects import Metadata
from scheduler.ports import NamedObject

_MOST_UNSERVED = 50
"""Names of queues and groups that are told once each, of a namespace: whoever makes up more hides nobody else's."""
_MOST_NAMESPACES = 1000
"""Of as many it is known what was told; beyond that the one that came first is forgotten, and may be told again."""


def named_by(metadata: Metadata) -> tuple[Unserved, ...]:
    """What a pod names, whatever queues there are."""
    where = f"Pod {metadata.namespace}/{metadata.name}"
    return (*in_metadata(metadata, where), *misread.in_metadata(metadata, where))


def sentences(found: Iterable[Unserved], queues: Collection[str]) -> tuple[str, ...]:
    """Those that no queue serves."""
    return tuple(each.text for each in found if each.queue not in queues)


class UnservedWords:
    """What was told by namespace, and what is to be told."""

    def __init__(self) -> None:
        self._told: dict[str, set[str]] = {}
        self._new: list[tuple[NamedObject, Unserved]] = []

    def tell(self, pod: NamedObject, found: Iterable[Unserved]) -> None:
        """Of each name the first pod of a namespace is told."""
        for each in found:
            told = self._told.setdefault(pod.namespace, set())
            if each.place not in told and len(told) < _MOST_UNSERVED:
                told.add(each.place)
                self._new.append((pod, each))
        if len(self._told) > _MOST_NAMESPACES:
            del self._told[next(iter(self._told))]

    def take(self, queues: Collection[str]) -> list[tuple[NamedObject, str]]:
        """Pods and sentences since the last call. A queue that came meanwhile, as at the start, serves its pods."""
        found, self._new = self._new, []
        for pod, each in found:
            if each.queue in queues:
                self._told.get(pod.namespace, set()).discard(each.place)
        return [(pod, each.text) for pod, each in found if each.queue not in queues]
