"""Field errors of PersistentVolumes, their claims and StorageClasses. Words: Kubernetes' pkg/apis/core/validation."""

from __future__ import annotations

from collections.abc import Iterator

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import (
    FieldError,
    bad_value,
    not_allowed,
    not_supported,
    required,
    too_long,
)
from embedded.apiserver.apimachinery.objects import Object, dig
from embedded.apiserver.validation.affinities import node_selector_errors
from embedded.apiserver.validation.label_selectors import label_selector_errors
from embedded.apiserver.validation.pod_volumes import host_path_errors, nfs_errors
from embedded.quantity import parse

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_POLICIES = ("Delete", "Recycle", "Retain")
_VOLUME_MODES = ("Block", "Filesystem")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_NOT_SOURCES = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)
_SOURCE_KINDS = ("PersistentVolumeClaim", "VolumeSnapshot")
_CLAIM_MAY_CHANGE = ("resources", "volumeAttributesClassName")
_IMMUTABLE_CLAIM = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_MOST_PARAMETERS = 512
_MOST_PARAMETER_BYTES = 1 << 18
_CLASS_FIXED = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")


def volume_errors(volume: Object) -> Iterator[FieldError]:
    """Of a PersistentVolume."""
    spec = volume["spec"]
    yield from _mode_errors("spec", spec)
    if not spec.get("capacity"):
        yield required("spec.capacity")
    elif "storage" not in spec["capacity"]:
        yield not_supported("spec.capacity", spec["capacity"], ("storage",))
    sources = sorted(spec.keys() - _NOT_SOURCES)
    if not sources:
        yield required("spec", "must specify a volume type")
    for extra in sources[1:]:
        yield not_allowed(f"spec.{extra}", "may not specify more than 1 volume type")
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy not in _POLICIES:
        yield not_supported("spec.persistentVolumeReclaimPolicy", policy, _POLICIES)
    amount = str((spec.get("capacity") or {}).get("storage", "1"))
    if amount.startswith("-") or amount == "0":
        yield bad_value("spec.capacity[storage]", amount, "must be greater than zero")
    if len(spec.get("capacity") or {}) > 1:
        yield not_supported("spec.capacity", spec["capacity"], ("storage",))
    yield from _class_name_errors("spec.storageClassName", spec)
    yield from _source_errors(spec)
    wanted = dig(spec, "nodeAffinity.required")
    if spec.get("nodeAffinity") is not None and wanted is None:
        yield required("spec.nodeAffinity.required", "must specify required node constraints")
    if "local" in spec and wanted is None:
        yield required("spec.nodeAffinity", "Local volume requires node affinity")
    if wanted is not None:
        yield from node_selector_errors("spec.nodeAffinity.required", wanted)


def _source_errors(spec: Object) -> Iterator[FieldError]:
    """Of those kinds that a cluster without storage drivers has."""
    host, local, csi, nfs = (spec.get(key) for key in ("hostPath", "local", "csi", "nfs"))
    if host is not None:
        yield from host_path_errors("spec.hostPath", host)
        if host.get("path") == "/" and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            yield not_allowed("spec.persistentVolumeReclaimPolicy", "may not be 'recycle' for a hostPath mount of '/'")
    if local is not None:
        if not local.get("path"):
            yield required("spec.local.path")
        yield from names.no_backsteps("spec.local.path", local.get("path") or "")
    if nfs is not None:
        yield from nfs_errors("spec.nfs", nfs)
    if csi is not None:
        for key in ("driver", "volumeHandle"):
            if not csi.get(key):
                yield required(f"spec.csi.{key}")


