"""Field errors of containers: names, images, ports, environment, mounts, probes and resources.

Rules and words: `validateContainers` and what it calls in Kubernetes' pkg/apis/core/validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    not_allowed,
    not_existing,
    not_supported,
    required,
)
from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.validation.configmaps_and_secrets import key_errors
from embedded.apiserver.validation.probes import lifecycle_errors, probe_errors
from embedded.apiserver.validation.security_contexts import container_security_errors
from embedded.quantity import parse

_STANDARD_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")
_RESIZABLE = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_ENV_NAME = re.compile(r"[ -<>-~]+")
_ENV_NAME_RULE = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_BLOCK_SOURCES = {"persistentVolumeClaim", "ephemeral"}
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef")
_ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_SUBSCRIPTED = re.compile(r"metadata\.(annotations|labels)\['(.*)'\]")


@dataclass(frozen=True, slots=True)
class PodContext:
    """What a container's errors depend on besides itself."""

    volumes: frozenset[str]
    blocks: frozenset[str]  # those of them that may be block devices
    init: bool = False
    grace_seconds: int = 30
    host_users: bool = True
    restart_policy: str = "Always"


def containers_errors(path: str, spec: Object, volumes: frozenset[str]) -> Iterator[FieldError]:
    """Everything wrong with the containers and init containers of a defaulted pod specification."""
    containers = spec.get("containers") or []
    blocks = frozenset(volume["name"] for volume in spec.get("volumes") or () if volume.keys() & _BLOCK_SOURCES)
    if not containers:
        yield required(f"{path}.containers")
    seen: set[str] = set()
    for group, found in (("containers", containers), ("initContainers", spec.get("initContainers") or [])):
        around = PodContext(
            volumes,
            blocks,
            init=group == "initContainers",
            grace_seconds=spec.get("terminationGracePeriodSeconds", 30),
            host_users=spec.get("hostUsers") is not False,
            restart_policy=spec.get("restartPolicy") or "Always",
        )
        for index, container in enumerate(found):
            here = f"{path}.{group}[{index}]"
            yield from _container_errors(here, container, around)
            if container["name"] in seen:
                yield duplicate(f"{here}.name", container["name"])
            seen.add(container["name"])
    yield from _host_port_errors(f"{path}.containers", containers)


