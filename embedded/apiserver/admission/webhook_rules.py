"""Which admission webhooks a write concerns: configurations in, answers out; nothing is called here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from embedded.apiserver.admission.matching import Matching, matching_of
from embedded.apiserver.apimachinery.objects import Object, name_of
from embedded.apiserver.apimachinery.resource_types import (
    MUTATING_WEBHOOKS,
    VALIDATING_POLICIES,
    VALIDATING_POLICY_BINDINGS,
    VALIDATING_WEBHOOKS,
    ResourceType,
)
from embedded.apiserver.cel.expressions import Program
from embedded.apiserver.cel.match_conditions import programs

# A webhook that refused these could not be removed again.
_EXEMPT = frozenset(
    rtype.id for rtype in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, VALIDATING_POLICIES, VALIDATING_POLICY_BINDINGS)
)


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of a stored configuration."""

    configuration: str
    name: str
    matching: Matching
    client: Object
    ignores_failure: bool
    reinvoked: bool
    timeout_seconds: int
    conditions: tuple[Program, ...]

    @property
    def key(self) -> tuple[str, str]:
        return (self.configuration, self.name)


def exempt(rtype: ResourceType) -> bool:
    """Whether webhooks are never asked about this type."""
    return rtype.id in _EXEMPT


def webhooks_of(configuration: Object) -> Iterator[Webhook]:
    """The webhooks of a stored configuration, in their order."""
    for hook in configuration.get("webhooks") or ():
        yield Webhook(
            configuration=name_of(configuration),
            name=hook["name"],
            matching=matching_of(hook),
            client=hook["clientConfig"],
            ignores_failure=hook["failurePolicy"] == "Ignore",
            reinvoked=hook.get("reinvocationPolicy") == "IfNeeded",
            timeout_seconds=hook["timeoutSeconds"],
            conditions=programs(hook.get("matchConditions") or ()),
        )
