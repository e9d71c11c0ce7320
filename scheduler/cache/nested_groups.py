"""PodGroups of scheduling.k8s.io that stand below composite groups, and what follows from their trees."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kube import objects
from kube.dialects.gangs.nested import Composite, Nesting, above_of, composite, nestings, with_nesting
from kube.informer import Change, ChangeKind
from model.workload import Gang


class NestedGroups:
    """By namespace, in which alone groups name each other. Trees of a namespace are read again, all at once, where
    `renewed` is asked and something of them changed.
    """

    def __init__(self) -> None:
        self._composites: dict[str, dict[str, Composite]] = {}
        self._parents: dict[str, dict[str, str]] = {}
        self._plain: dict[str, Gang] = {}
        self._found: dict[str, Mapping[str, Nesting]] = {}
        self._changed: set[str] = set()

    def composite(self, change: Change[objects.CompositePodGroup]) -> None:
        """A composite group came, went or changed."""
        namespace = change.object.metadata.namespace
        known, read = self._composites.setdefault(namespace, {}), composite(change.object)
        before = known.pop(read.key, None)
        if change.kind is not ChangeKind.DELETED:
            known[read.key] = read
        if known.get(read.key) != before:
            self._changed.add(namespace)

    def group(self, change: Change[objects.UpstreamPodGroup], plain: Gang) -> bool:
        """A PodGroup came, went or changed: whether it has, or had, a composite above it; `plain` is what it says."""
        known = self._parents.setdefault(plain.namespace, {})
        before = known.pop(plain.key, "")
        self._plain.pop(plain.key, None)
        above = above_of(plain.namespace, change.object.spec.parent_composite_pod_group_name)
        if above and change.kind is not ChangeKind.DELETED:
            known[plain.key], self._plain[plain.key] = above, plain
        if known.get(plain.key, "") != before:
            self._changed.add(plain.namespace)
        return bool(before or above)

    def nested(self, key: str) -> Gang:
        """Such a PodGroup with what its tree said of it when trees were read last."""
        plain = self._plain[key]
        found = self._found.get(plain.namespace, {}).get(key, Nesting())
        nested: Gang = msgspec.structs.replace(plain, spec=with_nesting(plain.spec, found))
        return nested

    def renewed(self) -> tuple[str, ...]:
        """The PodGroups whose trees say something else of them than before, sorted."""
        return tuple(sorted(key for namespace in self._taken() for key in self._read(namespace)))

    def _taken(self) -> set[str]:
        changed, self._changed = self._changed, set()
        return changed

    def _read(self, namespace: str) -> list[str]:
        before = self._found.get(namespace, {})
        after = nestings(self._parents.get(namespace, {}), self._composites.get(namespace, {}))
        self._found[namespace] = after
        return [key for key, found in after.items() if found != before.get(key, Nesting())]
