"""Field errors of pod specifications and of changes to them."""

from collections.abc import Iterator

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, duplicate, not_allowed, not_supported
from embedded.apiserver.apimachinery.objects import Object, copy, dig
from embedded.apiserver.validation.affinities import affinity_errors, spread_errors
from embedded.apiserver.validation.containers import containers_errors
from embedded.apiserver.validation.pod_hosts import surroundings_errors
from embedded.apiserver.validation.pod_volumes import volume_list_errors
from embedded.apiserver.validation.security_contexts import operating_system_errors, pod_security_errors

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_TOLERATION_OPERATORS = ("Equal", "Exists")
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# Fields that may also be absent, which is something else than false; of all others it is the same.
_MAY_BE_FALSE = frozenset(
    {"automountServiceAccountToken", "enableServiceLinks", "hostUsers", "setHostnameAsFQDN", "shareProcessNamespace"}
)
_CHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_spec_errors(path: str, spec: Object) -> Iterator[FieldError]:
    """Everything wrong with a defaulted pod specification, in Kubernetes' order."""
    yield from volume_list_errors(f"{path}.volumes", spec.get("volumes") or [])
    yield from containers_errors(path, spec, frozenset(volume["name"] for volume in spec.get("volumes") or ()))
    if spec.get("hostNetwork"):
        yield from _host_network_errors(path, spec)
    for key, allowed in (("restartPolicy", _RESTART_POLICIES), ("dnsPolicy", _DNS_POLICIES)):
        if spec[key] not in allowed:
            yield not_supported(f"{path}.{key}", spec[key], allowed)
    yield from pod_security_errors(f"{path}.securityContext", spec)
    yield from names.labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    yield from affinity_errors(f"{path}.affinity", spec.get("affinity") or {})
    yield from _gate_errors(path, spec)
    yield from spread_errors(f"{path}.topologySpreadConstraints", spec.get("topologySpreadConstraints") or [])
    for key, rule in _NAMES.items():
        if spec.get(key):
            yield from rule(f"{path}.{key}", spec[key])
    yield from _second_errors(path, spec)
    yield from toleration_errors(path, spec)
    yield from surroundings_errors(path, spec)
    yield from operating_system_errors(path, spec)
    if (policy := spec.get("preemptionPolicy")) is not None and policy not in _PREEMPTION_POLICIES:
        yield not_supported(f"{path}.preemptionPolicy", policy, _PREEMPTION_POLICIES)


_NAMES = {
    "serviceAccountName": names.dns_subdomain,
    "nodeName": names.dns_subdomain,
    "hostname": names.dns_label,
    "subdomain": names.dns_label,
    "priorityClassName": names.dns_subdomain,
    "runtimeClassName": names.dns_subdomain,
}


