"""Field errors of scheduling.k8s.io's PodGroup. Rules: k8s.io/api/scheduling/v1beta1."""

from __future__ import annotations

from collections.abc import Iterator

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_allowed, required, too_many
from embedded.apiserver.apimachinery.objects import Object, copy, dig

_ONE_POLICY = "must specify exactly one of: `basic`, `gang`"
_ONE_MODE = "must specify exactly one of: `all`, `single`"


def pod_group_errors(group: Object) -> Iterator[FieldError]:
    """Exactly one policy, members enough for a gang, at most one topology."""
    spec = group["spec"]
    policy = spec.get("schedulingPolicy") or {}
    if len([key for key in ("basic", "gang") if policy.get(key) is not None]) != 1:
        yield bad_value("spec.schedulingPolicy", policy, _ONE_POLICY)
    minimum = dig(policy, "gang.minCount")
    if policy.get("gang") is not None and (minimum is None or minimum < 1):
        yield bad_value("spec.schedulingPolicy.gang.minCount", minimum, "must be greater than or equal to 1")
    mode = spec.get("disruptionMode")
    if mode is not None and len([key for key in ("all", "single") if mode.get(key) is not None]) != 1:
        yield bad_value("spec.disruptionMode", mode, _ONE_MODE)
    constraints = dig(spec, "schedulingConstraints.topology") or []
    if len(constraints) > 1:
        yield too_many("spec.schedulingConstraints.topology", len(constraints), 1)
    for index, constraint in enumerate(constraints):
        path = f"spec.schedulingConstraints.topology[{index}].key"
        if constraint.get("key"):
            yield from names.qualified_name(path, constraint["key"])
        else:
            yield required(path)


def pod_group_changes(group: Object, old: Object) -> Iterator[FieldError]:
    """All but a gang's minimum stays."""
    if _fixed(group) != _fixed(old):
        yield not_allowed("spec", "field is immutable")


def _fixed(group: Object) -> Object:
    spec: Object = copy(group["spec"])
    (dig(spec, "schedulingPolicy.gang") or {}).pop("minCount", None)
    return spec
