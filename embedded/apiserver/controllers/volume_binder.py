"""Binds claims to volumes that are there; nothing is provisioned here.

Source: kubernetes `pkg/controller/volume/persistentvolume` (pv_controller.go, index.go). A claim whose class waits for
its first consumer stays unbound unless it names its volume.
"""

from __future__ import annotations

from collections.abc import Callable

from embedded.apiserver.apimachinery.objects import Object, being_deleted, dig, name_of, namespace_of, uid_of
from embedded.apiserver.apimachinery.resource_types import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    ResourceType,
)
from embedded.apiserver.apimachinery.selectors import EVERYTHING, admits, parse_label_selector
from embedded.apiserver.reconciling.event_recorder import record_event
from embedded.apiserver.reconciling.work_queue import Key
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.storage.records import Change, Event
from embedded.quantity import parse

_BY_US = {"pv.kubernetes.io/bound-by-controller": "yes"}
_COMPLETED = {"pv.kubernetes.io/bind-completed": "yes"}
_COMPONENT = "persistentvolume-controller"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"


class VolumeBinder:
    """Looks at a claim when it, a volume or a class changed, and at a volume when it or its claim did."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._dirty: set[Key] = set()

    @property
    def idle(self) -> bool:
        return not self._dirty

    def react(self, type_id: str, event: Event) -> None:
        """A volume's key has no namespace, a claim's always has one."""
        if type_id == PERSISTENT_VOLUME_CLAIMS.id:
            self._dirty.add(event.record.key)
            if event.change is Change.DELETED:
                self._all_dirty(PERSISTENT_VOLUMES.id)
        elif type_id in (PERSISTENT_VOLUMES.id, STORAGE_CLASSES.id):
            self._all_dirty(PERSISTENT_VOLUME_CLAIMS.id)
            if type_id == PERSISTENT_VOLUMES.id:
                self._dirty.add(event.record.key)

    def _all_dirty(self, type_id: str) -> None:
        self._dirty |= {record.key for record in self._resources.store.select(type_id, EVERYTHING)}

    def take_due(self) -> list[Key]:
        """Volumes first: what a claim may have is free by then."""
        due, self._dirty = sorted(self._dirty), set()
        return due

    def advance(self, key: Key) -> None:
        """Bring one volume or claim to what it should be."""
        if key[0]:
            claim = self._resources.find(PERSISTENT_VOLUME_CLAIMS, *key)
            if claim is not None and not being_deleted(claim):
                self._advance_claim(claim)
        elif (volume := self._resources.find(PERSISTENT_VOLUMES, *key)) is not None:
            self._phase(PERSISTENT_VOLUMES, volume, {"phase": self._volume_phase(volume)})

    def _volume_phase(self, volume: Object) -> str:
        reference = dig(volume, "spec.claimRef")
        if not reference or not reference.get("uid"):
            return "Available"
        claim = self._resources.find(PERSISTENT_VOLUME_CLAIMS, reference.get("namespace", ""), reference["name"])
        return "Bound" if claim is not None and uid_of(claim) == reference["uid"] else "Released"

    # -- claims --------------------------------------------------------------------------------------------

    def _advance_claim(self, claim: Object) -> None:
        wanted = dig(claim, "spec.volumeName")
        volume = self._resources.find(PERSISTENT_VOLUMES, "", wanted) if wanted else self._match(claim)
        if volume is not None and _free_for(volume, claim):
            self._bind(volume, claim)
        elif wanted and dig(claim, "status.phase") == "Bound":
            self._phase(PERSISTENT_VOLUME_CLAIMS, claim, {"phase": "Lost"})
        elif not wanted:
            self._explain(claim)

    def _match(self, claim: Object) -> Object | None:
        """The smallest volume that suits, one that was made for this claim before all others; ties by name."""
        found = [each for each in self._resources.objects(PERSISTENT_VOLUMES) if _made_for(each, claim)]
        if not found and not self._waits(claim):
            found = [each for each in self._resources.objects(PERSISTENT_VOLUMES) if _suits(each, claim)]
        return min(found, key=lambda each: (parse(dig(each, "spec.capacity.storage")), name_of(each)), default=None)

    def _class_of(self, claim: Object) -> Object | None:
        name = dig(claim, "spec.storageClassName")
        return self._resources.find(STORAGE_CLASSES, "", name) if name else None

    def _waits(self, claim: Object) -> bool:
        found = self._class_of(claim)
        return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"

    def _bind(self, volume: Object, claim: Object) -> None:
        """The volume first, so that no two claims ever have it."""
        name, key = name_of(volume), (namespace_of(claim), name_of(claim))
        reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": key[0], "name": key[1]}
        self._change(PERSISTENT_VOLUMES, volume, _claimed(reference | {"uid": uid_of(claim)}))
        self._phase(PERSISTENT_VOLUMES, self._resources.get(PERSISTENT_VOLUMES, "", name), {"phase": "Bound"})
        self._change(PERSISTENT_VOLUME_CLAIMS, claim, _holding(name))
        granted = {
            "phase": "Bound",
            "accessModes": dig(volume, "spec.accessModes"),
            "capacity": dig(volume, "spec.capacity"),
        }
        self._phase(PERSISTENT_VOLUME_CLAIMS, self._resources.get(PERSISTENT_VOLUME_CLAIMS, *key), granted)

    def _change(self, rtype: ResourceType, obj: Object, change: Callable[[Object], Object]) -> None:
        if change(obj) != obj:
            self._resources.update(rtype, namespace_of(obj), name_of(obj), change)

    def _phase(self, rtype: ResourceType, obj: Object, told: Object) -> None:
        status = {**(obj.get("status") or {}), **told}
        if status != obj.get("status"):
            where = (namespace_of(obj), name_of(obj))
            self._resources.update(rtype, *where, lambda held: {**held, "status": status}, None, "status")

    def _explain(self, claim: Object) -> None:
        reason, message, kind = self._why_unbound(claim)
        record_event(self._resources, claim, reason, message, _COMPONENT, kind)

    def _why_unbound(self, claim: Object) -> tuple[str, str, str]:
        name, found = dig(claim, "spec.storageClassName"), self._class_of(claim)
        if not name:
            why = "no persistent volumes available for this claim and no storage class is set"
            return "FailedBinding", why, "Normal"
        if found is None:
            return "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found', "Warning"
        if self._waits(claim):
            return "WaitForFirstConsumer", "waiting for first consumer to be created before binding", "Normal"
        provisioner = found["provisioner"]
        if provisioner == _NO_PROVISIONER:
            return "ProvisioningFailed", f'no volume plugin matched name: "{provisioner}"', "Warning"
        why = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered."
        )
        return "ExternalProvisioning", why, "Normal"


def _claimed(reference: Object) -> Callable[[Object], Object]:
    def change(volume: Object) -> Object:
        held = dig(volume, "spec.claimRef") or {}
        marks = {} if held else _BY_US
        return _with(volume, {"claimRef": {**held, **reference}}, marks)

    return change


def _holding(volume: str) -> Callable[[Object], Object]:
    def change(claim: Object) -> Object:
        marks = _COMPLETED if dig(claim, "spec.volumeName") else _COMPLETED | _BY_US
        return _with(claim, {"volumeName": volume}, marks)

    return change


def _with(obj: Object, spec: Object, annotations: dict[str, str]) -> Object:
    meta = obj["metadata"]
    marked = {**(meta.get("annotations") or {}), **annotations}
    return {**obj, "metadata": {**meta, "annotations": marked}, "spec": {**obj["spec"], **spec}}


def _free_for(volume: Object, claim: Object) -> bool:
    """Nobody has it, or this very claim."""
    reference = dig(volume, "spec.claimRef")
    return not being_deleted(volume) and (not reference or _names(reference, claim))


def _names(reference: Object, claim: Object) -> bool:
    named = (reference.get("namespace", ""), reference.get("name")) == (namespace_of(claim), name_of(claim))
    return named and reference.get("uid") in (None, "", uid_of(claim))


def _made_for(volume: Object, claim: Object) -> bool:
    reference = dig(volume, "spec.claimRef")
    return bool(reference) and _names(reference, claim) and not being_deleted(volume)


def _suits(volume: Object, claim: Object) -> bool:
    has, asks = volume["spec"], claim["spec"]
    selector = parse_label_selector(asks.get("selector"))
    return (
        _free_for(volume, claim)
        and (has.get("storageClassName") or "") == (asks.get("storageClassName") or "")
        and has.get("volumeMode") == asks.get("volumeMode")
        and set(asks["accessModes"]) <= set(has["accessModes"])
        and parse(dig(has, "capacity.storage")) >= parse(dig(asks, "resources.requests.storage"))
        and (selector is None or admits(selector, dig(volume, "metadata.labels") or {}))
    )