def volume_changes(volume: Object, old: Object) -> Iterator[FieldError]:
    """What holds the data stays."""
    if volume["spec"].get("volumeMode") != old["spec"].get("volumeMode"):
        yield bad_value("volumeMode", volume["spec"].get("volumeMode"), "field is immutable")
    place = old["spec"].get("nodeAffinity")
    if place is not None and volume["spec"].get("nodeAffinity") != place:
        why = "field is immutable, except for updating from beta label to GA"
        yield bad_value("nodeAffinity", volume["spec"].get("nodeAffinity"), why)
    for source in sorted((volume["spec"].keys() | old["spec"].keys()) - _NOT_SOURCES):
        if volume["spec"].get(source) != old["spec"].get(source):
            yield not_allowed("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
            return


def claim_errors(claim: Object) -> Iterator[FieldError]:
    """Of a PersistentVolumeClaim."""
    yield from claim_spec_errors("spec", claim["spec"])


def claim_spec_errors(path: str, spec: Object) -> Iterator[FieldError]:
    """Of a claim, or of what a workload makes claims of."""
    yield from _mode_errors(path, spec)
    amount = dig(spec, "resources.requests.storage")
    if amount is None:
        yield required(f"{path}.resources[storage]")
    elif str(amount).startswith("-") or str(amount) == "0":
        yield bad_value(f"{path}.resources[storage]", amount, "must be greater than zero")
    yield from label_selector_errors(f"{path}.selector", spec.get("selector"))
    source: Object = spec.get("dataSource") or {}
    reference: Object | None = spec.get("dataSourceRef")
    if source.get("kind") in _SOURCE_KINDS and not source.get("name"):
        yield required(f"{path}.dataSource.name")
    if reference is not None:
        yield from (required(f"{path}.dataSourceRef.{key}") for key in ("kind", "name") if not reference.get(key))
    yield from _class_name_errors(f"{path}.storageClassName", spec)


def _class_name_errors(path: str, spec: Object) -> Iterator[FieldError]:
    if name := spec.get("storageClassName"):
        yield from names.dns_subdomain(path, name)


def claim_changes(claim: Object, old: Object) -> Iterator[FieldError]:
    """A claim may be bound once, and grow when it is."""
    new_spec, old_spec = claim["spec"], old["spec"]
    bound = dig(old, "status.phase") == "Bound"
    free: tuple[str, ...] = _CLAIM_MAY_CHANGE if bound else ()
    free = free if old_spec.get("volumeName") else (*free, "volumeName")
    if old_spec.get("storageClassName") is None:
        free = (*free, "storageClassName")
    kept = (new_spec.keys() | old_spec.keys()) - set(free)
    if any(new_spec.get(key) != old_spec.get(key) for key in kept):
        yield not_allowed("spec", _IMMUTABLE_CLAIM)
        return
    sizes = [dig(spec, "resources.requests.storage") for spec in (new_spec, old_spec)]
    if all(sizes) and parse(sizes[0]) < parse(sizes[1]):
        yield not_allowed("spec.resources.requests.storage", "field can not be less than status.capacity")


def class_errors(storage_class: Object) -> Iterator[FieldError]:
    """Of a StorageClass."""
    if not storage_class.get("provisioner"):
        yield required("provisioner")
    else:
        yield from names.qualified_name(
            "provisioner", storage_class["provisioner"].lower(), storage_class["provisioner"]
        )
    parameters = storage_class.get("parameters") or {}
    if sum(len(f"{key}{value}".encode()) for key, value in parameters.items()) > _MOST_PARAMETER_BYTES:
        yield too_long("parameters", _MOST_PARAMETER_BYTES)
    if len(parameters) > _MOST_PARAMETERS:
        yield too_long("parameters", _MOST_PARAMETERS)
    if "" in parameters:
        yield bad_value("parameters", "", "field can not be empty.")
    for field, allowed in (("reclaimPolicy", ("Delete", "Retain")), ("volumeBindingMode", _BINDING_MODES)):
        if storage_class.get(field) not in allowed:
            yield not_supported(field, storage_class.get(field), allowed)


def class_changes(storage_class: Object, old: Object) -> Iterator[FieldError]:
    """How it provides volumes stays."""
    for field in _CLASS_FIXED:
        if storage_class.get(field) != old.get(field):
            yield not_allowed(field, "updates to " + field + " are forbidden.")


def _mode_errors(path: str, spec: Object) -> Iterator[FieldError]:
    modes = spec.get("accessModes") or []
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    for mode in modes:
        if mode not in _MODES:
            yield not_supported(f"{path}.accessModes", mode, _MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield not_allowed(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes")
    if spec.get("volumeMode") not in _VOLUME_MODES:
        yield not_supported(f"{path}.volumeMode", spec.get("volumeMode"), _VOLUME_MODES)
