"""What a user was granted and never used, and what it asked for and was denied: roles held against an audit log.

Roles are as wide as somebody once wrote them; this tells how wide they need to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from embedded.apiserver.apimachinery.objects import Object, dig, name_of, namespace_of
from embedded.apiserver.authorization.rbac_rules import Rule, rule_of
from embedded.apiserver.request.attributes import Attributes
from embedded.apiserver.request.user_info import ACCOUNT_USER, UserInfo

_DENIED = 403
_DECISION = "authorization.k8s.io/decision"


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource, or on one path. An empty namespace is all of them, an empty name every object."""

    verb: str
    group: str = ""
    resource: str = ""  # with its sub-resource: `pods/status`
    name: str = ""
    namespace: str = ""
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"{self.verb} {self.path}"
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        named = f" {self.name}" if self.name else ""
        return f"{self.verb} {what}{named}{f' in {self.namespace}' if self.namespace else ''}"


@dataclass(frozen=True, slots=True)
class Usage:
    """Both lists in the order of their words, each entry once."""

    denied: tuple[Permission, ...]
    unused: tuple[Permission, ...]


def usage(user: str, objects: Sequence[Object], events: Iterable[Object]) -> Usage:
    """How a user used what was bound to it by name.

    `objects` are the roles and bindings of rbac.authorization.k8s.io/v1, others are passed over; `events` those of
    audit.k8s.io/v1. What groups of the user are given is not looked at.
    """
    allowed, denied = dict[Permission, Attributes](), set[Permission]()
    for event in events:
        who = event.get("impersonatedUser") or event.get("user") or {}
        if who.get("username") == user:
            call = _call(event)
            if dig(event, "responseStatus.code") == _DENIED:
                denied.add(_asked(call))
            elif (event.get("annotations") or {}).get(_DECISION) == "allow":
                allowed[_asked(call)] = call
    grants = set(granted(user, objects))
    calls = allowed.values()
    unused = (permission for permission, rule in grants if not any(_used(permission, rule, call) for call in calls))
    return Usage(_ordered(denied), _ordered(unused))


def granted(user: str, objects: Sequence[Object]) -> Iterator[tuple[Permission, Rule]]:
    """Every single permission that bindings give to this user by name, with the rule that says only that."""
    roles = {(o["kind"], namespace_of(o), name_of(o)): o for o in objects if o["kind"] in ("ClusterRole", "Role")}
    for binding in objects:
        if not binding["kind"].endswith("RoleBinding"):
            continue
        namespace, reference = namespace_of(binding), binding["roleRef"]
        if any(_subject(subject, namespace) == user for subject in binding.get("subjects") or ()):
            role = roles.get((reference["kind"], namespace if reference["kind"] == "Role" else "", reference["name"]))
            for rule in (role or {}).get("rules") or ():
                yield from ((_permission(part, namespace), part) for part in rule_of(rule).parts)


def _subject(subject: Object, namespace: str) -> str:
    if subject["kind"] == "ServiceAccount":
        return f"{ACCOUNT_USER}{subject.get('namespace') or namespace}:{subject['name']}"
    return str(subject["name"]) if subject["kind"] == "User" else ""


def _permission(part: Rule, namespace: str) -> Permission:
    verb, group, resource, name, path = (
        "".join(values[:1]) for values in (part.verbs, part.groups, part.resources, part.names, part.urls)
    )
    return Permission(verb, group, resource, name, namespace, path)


def _used(permission: Permission, rule: Rule, call: Attributes) -> bool:
    return permission.namespace in ("", call.namespace) and rule.allows(call)


def _call(event: Object) -> Attributes:
    found = event.get("objectRef") or {}
    path = "" if found else str(event["requestURI"]).partition("?")[0]
    words = {key: str(found.get(key) or "") for key in ("resource", "subresource", "namespace", "name")}
    return Attributes(UserInfo(""), event["verb"], str(found.get("apiGroup") or ""), path=path, **words)


def _asked(call: Attributes) -> Permission:
    return Permission(call.verb, call.group, call.combined_resource, call.name, call.namespace, call.path)


def _ordered(found: Iterable[Permission]) -> tuple[Permission, ...]:
    return tuple(sorted(set(found), key=lambda each: (str(each), each.namespace)))
