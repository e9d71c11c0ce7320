"""Field errors of affinities and spread constraints. Words: Kubernetes' pkg/apis/core/validation."""

from __future__ import annotations

from collections.abc import Iterator

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    not_allowed,
    not_supported,
    required,
)
from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.validation.label_selectors import expression_errors, label_selector_errors

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSIONS = ("Honor", "Ignore")


def affinity_errors(path: str, affinity: Object) -> Iterator[FieldError]:
    yield from _node_affinity_errors(f"{path}.nodeAffinity", affinity.get("nodeAffinity") or {})
    for key in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity_errors(f"{path}.{key}", affinity.get(key) or {})


def _node_affinity_errors(path: str, affinity: Object) -> Iterator[FieldError]:
    wanted = affinity.get(_REQUIRED)
    if wanted is not None:
        yield from node_selector_errors(f"{path}.{_REQUIRED}", wanted)
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_errors(here, preferred["weight"])
        yield from _node_term_errors(f"{here}.preference", preferred["preference"])


def node_selector_errors(path: str, selector: Object) -> Iterator[FieldError]:
    """Of a NodeSelector."""
    here = f"{path}.nodeSelectorTerms"
    if not selector["nodeSelectorTerms"]:
        yield required(here, "must have at least one node selector term")
    for index, term in enumerate(selector["nodeSelectorTerms"]):
        yield from _node_term_errors(f"{here}[{index}]", term)
        for number, expression in enumerate(term.get("matchExpressions") or ()):
            for at, value in enumerate(expression.get("values") or ()):
                yield from names.label_value(f"{here}[{index}].matchExpressions[{number}].values[{at}]", value)


def _node_term_errors(path: str, term: Object) -> Iterator[FieldError]:
    need = "must be specified when `operator` is 'In' or 'NotIn'"
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        yield from expression_errors(here, expression, need, comparing=("Gt", "Lt"))
        yield from names.qualified_name(f"{here}.key", expression["key"])
    for index, expression in enumerate(term.get("matchFields") or ()):
        here = f"{path}.matchFields[{index}]"
        if expression["operator"] not in ("In", "NotIn"):
            yield bad_value(f"{here}.operator", expression["operator"], "not a valid selector operator")
        elif len(expression.get("values") or ()) != 1:
            why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            yield required(f"{here}.values", why)
        if expression["key"] != "metadata.name":
            yield bad_value(f"{here}.key", expression["key"], "not a valid field selector key")


def _weight_errors(path: str, weight: int) -> Iterator[FieldError]:
    if not 1 <= weight <= 100:
        yield bad_value(f"{path}.weight", weight, "must be in the range 1-100")


def _pod_affinity_errors(path: str, affinity: Object) -> Iterator[FieldError]:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        yield from _pod_term_errors(f"{path}.{_REQUIRED}[{index}]", term)
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_errors(here, preferred["weight"])
        yield from _pod_term_errors(f"{here}.podAffinityTerm", preferred["podAffinityTerm"])


def _pod_term_errors(path: str, term: Object) -> Iterator[FieldError]:
    for key in ("labelSelector", "namespaceSelector"):
        yield from label_selector_errors(f"{path}.{key}", term.get(key))
    for namespace in term.get("namespaces") or ():
        yield from names.dns_label(f"{path}.namespace", namespace)
    if term["topologyKey"]:
        yield from names.qualified_name(f"{path}.topologyKey", term["topologyKey"])
    else:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from _label_key_errors(path, term, ("matchLabelKeys", "mismatchLabelKeys"))
    unlike = term.get("mismatchLabelKeys") or ()
    for index, key in enumerate(term.get("matchLabelKeys") or ()):
        if key in unlike:
            yield bad_value(
                f"{path}.matchLabelKeys[{index}]", key, "exists in both matchLabelKeys and mismatchLabelKeys"
            )


def spread_errors(path: str, constraints: list[Object]) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        here, key, policy = f"{path}[{index}]", constraint["topologyKey"], constraint["whenUnsatisfiable"]
        if constraint["maxSkew"] <= 0:
            yield bad_value(f"{here}.maxSkew", constraint["maxSkew"], "must be greater than zero")
        if not key:
            yield required(f"{here}.topologyKey", "can not be empty")
        if policy not in _UNSATISFIABLE:
            yield not_supported(f"{here}.whenUnsatisfiable", policy, _UNSATISFIABLE)
        yield from _domain_errors(f"{here}.minDomains", constraint.get("minDomains"), policy)
        for rule in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(rule) not in (None, *_INCLUSIONS):
                yield not_supported(f"{here}.{rule}", constraint[rule], _INCLUSIONS)
        if (key, policy) in seen:
            yield duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {policy}}}")
        seen.add((key, policy))
        yield from label_selector_errors(f"{here}.labelSelector", constraint.get("labelSelector"))
        yield from _label_key_errors(here, constraint, ("matchLabelKeys",))


def _label_key_errors(path: str, holder: Object, lists: tuple[str, ...]) -> Iterator[FieldError]:
    for listed in lists:
        keys = holder.get(listed) or ()
        if keys and holder.get("labelSelector") is None:
            yield not_allowed(f"{path}.{listed}", "must not be specified when labelSelector is not set")
        for index, key in enumerate(keys):
            yield from names.qualified_name(f"{path}.{listed}[{index}]", key)


def _domain_errors(path: str, least: int | None, policy: str) -> Iterator[FieldError]:
    if least is None:
        return
    if least <= 0:
        yield bad_value(path, least, "must be greater than zero")
    if policy != _UNSATISFIABLE[0]:
        why = f"can only use minDomains if whenUnsatisfiable={_UNSATISFIABLE[0]}, not {policy}"
        yield bad_value(path, least, why)
