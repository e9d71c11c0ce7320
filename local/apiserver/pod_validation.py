"""Field errors of pod specifications and of changes to them."""

from collections.abc import Iterator

from local.apiserver import names
from local.apiserver.objects import Object, copy, dig
from local.apiserver.status import FieldError, bad_value, duplicate, not_allowed, not_supported, required
from model.quantity import parse

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_STANDARD_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_TOLERATION_OPERATORS = ("Equal", "Exists")
_CHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_spec_errors(path: str, spec: Object) -> Iterator[FieldError]:
    """Everything wrong with a defaulted pod specification."""
    yield from _volume_errors(path, spec)
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    seen: set[str] = set()
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or ()):
            yield from _container_errors(f"{path}.{group}[{index}]", container, seen, volumes)
    if spec["restartPolicy"] not in _RESTART_POLICIES:
        yield not_supported(f"{path}.restartPolicy", spec["restartPolicy"], _RESTART_POLICIES)
    if spec["terminationGracePeriodSeconds"] < 0:
        yield bad_value(
            f"{path}.terminationGracePeriodSeconds",
            spec["terminationGracePeriodSeconds"],
            "must be greater than or equal to 0",
        )
    if (deadline := spec.get("activeDeadlineSeconds")) is not None and deadline < 1:
        yield bad_value(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    if spec.get("nodeName"):
        yield from names.dns_subdomain(f"{path}.nodeName", spec["nodeName"])
        if spec.get("schedulingGates"):
            yield not_allowed(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared")
    yield from names.labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    yield from _toleration_errors(path, spec)


def _volume_errors(path: str, spec: Object) -> Iterator[FieldError]:
    seen = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        name, here = volume.get("name"), f"{path}.volumes[{index}].name"
        if not name:
            yield required(here)
            continue
        yield from names.dns_label(here, name)
        if name in seen:
            yield duplicate(here, name)
        seen.add(name)


def _container_errors(path: str, container: Object, seen: set[str], volumes: set[str | None]) -> Iterator[FieldError]:
    name = container.get("name")
    if not name:
        yield required(f"{path}.name")
    else:
        yield from names.dns_label(f"{path}.name", name)
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
    if not container.get("image"):
        yield required(f"{path}.image")
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        if mount["name"] not in volumes:
            here = f"{path}.volumeMounts[{index}].name"
            yield FieldError(here, "FieldValueNotFound", f'Not found: "{mount["name"]}"')
        if not mount.get("mountPath"):
            yield required(f"{path}.volumeMounts[{index}].mountPath")
    for index, port in enumerate(container.get("ports") or ()):
        if not 0 < (port.get("containerPort") or 0) < 65536:
            yield bad_value(
                f"{path}.ports[{index}].containerPort",
                port.get("containerPort"),
                "must be between 1 and 65535, inclusive",
            )
    yield from resource_errors(f"{path}.resources", container.get("resources") or {})


def is_extended(resource: str) -> bool:
    """Whether a resource belongs to a vendor: a domain that is not kubernetes.io."""
    return "/" in resource and "kubernetes.io/" not in resource


def resource_errors(path: str, resources: Object) -> Iterator[FieldError]:
    """Requests above limits, negative amounts, and the stricter rules of extended resources."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for group, amounts in (("limits", limits), ("requests", requests)):
        for resource, amount in amounts.items():
            yield from _amount_errors(f"{path}.{group}[{resource}]", resource, amount)
    for resource, request in requests.items():
        limit = limits.get(resource)
        if is_extended(resource) or resource.startswith("hugepages-"):
            if limit is None:
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
            elif parse(request) != parse(limit):
                yield bad_value(f"{path}.requests", request, f"must be equal to {resource} limit of {limit}")
        elif limit is not None and parse(request) > parse(limit):
            yield bad_value(f"{path}.requests", request, f"must be less than or equal to {resource} limit of {limit}")


def _amount_errors(path: str, resource: str, amount: str) -> Iterator[FieldError]:
    if "/" not in resource and resource not in _STANDARD_RESOURCES and not resource.startswith("hugepages-"):
        yield bad_value(path, resource, "must be a standard resource for containers")
    yield from names.qualified_name(path, resource)
    value = parse(amount)
    if value < 0:
        yield bad_value(path, amount, "must be greater than or equal to 0")
    elif is_extended(resource) and value.denominator != 1:
        yield bad_value(path, amount, "must be an integer")


def _toleration_errors(path: str, spec: Object) -> Iterator[FieldError]:
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        here = f"{path}.tolerations[{index}]"
        operator = toleration.get("operator") or "Equal"
        if operator not in _TOLERATION_OPERATORS:
            yield not_supported(f"{here}.operator", operator, _TOLERATION_OPERATORS)
        elif operator == "Exists" and toleration.get("value"):
            yield bad_value(f"{here}.operator", toleration, "value must be empty when `operator` is 'Exists'")
        elif operator == "Equal" and not toleration.get("key"):
            yield bad_value(f"{here}.operator", operator, "operator must be Exists when `key` is empty")


def pod_update_errors(pod: Object, old: Object) -> Iterator[FieldError]:
    """A pod's specification is settled at birth, but for the few fields Kubernetes lets move."""
    spec, old_spec = pod["spec"], old["spec"]
    if copy(_settled(spec, old_spec)) != _settled(old_spec, old_spec):
        yield not_allowed("spec", _CHANGEABLE)
    for group in ("initContainers", "containers"):
        if len(spec.get(group) or ()) != len(old_spec.get(group) or ()):
            yield not_allowed(f"spec.{group}", "pod updates may not add or remove containers")
    kept = spec.get("tolerations") or []
    if any(toleration not in kept for toleration in old_spec.get("tolerations") or ()):
        yield not_allowed("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
    if {gate["name"] for gate in spec.get("schedulingGates") or ()} - {
        gate["name"] for gate in old_spec.get("schedulingGates") or ()
    }:
        yield not_allowed("spec.schedulingGates", "only deletion is allowed, but found new scheduling gates")


def _settled(spec: Object, old_spec: Object) -> Object:
    """The specification without what may change; a gated pod may still be narrowed to fewer nodes."""
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    if old_spec.get("schedulingGates"):
        free |= {"nodeSelector", "affinity"}
    if dig(old_spec, "terminationGracePeriodSeconds", 0) < 0:
        free.add("terminationGracePeriodSeconds")
    rest = {key: value for key, value in spec.items() if key not in free}
    for group in ("initContainers", "containers"):
        if group in rest:
            rest[group] = [{key: item for key, item in c.items() if key != "image"} for c in rest[group]]
    return rest