def _container_errors(path: str, container: Object, around: PodContext) -> Iterator[FieldError]:
    if container["name"]:
        yield from names.dns_label(f"{path}.name", container["name"])
    else:
        yield required(f"{path}.name")
    image = container.get("image") or ""
    if not image:
        yield required(f"{path}.image")
    elif image != image.strip():
        yield bad_value(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from _choice(path, container, "terminationMessagePolicy", _MESSAGE_POLICIES)
    yield from _port_errors(f"{path}.ports", container.get("ports") or ())
    for index, variable in enumerate(container.get("env") or ()):
        yield from _variable_errors(f"{path}.env[{index}]", variable)
    for index, source in enumerate(container.get("envFrom") or ()):
        yield from _source_errors(f"{path}.envFrom[{index}]", source)
    yield from _mount_errors(f"{path}.volumeMounts", container, around.volumes)
    yield from _device_errors(f"{path}.volumeDevices", container, around)
    yield from _choice(path, container, "imagePullPolicy", _PULL_POLICIES)
    yield from resource_errors(f"{path}.resources", container.get("resources") or {})
    yield from _resize_errors(f"{path}.resizePolicy", container.get("resizePolicy") or [], around.restart_policy)
    yield from _life_errors(path, container, around)
    context = container.get("securityContext") or {}
    yield from container_security_errors(f"{path}.securityContext", context, host_users=around.host_users)


def _choice(path: str, holder: Object, key: str, allowed: tuple[str, ...]) -> Iterator[FieldError]:
    if holder.get(key) not in allowed:
        yield not_supported(f"{path}.{key}", holder.get(key), allowed)


def _port_errors(path: str, ports: Iterable[Object]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        here, name = f"{path}[{index}]", port.get("name") or ""
        if name:
            rules = list(names.port_name(f"{here}.name", name))
            yield from rules or ([duplicate(f"{here}.name", name)] if name in seen else [])
            seen.add(name)
        if not port["containerPort"]:
            yield required(f"{here}.containerPort")
        else:
            yield from names.port_number(f"{here}.containerPort", port["containerPort"])
        if port.get("hostPort"):
            yield from names.port_number(f"{here}.hostPort", port["hostPort"])
        yield from _choice(here, port, "protocol", _PROTOCOLS)


def _host_port_errors(path: str, containers: Iterable[Object]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            place = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if place in seen:
                yield duplicate(f"{path}[{index}].ports[{number}].hostPort", place)
            seen.add(place)


def _variable_errors(path: str, variable: Object) -> Iterator[FieldError]:
    name, source = variable["name"], variable.get("valueFrom")
    if not name:
        yield required(f"{path}.name")
    elif not _ENV_NAME.fullmatch(name):
        yield bad_value(f"{path}.name", name, _ENV_NAME_RULE)
    if source is None:
        return
    path = f"{path}.valueFrom"
    used = [key for key in _ENV_SOURCES if source.get(key) is not None]
    if "resourceFieldRef" in used:
        wanted = source["resourceFieldRef"].get("resource") or ""
        yield from names.resource_field(f"{path}.resourceFieldRef.resource", wanted)
    if "fieldRef" in used:
        yield from _field_errors(f"{path}.fieldRef.fieldPath", source["fieldRef"])
    for key in ("configMapKeyRef", "secretKeyRef"):
        if key not in used:
            continue
        yield from names.dns_subdomain(f"{path}.{key}.name", source[key].get("name") or "")
        if source[key]["key"]:
            yield from key_errors(f"{path}.{key}.key", source[key]["key"])
        else:
            yield required(f"{path}.{key}.key")
    if not used:
        choices = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        yield bad_value(path, "", f"must specify one of: {choices}")
    elif variable.get("value"):
        yield bad_value(path, "", "may not be specified when `value` is not empty")
    elif len(used) > 1:
        yield bad_value(path, "", "may not have more than one field specified at a time")


def _field_errors(path: str, reference: Object) -> Iterator[FieldError]:
    wanted, version = reference["fieldPath"], reference.get("apiVersion") or "v1"
    if not wanted:
        yield required(path)
    elif version != "v1":
        yield bad_value(path, wanted, f"error converting fieldPath: unsupported pod version: {version}")
    elif subscript := _SUBSCRIPTED.fullmatch(wanted):
        yield from names.qualified_name(path.removesuffix(".fieldPath"), subscript.group(2))
    elif wanted not in _ENV_FIELDS:
        yield not_supported(path, wanted, _ENV_FIELDS)


def _source_errors(path: str, source: Object) -> Iterator[FieldError]:
    prefix = source.get("prefix")
    if prefix and not _ENV_NAME.fullmatch(prefix):
        yield bad_value(f"{path}.prefix", prefix, _ENV_NAME_RULE)
    used = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
    for key in used:
        yield from names.dns_subdomain(f"{path}.{key}.name", source[key].get("name") or "")
    if not used:
        yield bad_value(path, "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(used) > 1:
        yield bad_value(path, "", "may not have more than one field specified at a time")


def _mount_errors(path: str, container: Object, volumes: frozenset[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        here, where = f"{path}[{index}]", mount["mountPath"]
        if not mount["name"]:
            yield required(f"{here}.name")
        if mount["name"] not in volumes:
            yield not_existing(f"{here}.name", mount["name"])
        if not where:
            yield required(f"{here}.mountPath")
        if where in seen:
            yield bad_value(f"{here}.mountPath", where, "must be unique")
        seen.add(where)
        for key in ("subPath", "subPathExpr"):
            yield from names.descending_path(f"{path}.{key}", mount.get(key) or "")
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield bad_value(
                f"{here}.subPathExpr", mount["subPathExpr"], "subPathExpr and subPath are mutually exclusive"
            )
        yield from _mount_kind_errors(path, mount, container)


def _mount_kind_errors(path: str, mount: Object, container: Object) -> Iterator[FieldError]:
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if propagation is not None and propagation not in _PROPAGATIONS:
        yield not_supported(f"{path}.mountPropagation", propagation, _PROPAGATIONS)
    if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        why = "Bidirectional mount propagation is available only to privileged containers"
        yield not_allowed(f"{path}.mountPropagation", why)
    if recursive in (None, "Disabled"):
        return
    if recursive not in _RECURSIVE:
        yield not_supported(f"{path}.recursiveReadOnly", recursive, _RECURSIVE)
    elif not mount.get("readOnly"):
        yield not_allowed(f"{path}.recursiveReadOnly", "may only be specified when readOnly is true")
    elif propagation not in (None, "None"):
        yield not_allowed(
            f"{path}.recursiveReadOnly", "may only be specified when mountPropagation is None or not specified"
        )


def _device_errors(path: str, container: Object, around: PodContext) -> Iterator[FieldError]:
    for index, device in enumerate(container.get("volumeDevices") or ()):
        if not device.get("name"):
            yield required(f"{path}[{index}].name")
        elif device["name"] not in around.volumes:
            yield not_existing(f"{path}[{index}].name", device["name"])
        elif device["name"] not in around.blocks:
            why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield bad_value(f"{path}[{index}].name", device["name"], why)
        if not device.get("devicePath"):
            yield required(f"{path}[{index}].devicePath")


def _resize_errors(path: str, found: list[Object], restart: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, rule in enumerate(found):
        resource, policy = rule.get("resourceName") or "", rule.get("restartPolicy") or ""
        if resource in seen:
            yield duplicate(f"{path}[{index}]", resource)
        seen.add(resource)
        for value, allowed in ((resource, _RESIZABLE), (policy, _RESIZE_POLICIES)):
            if not value:
                yield required(path)
            elif value not in allowed:
                yield not_supported(path, value, allowed)
        if restart == "Never" and policy != "NotRequired":
            yield bad_value(path, policy, "must be 'NotRequired' when `restartPolicy` is 'Never'")


def _life_errors(path: str, container: Object, around: PodContext) -> Iterator[FieldError]:
    """Probes and hooks, which belong to containers that go on running."""
    policy, init = container.get("restartPolicy"), around.init
    if policy is not None and init and policy != "Always":
        yield not_supported(f"{path}.restartPolicy", policy, ("Always",))
    if policy is not None and not init:
        yield not_allowed(f"{path}.restartPolicy", "may not be set for non-init containers")
    for key in ("lifecycle", *_PROBES):
        if container.get(key) is None:
            continue
        if init and policy != "Always":
            why = "may not be set for init containers without restartPolicy=Always"
            yield not_allowed(f"{path}.{key}", why)
        elif key in _PROBES:
            yield from probe_errors(f"{path}.{key}", container[key], key)
        else:
            yield from lifecycle_errors(f"{path}.lifecycle", container[key], around.grace_seconds)


@lru_cache(maxsize=4096)
def _amount(text: str) -> Fraction:
    return parse(text)


def is_extended(resource: str) -> bool:
    """Whether a resource belongs to a vendor: a domain that is not kubernetes.io."""
    return "/" in resource and "kubernetes.io/" not in resource


def resource_errors(path: str, resources: Object) -> Iterator[FieldError]:
    """Requests above limits, negative amounts, and the stricter rules of extended resources."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for group, amounts in (("limits", limits), ("requests", requests)):
        for resource, amount in amounts.items():
            yield from _amount_errors(f"{path}.{group}[{resource}]", resource, amount)
    asked = {*limits, *requests}
    if any(resource.startswith("hugepages-") for resource in asked) and not asked & {"cpu", "memory"}:
        yield not_allowed(path, "HugePages require cpu or memory")
    for resource, request in requests.items():
        limit = limits.get(resource)
        if is_extended(resource) or resource.startswith("hugepages-"):
            if limit is None:
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
            elif _amount(request) != _amount(limit):
                yield bad_value(f"{path}.requests", request, f"must be equal to {resource} limit of {limit}")
        elif limit is not None and _amount(request) > _amount(limit):
            yield bad_value(f"{path}.requests", request, f"must be less than or equal to {resource} limit of {limit}")


def _amount_errors(path: str, resource: str, amount: str) -> Iterator[FieldError]:
    if "/" not in resource and resource not in _STANDARD_RESOURCES and not resource.startswith("hugepages-"):
        yield bad_value(path, resource, "must be a standard resource for containers")
    yield from names.qualified_name(path, resource)
    value = _amount(amount)
    if value < 0:
        yield bad_value(path, amount, "must be greater than or equal to 0")
    elif is_extended(resource) and value.denominator != 1:
        yield bad_value(path, amount, "must be an integer")
