"""Roles and bindings as they are written: their defaults, and what is wrong with them.

Sources: kubernetes `pkg/apis/rbac/validation/validation.go`, `pkg/apis/rbac/v1/defaults.go`.
"""

from __future__ import annotations

from collections.abc import Iterator

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_supported, required
from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.apimachinery.resource_types import CLUSTER_ROLES
from embedded.apiserver.validation.label_selectors import label_selector_errors

_GROUP = CLUSTER_ROLES.group
_SUBJECT_KINDS = ("Group", "ServiceAccount", "User")


def default_binding(binding: Object) -> None:
    reference = binding.setdefault("roleRef", {})
    for key in ("apiGroup", "kind", "name"):
        reference.setdefault(key, "")
    reference["apiGroup"] = reference["apiGroup"] or _GROUP
    for subject in binding.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = subject.get("apiGroup") or _GROUP


def role_errors(role: Object) -> Iterator[FieldError]:
    for index, rule in enumerate(role.get("rules") or ()):
        yield from _rule_errors(f"rules[{index}]", rule, namespaced=True)


def cluster_role_errors(role: Object) -> Iterator[FieldError]:
    for index, rule in enumerate(role.get("rules") or ()):
        yield from _rule_errors(f"rules[{index}]", rule, namespaced=False)
    if (aggregation := role.get("aggregationRule")) is not None:
        yield from _aggregation_errors("aggregationRule.clusterRoleSelectors", aggregation)


def _aggregation_errors(path: str, aggregation: Object) -> Iterator[FieldError]:
    selectors = aggregation.get("clusterRoleSelectors") or []
    if not selectors:
        yield required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, selector in enumerate(selectors):
        yield from label_selector_errors(f"{path}[{index}]", selector)


def _rule_errors(path: str, rule: Object, namespaced: bool) -> Iterator[FieldError]:
    if not rule.get("verbs"):
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        where = f"{path}.nonResourceURLs"
        if namespaced:
            yield bad_value(where, urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            yield bad_value(where, urls, "rules cannot apply to both regular resources and non-resource URLs")
        return
    if not rule.get("apiGroups"):
        yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required(f"{path}.resources", "resource rules must supply at least one resource")


def role_binding_errors(binding: Object) -> Iterator[FieldError]:
    yield from _binding_errors(binding, ("ClusterRole", "Role"), namespaced=True)


def cluster_role_binding_errors(binding: Object) -> Iterator[FieldError]:
    yield from _binding_errors(binding, ("ClusterRole",), namespaced=False)


def _binding_errors(binding: Object, kinds: tuple[str, ...], namespaced: bool) -> Iterator[FieldError]:
    reference = binding["roleRef"]
    if reference["apiGroup"] != _GROUP:
        yield not_supported("roleRef.apiGroup", reference["apiGroup"], (_GROUP,))
    if reference["kind"] not in kinds:
        yield not_supported("roleRef.kind", reference["kind"], kinds)
    if reference["name"]:
        yield from names.path_segment("roleRef.name", reference["name"])
    else:
        yield required("roleRef.name")
    for index, subject in enumerate(binding.get("subjects") or ()):
        yield from _subject_errors(f"subjects[{index}]", subject, namespaced)


def _subject_errors(path: str, subject: Object, namespaced: bool) -> Iterator[FieldError]:
    kind, name, group = (subject.get(key) or "" for key in ("kind", "name", "apiGroup"))
    if not name:
        yield required(f"{path}.name")
    if kind == "ServiceAccount":
        if name:
            yield from names.dns_subdomain(f"{path}.name", name)
        if group:
            yield not_supported(f"{path}.apiGroup", group, ("",))
        if not namespaced and not subject.get("namespace"):
            yield required(f"{path}.namespace")
    elif kind in _SUBJECT_KINDS:
        if not name:
            yield bad_value(f"{path}.name", name, f"{kind.lower()} name cannot be empty")
        if group != _GROUP:
            yield not_supported(f"{path}.apiGroup", group, (_GROUP,))
    else:
        yield not_supported(f"{path}.kind", kind, _SUBJECT_KINDS)


def binding_changes(binding: Object, old: Object) -> Iterator[FieldError]:
    """A binding keeps its role: to give another one it has to be made again."""
    if binding["roleRef"] != old["roleRef"]:
        yield bad_value("roleRef", binding["roleRef"], "cannot change roleRef")
