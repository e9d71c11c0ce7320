"""Field errors of security contexts, of pods and of containers.

Rules and words: `validatePodSpecSecurityContext` and `ValidateSecurityContext` in Kubernetes' pkg/apis/core/validation.
"""

from __future__ import annotations

import re
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

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_POLICIES = {
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
    "seLinuxChangePolicy": ("MountOption", "Recursive"),
}
_PROC_MOUNTS = ("Default", "Unmasked")
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_SYSCTL_RULE = (
    r"must have at most 253 characters and match regex "
    r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
)
_HOST_SYSCTLS = (("hostNetwork", ("net.",)), ("hostIPC", ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")))
_ESCALATES = "cannot set `allowPrivilegeEscalation` to false and "


def pod_security_errors(path: str, spec: Object) -> Iterator[FieldError]:
    """Of the security context of a pod specification."""
    context = spec.get("securityContext") or {}
    for key in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from _id_errors(f"{path}.{key}", context.get(key))
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        yield from _id_errors(f"{path}.supplementalGroups[{index}]", group)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield bad_value(f"{path}.shareProcessNamespace", True, detail)
    yield from _sysctl_errors(f"{path}.sysctls", context.get("sysctls") or [], spec)
    for key, allowed in _POLICIES.items():
        if (policy := context.get(key)) is not None and policy not in allowed:
            yield not_supported(f"{path}.{key}", policy, allowed)
    yield from _profile_errors(path, context)


def container_security_errors(path: str, context: Object, *, host_users: bool) -> Iterator[FieldError]:
    """Of the security context of one container."""
    for key in ("runAsUser", "runAsGroup"):
        yield from _id_errors(f"{path}.{key}", context.get(key))
    if (mount := context.get("procMount")) is not None and mount not in _PROC_MOUNTS:
        yield not_supported(f"{path}.procMount", mount, _PROC_MOUNTS)
    elif mount == "Unmasked" and host_users:
        yield bad_value(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            yield bad_value(path, context, f"{_ESCALATES}`privileged` to true")
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            yield bad_value(path, context, f"{_ESCALATES}`capabilities.Add` CAP_SYS_ADMIN")
    yield from _profile_errors(path, context)


def _id_errors(path: str, value: int | None) -> Iterator[FieldError]:
    if value is not None and not 0 <= value < 1 << 31:
        yield bad_value(path, value, "must be between 0 and 2147483647, inclusive")


def _sysctl_errors(path: str, found: list[Object], spec: Object) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, sysctl in enumerate(found):
        name, here = sysctl.get("name") or "", f"{path}[{index}].name"
        if not name:
            yield required(here)
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            yield bad_value(here, name, _SYSCTL_RULE)
        elif name in seen:
            yield duplicate(here, name)
        for key, prefixes in _HOST_SYSCTLS:
            if spec.get(key) and name.startswith(prefixes):
                yield bad_value(here, name, f"may not be specified when '{key}' is true")
        seen.add(name)


def _profile_errors(path: str, context: Object) -> Iterator[FieldError]:
    for key, word in (("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")):
        if (profile := context.get(key)) is not None:
            yield from _one_profile(f"{path}.{key}", profile, word)


def _one_profile(path: str, profile: Object, word: str) -> Iterator[FieldError]:
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    here = f"{path}.localhostProfile"
    if not kind:
        yield required(f"{path}.type", "type is required when seccompProfile is set" if word == "seccomp" else "")
    elif kind not in _PROFILES:
        yield not_supported(f"{path}.type", kind, _PROFILES)
    if kind != "Localhost":
        if local is not None:
            yield bad_value(here, profile, f"can only be set when {word} type is Localhost")
    elif local is None:
        yield required(here, f"must be set when {word} type is Localhost")
    elif word == "seccomp":
        yield from names.descending_path(here, local)
    elif not local.strip() or local != local.strip():
        yield bad_value(here, local, "must not be padded with whitespace")


def operating_system_errors(path: str, spec: Object) -> Iterator[FieldError]:
    """Which of the fields above do not go with the operating system that a pod is for."""
    system = spec.get("os")
    if system is None:
        return
    name = system.get("name") or ""
    if not name:
        yield required(f"{path}.os.name")
    elif name not in ("linux", "windows"):
        yield not_supported(f"{path}.os", name, ("linux", "windows"))
    containers = (("containers", spec.get("containers")), ("initContainers", spec.get("initContainers")))
    contexts = [("securityContext", spec.get("securityContext") or {})]
    for group, found in containers:
        for index, container in enumerate(found or ()):
            contexts.append((f"{group}[{index}].securityContext", container.get("securityContext") or {}))
    for here, context in contexts:
        if name == "linux" and context.get("windowsOptions") is not None:
            yield not_allowed(f"{path}.{here}.windowsOptions", "windows options cannot be set for a linux pod")
        for key in _LINUX_ONLY if name == "windows" else ():
            if context.get(key) is not None:
                yield not_allowed(f"{path}.{here}.{key}", "cannot be set for a windows pod")
    for key in ("hostPID", "hostIPC", "hostUsers", "shareProcessNamespace") if name == "windows" else ():
        if spec.get(key) or (key == "hostUsers" and spec.get(key) is not None):
            yield not_allowed(f"{path}.{key}", "cannot be set for a windows pod")


_LINUX_ONLY = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged"),
    *("allowPrivilegeEscalation", "procMount", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser", "runAsGroup"),
    *("supplementalGroups", "supplementalGroupsPolicy"),
)
