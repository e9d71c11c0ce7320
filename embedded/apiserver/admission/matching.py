"""Which writes a webhook or a policy wants to see: rules over resources, and selectors over labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedded.apiserver.apimachinery.objects import Object, dig
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.apimachinery.selectors import Selector, admits, parse_label_selector

if TYPE_CHECKING:
    from embedded.apiserver.request.operation import Operation


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; a `*` stands for everything. Without names it is about all of them."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]  # resource, sub-resource
    scope: str
    names: frozenset[str] = frozenset()

    def covers(self, rtype: ResourceType, subresource: str) -> bool:
        """Whether it names this version of a resource, whatever is done to it."""
        return (
            _has(self.groups, rtype.group)
            and _has(self.versions, rtype.version)
            and (self.scope == "*" or rtype.namespaced == (self.scope == "Namespaced"))
            and any(plural in ("*", rtype.plural) and sub in ("*", subresource) for plural, sub in self.resources)
        )

    def concerns(self, operation: Operation, rtype: ResourceType) -> bool:
        """Whether it is about this operation, were the object of this version."""
        named = not self.names or operation.name in self.names
        return named and _has(self.operations, operation.verb) and self.covers(rtype, operation.subresource)


@dataclass(frozen=True, slots=True)
class Matching:
    """What somebody wants to see."""

    rules: tuple[Rule, ...]
    excluded: tuple[Rule, ...]
    equivalent: bool
    namespaces: Selector
    objects: Selector

    def covers(self, versions: Sequence[ResourceType], subresource: str) -> bool:
        """Whether any rule names the resource; `versions` are its served ones, the requested one first."""
        return any(rule.covers(rtype, subresource) for rule in self.rules for rtype in self._tried(versions))

    def _tried(self, versions: Sequence[ResourceType]) -> Sequence[ResourceType]:
        return versions if self.equivalent else versions[:1]

    def wanted_as(
        self, operation: Operation, versions: Sequence[ResourceType], namespace_labels: Mapping[str, str]
    ) -> ResourceType | None:
        """The version the object is to be shown in; None when it is not to be shown.

        `namespace_labels` are those of the object's namespace, of a Namespace its own.
        """
        if self._found(self.excluded, operation, versions) is not None:
            return None
        shown_as = self._found(self.rules, operation, versions)
        return shown_as if shown_as is not None and self._selects(operation, namespace_labels) else None

    def _found(
        self, rules: Iterable[Rule], operation: Operation, versions: Sequence[ResourceType]
    ) -> ResourceType | None:
        tried = ((rtype, rule) for rtype in self._tried(versions) for rule in rules)
        return next((rtype for rtype, rule in tried if rule.concerns(operation, rtype)), None)

    def _selects(self, operation: Operation, namespace_labels: Mapping[str, str]) -> bool:
        if operation.namespace and not admits(self.namespaces, namespace_labels):
            return False
        shown = [obj for obj in (operation.new, operation.old) if obj is not None]
        return not self.objects or any(admits(self.objects, dig(obj, "metadata.labels") or {}) for obj in shown)


_ALL = frozenset("*")
ANYTHING = Matching((Rule(_ALL, _ALL, _ALL, (("*", "*"),), "*"),), (), True, (), ())


def _has(values: frozenset[str], value: str) -> bool:
    return value in values or "*" in values


def matching_of(found: Object, rules: str = "rules") -> Matching:
    """Of a webhook, or of the match resources of a policy or binding (`resourceRules`)."""
    return Matching(
        rules=tuple(_rule(rule) for rule in found.get(rules) or ()),
        excluded=tuple(_rule(rule) for rule in found.get("excludeResourceRules") or ()),
        equivalent=found["matchPolicy"] == "Equivalent",
        namespaces=parse_label_selector(found["namespaceSelector"]) or (),
        objects=parse_label_selector(found["objectSelector"]) or (),
    )


def _rule(rule: Object) -> Rule:
    parts = (text.partition("/") for text in rule["resources"])
    return Rule(
        operations=frozenset(rule["operations"]),
        groups=frozenset(rule["apiGroups"]),
        versions=frozenset(rule["apiVersions"]),
        resources=tuple((resource, subresource) for resource, _, subresource in parts),
        scope=rule["scope"],
        names=frozenset(rule.get("resourceNames") or ()),
    )
