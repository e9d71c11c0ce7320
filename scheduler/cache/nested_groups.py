"""PodGroups of scheduling.k8s.io that stand below composite groups, and what follows from their trees."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kube import objects
from kube.dialects.gangs.nested import Composite, Nesting, above_of, composite, nestings, with_nesting
from kube.informer import Change, ChangeKind
from model.workload import Gang


class NestedGroups:
    """By namespace, in which alone groups name each other; a tree is read again once something of it changed."""

    def __init__(self) -> None:
        self._composites: dict[str, dict[str, Composite]] = {}
        self._parents: dict[str, dict[str, str]] = {}
        self._plain: dict[str, Gang] = {}
        self._found: dict[str, Mapping[str, Nesting]] = {}

    def composite(self, change: Change[objects.CompositePodGroup]) -> None:
        """A composite group came, went or changed."""
        namespace = change.object.metadata.namespace
        known, read = self._composites.setdefault(namespace, {}), composite(change.object)
        known.pop(read.key, None)
        if change.kind is not ChangeKind.DELETED:
            known[read.key] = read
        self._found.pop(namespace, None)

    def group(self, change: Change[objects.UpstreamPodGroup], plain: Gang) -> bool:
        """A PodGroup came, went or changed: whether it has, or had, a composite above it; `plain` is what it says."""
        known = self._parents.setdefault(plain.namespace, {})
        before = known.pop(plain.key, "")
        self._plain.pop(plain.key, None)
        above = above_of(plain.namespace, change.object.spec.parent_composite_pod_group_name)
        if above and change.kind is not ChangeKind.DELETED:
            known[plain.key], self._plain[plain.key] = above, plain
        if before or above:
            self._found.pop(plain.namespace, None)
        return bool(before or above)

    def keys(self, namespace: str) -> tuple[str, ...]:
        """The PodGroups below composites."""
        return tuple(sorted(self._parents.get(namespace, ())))

    def nested(self, key: str) -> Gang:
        """Such a PodGroup with what its tree says of it."""
        plain = self._plain[key]
        found = self._nestings(plain.namespace).get(key, Nesting())
        nested: Gang = msgspec.structs.replace(plain, spec=with_nesting(plain.spec, found))
        return nested

    def _nestings(self, namespace: str) -> Mapping[str, Nesting]:
        if namespace not in self._found:
            parents, composites = self._parents.get(namespace, {}), self._composites.get(namespace, {})
            self._found[namespace] = nestings(parents, composites)
        return self._found[namespace]
