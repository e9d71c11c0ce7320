"""Cluster IPs: every Service that wants one has an address of its own, on the loopback of this machine.

As kube-apiserver's `pkg/registry/core/service/storage/alloc.go`, of one family.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv4Network
from zlib import crc32

from embedded.apiserver.apimachinery.field_errors import bad_value
from embedded.apiserver.apimachinery.objects import Object, name_of, namespace_of, uid_of
from embedded.apiserver.apimachinery.resource_types import SERVICES
from embedded.apiserver.apimachinery.status import invalid
from embedded.apiserver.registry.stored_objects import StoredObjects

SERVICE_RANGE = IPv4Network("127.96.0.0/16")
HEADLESS = "None"
_EXTERNAL = "ExternalName"


def settle_address(stored: StoredObjects, service: Object) -> None:
    """Give a Service its address, or hold the one it asks for against the others'; raises 422."""
    spec = service["spec"]
    if spec.get("type") == _EXTERNAL:
        return
    asked = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), "")
    if not asked:
        asked = _free_address(service, _taken(stored, service))
    elif asked != HEADLESS:
        _check(stored, service, asked)
    spec["clusterIP"] = spec.get("clusterIP") or asked
    spec["clusterIPs"] = spec.get("clusterIPs") or [asked]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def keep_address(stored: StoredObjects, old: Object, new: Object) -> None:
    """A manifest that does not mention the address keeps it; one that turns to ExternalName gives it back."""
    spec, old_spec = new["spec"], old["spec"]
    if spec.get("type") == _EXTERNAL:
        for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if spec.get(key) == old_spec.get(key):
                spec.pop(key, None)
        return
    for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if not spec.get(key) and old_spec.get(key):
            spec[key] = old_spec[key]
    if spec.get("clusterIP") != old_spec.get("clusterIP") and spec.get("clusterIPs") == old_spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    if not old_spec.get("clusterIP"):
        settle_address(stored, new)


def _taken(stored: StoredObjects, service: Object) -> set[str]:
    others = (other for other in stored.objects(SERVICES) if uid_of(other) != uid_of(service))
    return {other["spec"].get("clusterIP") or "" for other in others}


def _free_address(service: Object, taken: set[str]) -> str:
    """The first free address from a place that the name decides, so that a Service made again finds its old one."""
    size = SERVICE_RANGE.num_addresses - 2
    start = crc32(f"{namespace_of(service)}/{name_of(service)}".encode())
    candidates = (str(SERVICE_RANGE[1 + (start + step) % size]) for step in range(size))
    found = next((address for address in candidates if address not in taken), None)
    if found is None:
        raise _refused(service, "failed to allocate IP: range is full")
    return found


def _check(stored: StoredObjects, service: Object, asked: str) -> None:
    """An address that is none is for validation to tell of."""
    try:
        address = IPv4Address(asked)
    except AddressValueError:
        return
    if address not in SERVICE_RANGE:
        why = f"the provided IP ({asked}) is not in the valid range. The range of valid IPs is {SERVICE_RANGE}"
        raise _refused(service, f"failed to allocate IP {asked}: {why}")
    if asked in _taken(stored, service):
        raise _refused(service, f"failed to allocate IP {asked}: provided IP is already allocated")


def _refused(service: Object, why: str) -> Exception:
    held = service["spec"].get("clusterIPs") or [service["spec"].get("clusterIP") or ""]
    return invalid(SERVICES, name_of(service), [bad_value("spec.clusterIPs", held, why)])
