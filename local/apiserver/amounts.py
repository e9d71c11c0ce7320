"""Where quantities are in built-in objects, and writing them in canonical form."""

from collections.abc import Iterator
from typing import Any

from local.apiserver.objects import Object, dig
from local.apiserver.registry import ResourceType
from local.apiserver.status import bad_request
from model.quantity import QuantityError, canonical


def canonicalise(rtype: ResourceType, obj: Object) -> None:
    """Rewrite every quantity in place (`0.5` becomes `500m`); raises 400 naming the field that is not one."""
    for path, holder, key in _places(rtype.id, obj):
        value = holder[key]
        try:
            holder[key] = canonical(value)
        except QuantityError as error:
            raise bad_request(
                f'{rtype.kind} in version "{rtype.version}" cannot be handled as a {rtype.kind}: {path}: '
                f"quantities must match the regular expression "
                f"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$': {error}"
            ) from None


_Place = tuple[str, dict[str, Any], str]


def _places(type_id: str, obj: Object) -> Iterator[_Place]:
    match type_id:
        case "pods":
            yield from _in_pod_spec("spec", obj.get("spec"))
            for group in ("initContainerStatuses", "containerStatuses"):
                for index, status in enumerate(dig(obj, f"status.{group}") or ()):
                    path = f"status.{group}[{index}]"
                    yield from _in_map(f"{path}.allocatedResources", status.get("allocatedResources"))
                    yield from _in_resources(path, status.get("resources"))
        case "jobs.batch":
            yield from _in_pod_spec("spec.template.spec", dig(obj, "spec.template.spec"))
        case "nodes":
            for key in ("capacity", "allocatable"):
                yield from _in_map(f"status.{key}", dig(obj, f"status.{key}"))


def _in_map(path: str, found: Any) -> Iterator[_Place]:
    if isinstance(found, dict):
        for key in found:
            yield f"{path}[{key}]", found, key


def _in_resources(path: str, resources: Any) -> Iterator[_Place]:
    if isinstance(resources, dict):
        for key in ("limits", "requests"):
            yield from _in_map(f"{path}.resources.{key}", resources.get(key))


def _in_pod_spec(path: str, spec: Object | None) -> Iterator[_Place]:
    if spec is None:
        return
    yield from _in_map(f"{path}.overhead", spec.get("overhead"))
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or ()):
            yield from _in_resources(f"{path}.{group}[{index}]", container.get("resources"))
            for number, variable in enumerate(container.get("env") or ()):
                reference = dig(variable, "valueFrom.resourceFieldRef")
                if isinstance(reference, dict) and reference.get("divisor") is not None:
                    yield f"{path}.{group}[{index}].env[{number}].divisor", reference, "divisor"
    for index, volume in enumerate(spec.get("volumes") or ()):
        directory = volume.get("emptyDir")
        if isinstance(directory, dict) and directory.get("sizeLimit") is not None:
            yield f"{path}.volumes[{index}].emptyDir.sizeLimit", directory, "sizeLimit"
