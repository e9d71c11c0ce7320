"""Field errors of ResourceQuotas, which are stored and not enforced. Words: Kubernetes' pkg/apis/core/validation."""

from __future__ import annotations

from collections.abc import Iterator

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_supported, required
from embedded.apiserver.apimachinery.objects import Object, dig
from embedded.quantity import parse

_RESOURCES = frozenset(
    {
        "cpu",
        "memory",
        "ephemeral-storage",
        "storage",
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_PREFIXES = ("requests.", "limits.", "hugepages-", "count/")
_COUNTED = _RESOURCES - {"cpu", "memory", "ephemeral-storage", "storage"}
_SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)


def quota_errors(quota: Object) -> Iterator[FieldError]:
    for path in ("spec.hard", "status.hard", "status.used"):
        for resource, amount in (dig(quota, path) or {}).items():
            yield from _amount_errors(f"{path}[{resource}]", resource, amount)
    scopes = dig(quota, "spec.scopes") or []
    if any(scope not in _SCOPES for scope in scopes):
        yield bad_value("spec.scopes", scopes, "unsupported scope")
    for index, expression in enumerate(dig(quota, "spec.scopeSelector.matchExpressions") or ()):
        path = f"spec.scopeSelector.matchExpressions[{index}]"
        if expression["scopeName"] not in _SCOPES:
            yield bad_value(f"{path}.scopeName", expression["scopeName"], "unsupported scope")
        if expression["operator"] in ("In", "NotIn") and not expression.get("values"):
            detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield required("spec.scopeSelector.matchExpressions.values", detail)
        if expression["operator"] not in ("In", "NotIn", "Exists", "DoesNotExist"):
            yield not_supported(f"{path}.operator", expression["operator"], ("In", "NotIn", "Exists", "DoesNotExist"))


def _amount_errors(path: str, resource: str, amount: str) -> Iterator[FieldError]:
    yield from names.qualified_name(path, resource)
    if "/" not in resource and resource not in _RESOURCES and not resource.startswith(_PREFIXES):
        yield bad_value(path, resource, "must be a standard resource for quota")
    value = parse(amount)
    if value < 0:
        yield bad_value(path, amount, "must be greater than or equal to 0")
    elif (resource in _COUNTED or resource.startswith("count/")) and value.denominator != 1:
        yield bad_value(path, amount, "must be an integer")


def quota_changes(quota: Object, old: Object) -> Iterator[FieldError]:
    if set(dig(quota, "spec.scopes") or ()) != set(dig(old, "spec.scopes") or ()):
        yield bad_value("spec.scopes", dig(quota, "spec.scopes"), "field is immutable")
