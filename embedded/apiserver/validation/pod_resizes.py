"""Field errors of changes through pods/resize: CPU and memory of containers, and nothing else.

Rules and words: `ValidatePodResize` in Kubernetes 1.35's pkg/apis/core/validation.

https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_allowed
from embedded.apiserver.apimachinery.objects import Object, dig
from embedded.apiserver.apimachinery.pod_qos import qos_class
from embedded.apiserver.validation.pod_hosts import MIRROR

_GROUPS = ("containers", "initContainers")
_RESIZED = ("cpu", "memory")
_ALONE = "only cpu and memory resources are mutable"


def pod_resize_errors(pod: Object, old: Object) -> Iterator[FieldError]:
    """Everything that a resize may not do."""
    spec, old_spec = pod["spec"], old["spec"]
    if MIRROR in (dig(old, "metadata.annotations") or {}):
        yield not_allowed("", "static pods cannot be resized")
        return
    if dig(old_spec, "os.name") == "windows":
        yield not_allowed("", "windows pods cannot be resized")
        return
    if dig(old_spec, "resources"):
        yield not_allowed("", "pods with pod-level resources cannot be resized")
        return
    held = dig(old, "status.qosClass")
    if held != qos_class(pod):
        yield bad_value("spec", held, "Pod QOS Class may not change as a result of resizing")
    if not _supported(old):
        yield not_allowed("spec", "Pod running on node without support for resize")
    if others := list(_other_containers(spec, old_spec)):
        yield from others
        return
    for group in reversed(_GROUPS):
        for index, (asked, before) in enumerate(_pairs(spec, old_spec, group)):
            yield from _removals(f"spec.{group}[{index}].resources", asked, before)
    yield from _other_changes(spec, old_spec)


def _supported(pod: Object) -> bool:
    """Whether the node says what its running containers have; one that runs nothing yet is believed to."""
    running = (c for c in dig(pod, "status.containerStatuses") or () if dig(c, "state.running") is not None)
    first = next(running, None)
    return first is None or first.get("resources") is not None


def _other_containers(spec: Object, old_spec: Object) -> Iterator[FieldError]:
    for group in _GROUPS:
        new, old = _names(spec.get(group)), _names(old_spec.get(group))
        if len(new) != len(old):
            yield not_allowed(f"spec.{group}", f"{group} may not be added or removed on resize")
            continue
        for index, (name, before) in enumerate(zip(new, old, strict=True)):
            if name != before:
                yield not_allowed(f"spec.{group}[{index}].name", f"{group} may not be renamed or reordered on resize")


def _removals(path: str, asked: Object, before: Object) -> Iterator[FieldError]:
    for kind in ("requests", "limits"):
        if _amounts(before, kind).keys() - _amounts(asked, kind).keys():
            yield not_allowed(f"{path}.{kind}", f"resource {kind} cannot be removed")


def _other_changes(spec: Object, old_spec: Object) -> Iterator[FieldError]:
    if any(_but_cpu_and_memory(new) != _but_cpu_and_memory(old) for new, old in _pairs(spec, old_spec, "containers")):
        yield not_allowed("spec", _ALONE)
    for new, old in _pairs(spec, old_spec, "initContainers"):
        if old.get("restartPolicy") != "Always" and _settled(new) != _settled(old):
            yield not_allowed("spec", "resources for non-sidecar init containers are immutable")
        elif _but_cpu_and_memory(new) != _but_cpu_and_memory(old):
            yield not_allowed("spec", "only cpu and memory resources for sidecar containers are mutable")


def _but_cpu_and_memory(container: Object) -> Object:
    amounts = {
        kind: {name: amount for name, amount in _amounts(container, kind).items() if name not in _RESIZED}
        for kind in ("requests", "limits")
    }
    return _settled({**container, "resources": {**(container.get("resources") or {}), **amounts}})


def _settled(container: Object) -> Object:
    """With what is empty left out: it is the same as what is not there."""
    resources = {key: value for key, value in (container.get("resources") or {}).items() if value}
    rest = {key: value for key, value in container.items() if key not in ("resources", "resizePolicy")}
    return {**rest, "resources": resources, "resizePolicy": container.get("resizePolicy") or []}


def _pairs(spec: Object, old_spec: Object, group: str) -> Iterable[tuple[Object, Object]]:
    return zip(spec.get(group) or (), old_spec.get(group) or (), strict=True)


def _names(containers: list[Object] | None) -> list[str]:
    return [str(each.get("name")) for each in containers or ()]


def _amounts(container: Object, kind: str) -> Object:
    return dig(container, f"resources.{kind}") or {}
