"""Role-based access control: which rules a user holds, and whether one of them allows what a request wants.

Rules only ever add up; nothing forbids. Source: kubernetes `plugin/pkg/auth/authorizer/rbac/rbac.go`,
`pkg/registry/rbac/validation/rule.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from embedded.apiserver.apimachinery.objects import Object, name_of, namespace_of, quoted
from embedded.apiserver.apimachinery.resource_types import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    ResourceType,
)
from embedded.apiserver.apimachinery.status import StatusError, not_found
from embedded.apiserver.authorization.rbac_rules import Rule, rule_of
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.request.attributes import Attributes, Decision
from embedded.apiserver.request.user_info import ACCOUNT_USER, MASTERS, UserInfo

_TYPES = (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS)
_MOST_USERS = 4096
_ALLOWED = Decision(True)
_NO_OPINION = Decision(False)
_Subject = tuple[str, str]  # kind and name, a service account as the user that it is


@dataclass(frozen=True, slots=True)
class Grant:
    """What one binding gives to one subject; `fault` tells of a role that is not there."""

    reason: str
    rules: tuple[Rule, ...] = ()
    fault: str = ""


@dataclass(slots=True)
class _Held:
    """The grants of one user: those of the whole cluster, and those of each namespace."""

    cluster: list[Grant] = field(default_factory=list)
    namespaces: dict[str, list[Grant]] = field(default_factory=dict)

    def within(self, namespace: str) -> Iterator[Grant]:
        yield from self.cluster
        if namespace:
            yield from self.namespaces.get(namespace, ())


class Rbac:
    """Decides by the stored roles and bindings; implements `attributes.Authorizer`.

    What a user holds is gathered once and kept until any role or binding changes.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._changes: list[int] = []
        self._bindings: dict[_Subject, list[tuple[int, str, Grant]]] = {}
        self._held: dict[tuple[str, tuple[str, ...]], _Held] = {}

    def decide(self, attributes: Attributes) -> Decision:
        if MASTERS in attributes.user.groups:
            return _ALLOWED
        faults = []
        for grant in self._held_by(attributes.user).within(attributes.namespace):
            if any(rule.allows(attributes) for rule in grant.rules):
                return Decision(True, grant.reason)
            if grant.fault:
                faults.append(grant.fault)
        return Decision(False, f"RBAC: {_aggregate(faults)}") if faults else _NO_OPINION

    def rules_for(self, user: UserInfo, namespace: str) -> tuple[list[Rule], str]:
        """Every rule a user holds in a namespace and cluster-wide, and which roles of theirs are not there."""
        grants = list(self._held_by(user).within(namespace))
        faults = [grant.fault for grant in grants if grant.fault]
        return [rule for grant in grants for rule in grant.rules], _aggregate(faults)

    def rules_of(self, reference: Object, namespace: str) -> tuple[Rule, ...]:
        """The rules of the role a binding of this namespace refers to; raises 404."""
        rtype = ROLES if reference["kind"] == "Role" else CLUSTER_ROLES
        role = self._resources.find(rtype, namespace if rtype is ROLES else "", reference["name"])
        if role is None:
            raise not_found(rtype, reference["name"])
        return tuple(rule_of(rule) for rule in role.get("rules") or ())

    def _held_by(self, user: UserInfo) -> _Held:
        self._renew()
        key = (user.name, user.groups)
        found = self._held.get(key)
        if found is None:
            if len(self._held) >= _MOST_USERS:
                self._held.clear()
            found = self._held[key] = self._gathered(user)
        return found

    def _gathered(self, user: UserInfo) -> _Held:
        held = _Held()
        subjects = [("User", user.name), *(("Group", group) for group in user.groups)]
        # Of a binding with several subjects that are this user, the first of them is named.
        found = {at: (namespace, grant) for key in subjects for at, namespace, grant in self._bindings.get(key, ())}
        for at in sorted(found):
            namespace, grant = found[at]
            (held.namespaces.setdefault(namespace, []) if namespace else held.cluster).append(grant)
        return held

    def _renew(self) -> None:
        """Read all bindings again after any change."""
        changes = [self._resources.store.changes(rtype.id) for rtype in _TYPES]
        if changes == self._changes:
            return
        self._changes, self._bindings, self._held = changes, {}, {}
        known: dict[tuple[str, str, str], tuple[tuple[Rule, ...], str]] = {}
        for at, (rtype, binding) in enumerate(self._all_bindings()):
            namespace, reference = namespace_of(binding), binding["roleRef"]
            role = (reference["kind"], namespace if reference["kind"] == "Role" else "", reference["name"])
            if role not in known:
                known[role] = self._rules_or_fault(reference, namespace)
            rules, fault = known[role]
            for subject in reversed(binding.get("subjects") or ()):
                if key := _subject_key(subject, namespace):
                    grant = Grant(_reason(rtype, binding, subject), rules, fault)
                    self._bindings.setdefault(key, []).append((at, namespace, grant))

    def _all_bindings(self) -> Iterator[tuple[ResourceType, Object]]:
        for rtype in (CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS):
            for binding in self._resources.objects(rtype):
                yield rtype, binding

    def _rules_or_fault(self, reference: Object, namespace: str) -> tuple[tuple[Rule, ...], str]:
        try:
            return self.rules_of(reference, namespace), ""
        except StatusError as error:
            return (), error.message


def _subject_key(subject: Object, namespace: str) -> _Subject | None:
    if subject["kind"] != "ServiceAccount":
        return subject["kind"], subject["name"]
    where = subject.get("namespace") or namespace
    return ("User", f"{ACCOUNT_USER}{where}:{subject['name']}") if where else None


def _reason(rtype: ResourceType, binding: Object, subject: Object) -> str:
    """What allowed a request, as kube-apiserver's audit log names it."""
    name, reference = name_of(binding), binding["roleRef"]
    if namespace := namespace_of(binding):
        name = f"{name}/{namespace}"
    return (
        f"RBAC: allowed by {rtype.kind} {quoted(name)} of {reference['kind']} {quoted(reference['name'])} "
        f"to {_described(subject, namespace)}"
    )


def _described(subject: Object, namespace: str) -> str:
    name = subject["name"]
    if subject["kind"] == "ServiceAccount":
        name = f"{name}/{subject.get('namespace') or namespace}"
    return f"{subject['kind']} {quoted(name)}"


def _aggregate(faults: Iterable[str]) -> str:
    """Several faults as apimachinery's Aggregate shows them: each once."""
    found = list(dict.fromkeys(faults))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]" if found else ""