def _second_errors(path: str, spec: Object) -> Iterator[FieldError]:
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 1 << 31:
        yield bad_value(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")


def _gate_errors(path: str, spec: Object) -> Iterator[FieldError]:
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        yield from names.qualified_name(f"{path}.readinessGates[{index}].conditionType", gate["conditionType"])
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        yield from names.qualified_name(f"{path}.schedulingGates[{index}]", gate["name"])
        if gate["name"] in seen:
            yield duplicate(f"{path}.schedulingGates[{index}]", gate["name"])
        seen.add(gate["name"])
    if seen and spec.get("nodeName"):
        yield not_allowed(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared")


def _host_network_errors(path: str, spec: Object) -> Iterator[FieldError]:
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort", 0) not in (0, port["containerPort"]):
                here = f"{path}.containers[{index}].ports[{number}].hostPort"
                yield bad_value(here, port["hostPort"], "must match `containerPort` when `hostNetwork` is true")


def toleration_errors(path: str, spec: Object) -> Iterator[FieldError]:
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _one_toleration(f"{path}.tolerations[{index}]", toleration)


def _one_toleration(path: str, toleration: Object) -> Iterator[FieldError]:
    key, value = toleration.get("key") or "", toleration.get("value") or ""
    operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
    if key:
        yield from names.qualified_name(f"{path}.key", key)
    elif operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield bad_value(f"{path}.operator", operator, why)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield bad_value(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("", "Equal"):
        yield from names.label_value(f"{path}.operator", value)
    elif operator not in _TOLERATION_OPERATORS:
        yield not_supported(f"{path}.operator", operator, _TOLERATION_OPERATORS)
    elif value:
        yield bad_value(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    if effect and effect not in _TAINT_EFFECTS:
        yield not_supported(f"{path}.effect", effect, _TAINT_EFFECTS)


def pod_update_errors(pod: Object, old: Object) -> Iterator[FieldError]:
    """A pod's specification is settled at birth, but for the few fields Kubernetes lets move."""
    spec, old_spec = pod["spec"], old["spec"]
    if copy(_settled(spec, old_spec)) != _settled(old_spec, old_spec):
        yield not_allowed("spec", _CHANGEABLE)
    for group in ("initContainers", "containers"):
        if len(spec.get(group) or ()) != len(old_spec.get(group) or ()):
            yield not_allowed(f"spec.{group}", "pod updates may not add or remove containers")
    kept = [_lasting(toleration) for toleration in spec.get("tolerations") or ()]
    if any(_lasting(toleration) not in kept for toleration in old_spec.get("tolerations") or ()):
        yield not_allowed("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
    held = {gate["name"] for gate in old_spec.get("schedulingGates") or ()}
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate["name"] not in held:
            why = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield not_allowed(f"spec.schedulingGates[{index}].name", why)
    if old_spec.get("schedulingGates"):
        yield from _narrowing_errors(spec, old_spec)
    yield from _deadline_change(spec.get("activeDeadlineSeconds"), old_spec.get("activeDeadlineSeconds"))


_TERMS = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def _narrowing_errors(spec: Object, old_spec: Object) -> Iterator[FieldError]:
    """A gated pod may be left fewer nodes, and never others."""
    selector = spec.get("nodeSelector") or {}
    if (old_spec.get("nodeSelector") or {}).items() - selector.items():
        why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield bad_value("spec.nodeSelector", selector, why)
    terms, old_terms = dig(spec, _TERMS) or [], dig(old_spec, _TERMS) or []
    if not old_terms:
        return
    if len(terms) != len(old_terms):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield bad_value(f"spec.{_TERMS}", terms, why)
        return
    for index, (term, old) in enumerate(zip(terms, old_terms, strict=True)):
        lost = [key for key in old for found in old[key] or () if found not in (term.get(key) or ())]
        if lost or (any(term.values()) and not any(old.values())):
            why = "only additions are allowed (no mutations or deletions)"
            yield bad_value(f"spec.{_TERMS}[{index}]", term, why)


def _lasting(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _deadline_change(new: int | None, old: int | None) -> Iterator[FieldError]:
    if old is None or new == old:
        return
    if new is None:
        yield bad_value("spec.activeDeadlineSeconds", new, "must not update from a positive integer to nil value")
    elif new > old:
        yield bad_value("spec.activeDeadlineSeconds", new, "must be less than or equal to previous value")


def _settled(spec: Object, old_spec: Object) -> Object:
    """The specification without what may change; a gated pod may still be narrowed to fewer nodes."""
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    gated = bool(old_spec.get("schedulingGates"))
    if gated:
        free.add("nodeSelector")
    if dig(old_spec, "terminationGracePeriodSeconds", 0) < 0:
        free.add("terminationGracePeriodSeconds")
    rest = {
        key: value
        for key, value in spec.items()
        if key not in free and value != "" and (value is not False or key in _MAY_BE_FALSE)
    }
    if gated:
        others = {key: value for key, value in (rest.pop("affinity", None) or {}).items() if key != "nodeAffinity"}
        rest |= {"affinity": others} if others else {}
    for group in ("initContainers", "containers"):
        if group in rest:
            rest[group] = [{key: item for key, item in c.items() if key != "image"} for c in rest[group]]
    return rest
