"""ClusterRoles made of others: their rules are those of every ClusterRole their selectors admit.

Source: kubernetes `pkg/controller/clusterroleaggregation`.
"""

from __future__ import annotations

from functools import partial

from embedded.apiserver.apimachinery.objects import Object, dig, name_of
from embedded.apiserver.apimachinery.resource_types import CLUSTER_ROLES
from embedded.apiserver.apimachinery.selectors import admits, parse_label_selector
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.storage.records import Event


class RoleAggregation:
    """Follows every change of a ClusterRole; one that is made of others may itself be part of a further one."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._changes = -1  # those that have been followed

    def react(self, type_id: str, event: Event) -> None:
        if type_id == CLUSTER_ROLES.id and self._resources.store.changes(type_id) != self._changes:
            self.aggregate()

    def aggregate(self) -> None:
        """Bring every ClusterRole that is made of others up to date with what the others are at this moment."""
        roles = {name_of(role): role for role in self._resources.objects(CLUSTER_ROLES)}
        for _ in range(len(roles)):  # so many of them may stand on one another
            if not (changed := self._changed(roles)):
                break
            for name in changed:
                self._resources.update(CLUSTER_ROLES, "", name, partial(_with_rules, roles[name]["rules"]))
        self._changes = self._resources.store.changes(CLUSTER_ROLES.id)

    def _changed(self, roles: dict[str, Object]) -> list[str]:
        """Renew the rules of those that gather, each from what the others are by then; whose rules are others now."""
        changed = []
        for name, role in roles.items():
            rules = combined(role, list(roles.values()))
            if rules is not None and rules != (role.get("rules") or []):
                roles[name] = _with_rules(rules, role)
                changed.append(name)
        return changed


def _with_rules(rules: list[Object], role: Object) -> Object:
    return {**role, "rules": rules}


def combined(role: Object, roles: list[Object]) -> list[Object] | None:
    """The rules a role gathers from these, each once, by the names of their roles; None where it gathers none."""
    selectors = [parse_label_selector(selector) for selector in dig(role, "aggregationRule.clusterRoleSelectors") or ()]
    if not selectors:
        return None
    rules: list[Object] = []
    for selector in selectors:
        for other in sorted(roles, key=name_of):
            labels = dig(other, "metadata.labels") or {}
            if name_of(other) != name_of(role) and admits(selector or (), labels):
                rules += [rule for rule in other.get("rules") or () if rule not in rules]
    return rules
