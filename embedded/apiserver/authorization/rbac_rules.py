"""One rule of a role: what it allows, what it covers of another, and how it is written in refusals.

Sources: kubernetes `pkg/apis/rbac/v1/evaluation_helpers.go`, `component-helpers/auth/rbac/validation`,
`pkg/registry/rbac/validation/policy_compact.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from embedded.apiserver.apimachinery.objects import Object, quoted
from embedded.apiserver.request.attributes import Attributes

_ALL = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """A PolicyRule; empty `names` mean every object."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def allows(self, wanted: Attributes) -> bool:
        if wanted.verb not in self.verbs and _ALL not in self.verbs:
            return False
        if not wanted.resource:
            return any(_covers_url(url, wanted.path) for url in self.urls)
        return (
            (wanted.group in self.groups or _ALL in self.groups)
            and _covers_resource(self.resources, wanted.combined_resource)
            and (not self.names or wanted.name in self.names)
        )

    def covers(self, part: Rule) -> bool:
        """Whether it allows all that another rule allows, one that `parts` has taken apart."""
        return (
            _covers(self.verbs, part.verbs)
            and _covers(self.groups, part.groups)
            and all(_covers_resource(self.resources, resource) for resource in part.resources)
            and all(any(_covers_url(url, wanted) for url in self.urls) for wanted in part.urls)
            and (not self.names or (bool(part.names) and set(part.names) <= set(self.names)))
        )

    @property
    def parts(self) -> Iterator[Rule]:
        """Rules of one verb, group, resource and name, or of one verb and path, that together say the same."""
        for group in self.groups:
            for resource in self.resources:
                for verb in self.verbs:
                    whole = Rule((verb,), (group,), (resource,))
                    yield from (replace(whole, names=(name,)) for name in self.names) if self.names else (whole,)
        yield from (Rule((verb,), urls=(url,)) for url in self.urls for verb in self.verbs)

    def __str__(self) -> str:
        parts = {
            "APIGroups": self.groups,
            "Resources": self.resources,
            "NonResourceURLs": self.urls,
            "ResourceNames": self.names,
            "Verbs": self.verbs,
        }
        return "{" + ", ".join(f"{key}:{quoted_list(values)}" for key, values in parts.items() if values) + "}"

    @property
    def shown(self) -> Object:
        """As a PolicyRule in JSON."""
        parts = {
            "verbs": self.verbs,
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
        }
        return {key: list(values) for key, values in parts.items() if values}


def rule_of(found: Object) -> Rule:
    """From a PolicyRule in JSON."""
    keys = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
    return Rule(*(tuple(found.get(key) or ()) for key in keys))


def missing(held: Iterable[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """What of the wanted rules none of the held ones covers, verbs of the same resource together, in text order."""
    owned, together = list(held), dict[tuple[object, ...], Rule]()
    for part in (part for rule in wanted for part in rule.parts):
        if not any(rule.covers(part) for rule in owned):
            key = (part.groups, part.resources, part.names, part.urls, part.urls and part.verbs)
            known = together.get(key)
            together[key] = part if known is None else replace(known, verbs=(*known.verbs, *part.verbs))
    return sorted(together.values(), key=str)


def quoted_list(values: Iterable[str]) -> str:
    """As Go's %q writes a list of strings."""
    return f"[{' '.join(map(quoted, values))}]"


def _covers(held: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return _ALL in held or all(value in held for value in wanted)


def _covers_resource(held: tuple[str, ...], wanted: str) -> bool:
    if wanted in held or _ALL in held:
        return True
    _, slash, subresource = wanted.partition("/")
    return bool(slash) and f"*/{subresource}" in held


def _covers_url(held: str, wanted: str) -> bool:
    return held in (wanted, _ALL) or (held.endswith("*") and wanted.startswith(held.rstrip("*")))
