"""Columns of volumes, claims and StorageClasses.

Source: kubernetes `pkg/printers/internalversion/printers.go`.
"""

from __future__ import annotations

from embedded.apiserver.apimachinery.objects import Object, being_deleted, dig, name_of
from embedded.apiserver.presentation.columns import AGE, NAME, Cell, Column, path

_UNSET = "<unset>"
_SHORT = (("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP"))


def _phase(obj: Object, _: float) -> str:
    return "Terminating" if being_deleted(obj) else dig(obj, "status.phase") or ""


def _modes(where: str) -> Cell:
    def cell(obj: Object, _: float) -> str:
        found = dig(obj, where) or ()
        return ",".join(short for mode, short in _SHORT if mode in found)

    return cell


def _claimant(volume: Object, _: float) -> str:
    found = dig(volume, "spec.claimRef")
    return f"{found.get('namespace', '')}/{found['name']}" if found else ""


def _once_bound(cell: Cell) -> Cell:
    """Of a claim that names its volume; empty before."""
    return lambda claim, now: cell(claim, now) if dig(claim, "spec.volumeName") else ""


def _class_name(storage_class: Object, _: float) -> str:
    marked = (dig(storage_class, "metadata.annotations") or {}).get("storageclass.kubernetes.io/is-default-class")
    return name_of(storage_class) + (" (default)" if marked == "true" else "")


def _expandable(storage_class: Object, _: float) -> str:
    return "true" if storage_class.get("allowVolumeExpansion") else "false"


_CLASS = Column("StorageClass", path("spec.storageClassName"))
_ATTRIBUTES = Column("VolumeAttributesClass", path("spec.volumeAttributesClassName", _UNSET))
_VOLUME_MODE = Column("VolumeMode", path("spec.volumeMode", _UNSET), priority=1)
VOLUME = (
    NAME,
    Column("Capacity", path("spec.capacity.storage")),
    Column("Access Modes", _modes("spec.accessModes")),
    Column("Reclaim Policy", path("spec.persistentVolumeReclaimPolicy")),
    Column("Status", _phase),
    Column("Claim", _claimant),
    _CLASS,
    _ATTRIBUTES,
    Column("Reason", path("status.reason")),
    AGE,
    _VOLUME_MODE,
)
CLAIM = (
    NAME,
    Column("Status", _phase),
    Column("Volume", path("spec.volumeName")),
    Column("Capacity", _once_bound(path("status.capacity.storage"))),
    Column("Access Modes", _once_bound(_modes("status.accessModes"))),
    _CLASS,
    _ATTRIBUTES,
    AGE,
    _VOLUME_MODE,
)
STORAGE_CLASS = (
    Column("Name", _class_name, format="name", description=NAME.description),
    Column("Provisioner", path("provisioner")),
    Column("ReclaimPolicy", path("reclaimPolicy", "Delete")),
    Column("VolumeBindingMode", path("volumeBindingMode", _UNSET)),
    Column("AllowVolumeExpansion", _expandable),
    AGE,
)
