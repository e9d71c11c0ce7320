"""Field errors of PersistentVolumes, their claims and StorageClasses. Words: Kubernetes' pkg/apis/core/validation."""

from __future__ import annotations

from collections.abc import Iterator

from local.apiserver.affinity_validation import node_selector_errors
from local.apiserver.objects import Object, dig
from local.apiserver.selector_validation import label_selector_errors
from local.apiserver.status import FieldError, bad_value, not_allowed, not_supported, required

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
_CLAIM_MAY_CHANGE = ("resources", "volumeAttributesClassName")
_IMMUTABLE_CLAIM = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_CLASS_FIXED = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")


def volume_errors(volume: Object) -> Iterator[FieldError]:
    """Of a PersistentVolume."""
    spec = volume["spec"]
    yield from _mode_errors(spec)
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
    wanted = dig(spec, "nodeAffinity.required")
    if "local" in spec and wanted is None:
        yield required("spec.nodeAffinity", "Local volume requires node affinity")
    if wanted is not None:
        yield from node_selector_errors("spec.nodeAffinity.required", wanted)


def volume_changes(volume: Object, old: Object) -> Iterator[FieldError]:
    """What holds the data stays."""
    for source in sorted((volume["spec"].keys() | old["spec"].keys()) - _NOT_SOURCES):
        if volume["spec"].get(source) != old["spec"].get(source):
            yield not_allowed("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
            return


def claim_errors(claim: Object) -> Iterator[FieldError]:
    """Of a PersistentVolumeClaim."""
    spec = claim["spec"]
    yield from _mode_errors(spec)
    amount = dig(spec, "resources.requests.storage")
    if amount is None:
        yield required("spec.resources[storage]")
    elif str(amount).startswith("-") or str(amount) == "0":
        yield bad_value("spec.resources[storage]", amount, "must be greater than zero")
    yield from label_selector_errors("spec.selector", spec.get("selector"))


def claim_changes(claim: Object, old: Object) -> Iterator[FieldError]:
    """A claim may be bound once, and grow."""
    new_spec, old_spec = claim["spec"], old["spec"]
    free = _CLAIM_MAY_CHANGE if old_spec.get("volumeName") else (*_CLAIM_MAY_CHANGE, "volumeName")
    if old_spec.get("storageClassName") is None:
        free = (*free, "storageClassName")
    kept = (new_spec.keys() | old_spec.keys()) - set(free)
    if any(new_spec.get(key) != old_spec.get(key) for key in kept):
        yield not_allowed("spec", _IMMUTABLE_CLAIM)


def class_errors(storage_class: Object) -> Iterator[FieldError]:
    """Of a StorageClass."""
    if not storage_class.get("provisioner"):
        yield required("provisioner")
    for field, allowed in (("reclaimPolicy", ("Delete", "Retain")), ("volumeBindingMode", _BINDING_MODES)):
        if storage_class.get(field) not in allowed:
            yield not_supported(field, storage_class.get(field), allowed)


def class_changes(storage_class: Object, old: Object) -> Iterator[FieldError]:
    """How it provides volumes stays."""
    for field in _CLASS_FIXED:
        if storage_class.get(field) != old.get(field):
            yield not_allowed(field, "updates to " + field + " are forbidden.")


def _mode_errors(spec: Object) -> Iterator[FieldError]:
    modes = spec.get("accessModes") or []
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    for index, mode in enumerate(modes):
        if mode not in _MODES:
            yield not_supported(f"spec.accessModes[{index}]", mode, _MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield not_allowed("spec.accessModes", "may not use ReadWriteOncePod with other access modes")
    if spec.get("volumeMode") not in _VOLUME_MODES:
        yield not_supported("spec.volumeMode", spec.get("volumeMode"), _VOLUME_MODES)
