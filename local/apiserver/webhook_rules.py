"""Which admission webhooks a write concerns: configurations in, answers out; nothing is called here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from local.apiserver.objects import Object, dig, name_of
from local.apiserver.registry import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, ResourceType
from local.apiserver.selectors import Selector, admits, parse_label_selector
from local.apiserver.webhook_operations import Operation

# A webhook that refused these could not be removed again.
_EXEMPT = frozenset({MUTATING_WEBHOOKS.id, VALIDATING_WEBHOOKS.id})


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a webhook; a `*` stands for everything."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]  # resource, sub-resource
    scope: str

    def covers(self, rtype: ResourceType, subresource: str) -> bool:
        """Whether it names this version of a resource, whatever is done to it."""
        return (
            _has(self.groups, rtype.group)
            and _has(self.versions, rtype.version)
            and (self.scope == "*" or rtype.namespaced == (self.scope == "Namespaced"))
            and any(plural in ("*", rtype.plural) and sub in ("*", subresource) for plural, sub in self.resources)
        )


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of a stored configuration."""

    configuration: str
    name: str
    rules: tuple[Rule, ...]
    client: Object
    ignores_failure: bool
    equivalent: bool
    reinvoked: bool
    timeout_seconds: int
    namespaces: Selector
    objects: Selector

    @property
    def key(self) -> tuple[str, str]:
        return (self.configuration, self.name)

    def covers(self, versions: Sequence[ResourceType], subresource: str) -> bool:
        """Whether any rule names the resource; `versions` are its served ones, the requested one first."""
        return any(rule.covers(rtype, subresource) for rule in self.rules for rtype in self._tried(versions))

    def _tried(self, versions: Sequence[ResourceType]) -> Sequence[ResourceType]:
        return versions if self.equivalent else versions[:1]

    def wanted_as(
        self, operation: Operation, versions: Sequence[ResourceType], namespace_labels: Mapping[str, str]
    ) -> ResourceType | None:
        """The version the webhook wants to see the object in; None when it does not want to see it.

        `namespace_labels` are those of the object's namespace, of a Namespace its own.
        """
        rules = [rule for rule in self.rules if _has(rule.operations, operation.verb)]
        found = (
            rtype for rtype in self._tried(versions) for rule in rules if rule.covers(rtype, operation.subresource)
        )
        shown_as = next(found, None)
        if shown_as is None or not self._selects(operation, namespace_labels):
            return None
        return shown_as

    def _selects(self, operation: Operation, namespace_labels: Mapping[str, str]) -> bool:
        if operation.namespace and not admits(self.namespaces, namespace_labels):
            return False
        shown = [obj for obj in (operation.new, operation.old) if obj is not None]
        return not self.objects or any(admits(self.objects, dig(obj, "metadata.labels") or {}) for obj in shown)


def _has(values: frozenset[str], value: str) -> bool:
    return value in values or "*" in values


def exempt(rtype: ResourceType) -> bool:
    """Whether webhooks are never asked about this type."""
    return rtype.id in _EXEMPT


def webhooks_of(configuration: Object) -> Iterator[Webhook]:
    """The webhooks of a stored configuration, in their order."""
    for hook in configuration.get("webhooks") or ():
        yield Webhook(
            configuration=name_of(configuration),
            name=hook["name"],
            rules=tuple(_rule(rule) for rule in hook.get("rules") or ()),
            client=hook["clientConfig"],
            ignores_failure=hook["failurePolicy"] == "Ignore",
            equivalent=hook["matchPolicy"] == "Equivalent",
            reinvoked=hook.get("reinvocationPolicy") == "IfNeeded",
            timeout_seconds=hook["timeoutSeconds"],
            namespaces=parse_label_selector(hook["namespaceSelector"]) or (),
            objects=parse_label_selector(hook["objectSelector"]) or (),
        )


def _rule(rule: Object) -> Rule:
    parts = (text.partition("/") for text in rule["resources"])
    return Rule(
        operations=frozenset(rule["operations"]),
        groups=frozenset(rule["apiGroups"]),
        versions=frozenset(rule["apiVersions"]),
        resources=tuple((resource, subresource) for resource, _, subresource in parts),
        scope=rule["scope"],
    )
