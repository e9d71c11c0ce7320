"""Nobody gives away what they do not hold: who writes a role must hold its rules, who binds one those of the role.

Whoever may `escalate` a role, or `bind` it, is not held to that. Sources: kubernetes
`pkg/registry/rbac/*/policybased/storage.go`, `pkg/registry/rbac/validation/rule.go`.
"""

from __future__ import annotations

from collections.abc import Sequence

from embedded.apiserver.admission.admitted_writes import AdmissionHooks
from embedded.apiserver.apimachinery.objects import Object, copy, dig, quoted
from embedded.apiserver.apimachinery.resource_types import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    ResourceType,
)
from embedded.apiserver.apimachinery.status import forbidden
from embedded.apiserver.authorization.rbac import Rbac
from embedded.apiserver.authorization.rbac_rules import Rule, missing, quoted_list, rule_of
from embedded.apiserver.registry.resources import DeleteOptions, Draft
from embedded.apiserver.request.attributes import Attributes, Authorizer
from embedded.apiserver.request.operation import Operation
from embedded.apiserver.request.user_info import MASTERS, UserInfo

_ROLE_IDS = frozenset({CLUSTER_ROLES.id, ROLES.id})
_BINDING_IDS = frozenset({CLUSTER_ROLE_BINDINGS.id, ROLE_BINDINGS.id})
_EVERYTHING = (Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",)))
_COLLECTED = ("finalizers", "ownerReferences", "managedFields", "resourceVersion", "generation")


class Escalation:
    """Holds back what would give more than its writer has, passes the rest on; an `admitted_writes.AdmissionHooks`."""

    def __init__(self, others: AdmissionHooks, authorizer: Authorizer, rbac: Rbac) -> None:
        self._others = others
        self._authorizer = authorizer
        self._rbac = rbac

    def concern(self, rtype: ResourceType, namespace: str, subresource: str) -> bool:
        return rtype.id in _ROLE_IDS or rtype.id in _BINDING_IDS or self._others.concern(rtype, namespace, subresource)

    async def mutate(self, draft: Draft) -> None:
        await self._others.mutate(draft)

    async def validate(self, draft: Draft) -> None:
        self.check(draft)
        await self._others.validate(draft)

    async def validate_deletion(self, rtype: ResourceType, old: Object, options: DeleteOptions) -> None:
        await self._others.validate_deletion(rtype, old, options)

    async def validate_connection(self, operation: Operation, warnings: list[str]) -> None:
        await self._others.validate_connection(operation, warnings)

    def check(self, draft: Draft) -> None:
        """Raises 403."""
        user = draft.options.user
        if MASTERS in user.groups or _only_collected(draft):
            return
        if draft.rtype.id in _ROLE_IDS:
            if not self._may(user, "escalate", draft, draft.rtype.plural, draft.name):
                self._check_role(user, draft)
        elif draft.rtype.id in _BINDING_IDS:
            reference = draft.new["roleRef"]
            plural = (ROLES if reference["kind"] == "Role" else CLUSTER_ROLES).plural
            if not self._may(user, "bind", draft, plural, reference["name"]):
                self._check_rules(user, draft, self._rbac.rules_of(reference, draft.namespace))

    def _may(self, user: UserInfo, verb: str, draft: Draft, plural: str, name: str) -> bool:
        wanted = Attributes(user, verb, draft.rtype.group, "*", plural, namespace=draft.namespace, name=name)
        return self._authorizer.decide(wanted).allowed

    def _check_role(self, user: UserInfo, draft: Draft) -> None:
        self._check_rules(user, draft, [rule_of(rule) for rule in draft.new.get("rules") or ()])
        gathers = (dig(obj, "aggregationRule.clusterRoleSelectors") for obj in (draft.new, draft.old or {}))
        if any(gathers) and missing(self._rbac.rules_for(user, "")[0], _EVERYTHING):
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise forbidden(draft.rtype, draft.name, why)

    def _check_rules(self, user: UserInfo, draft: Draft, wanted: Sequence[Rule]) -> None:
        held, faults = self._rbac.rules_for(user, draft.namespace)
        if lacking := missing(held, wanted):
            why = (
                f"user {quoted(user.name)} (groups={quoted_list(user.groups)}) is attempting to grant RBAC permissions "
                "not currently held:\n" + "\n".join(map(str, lacking))
            )
            resolved = f"; resolution errors: [{faults}]" if faults else ""
            raise forbidden(draft.rtype, draft.name, why + resolved)


def _only_collected(draft: Draft) -> bool:
    """Whether nothing changes but what the garbage collector needs changed to remove the object."""
    return draft.old is not None and _without_collected(draft.old) == _without_collected(draft.new)


def _without_collected(obj: Object) -> Object:
    kept = copy(obj)
    for key in _COLLECTED:
        kept["metadata"].pop(key, None)
    return kept
