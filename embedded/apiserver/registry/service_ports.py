"""Node ports: a Service that is reached on nodes has a port of theirs for each of its own, which no other Service has.

As kube-apiserver's `pkg/registry/core/service/storage` (alloc.go, transaction.go) and `strategy.go`. Nobody listens on
them in the embedded cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

from embedded.apiserver.apimachinery.field_errors import bad_value
from embedded.apiserver.apimachinery.objects import Object, name_of, namespace_of, uid_of
from embedded.apiserver.apimachinery.resource_types import SERVICES
from embedded.apiserver.apimachinery.status import invalid
from embedded.apiserver.registry.stored_objects import StoredObjects
from embedded.apiserver.validation.services import needs_health_port

_FIRST, _LAST = 30000, 32767
_ON_NODES = ("LoadBalancer", "NodePort")


def needs_node_ports(spec: Object) -> bool:
    """Whether each port has one on the nodes."""
    if spec.get("type") == "LoadBalancer":
        return spec.get("allocateLoadBalancerNodePorts") is not False
    return spec.get("type") == "NodePort"


def settle_ports(stored: StoredObjects, service: Object) -> None:
    """Give a Service its ports on nodes, or hold those it asks for against the others'; raises 422."""
    spec = service["spec"]
    if not spec.get("ports") or spec.get("type") not in _ON_NODES:
        return
    taken, by_port = _taken(stored, service), dict[int, int]()
    asked = {port["port"]: port["nodePort"] for port in reversed(spec["ports"]) if port.get("nodePort")}
    for index, port in enumerate(spec["ports"]):
        if not port.get("nodePort") and not needs_node_ports(spec):
            continue
        known = by_port.get(port["port"])
        if known is not None and port.get("nodePort") in (None, 0, known):
            port["nodePort"] = known  # one port of two protocols
            continue
        wanted = port.get("nodePort") or asked.get(port["port"])
        number = _free(service, f"{port['port']}", taken) if wanted is None else wanted
        _check(service, f"spec.ports[{index}].nodePort", number, taken)
        taken.add(number)
        port["nodePort"] = by_port[port["port"]] = number
    if needs_health_port(spec):
        number = spec.get("healthCheckNodePort") or _free(service, "health", taken)
        _check(service, "spec.healthCheckNodePort", number, taken)
        spec["healthCheckNodePort"] = number


def keep_ports(stored: StoredObjects, old: Object, new: Object) -> None:
    """What a manifest does not mention stays; what belongs to the type that a Service had goes with it."""
    spec, old_spec = new["spec"], old["spec"]
    if needs_node_ports(old_spec) and needs_node_ports(spec):
        before = {(port.get("protocol"), port["port"]): port.get("nodePort") for port in old_spec.get("ports") or ()}
        used = {port.get("nodePort") for port in spec.get("ports") or ()}
        for port in spec.get("ports") or ():
            held = before.get((port.get("protocol") or "TCP", port.get("port")))
            if not port.get("nodePort") and held and held not in used:
                port["nodePort"] = held
    if needs_health_port(old_spec) and needs_health_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = old_spec.get("healthCheckNodePort")
    _drop(spec, old_spec)
    settle_ports(stored, new)


def _drop(spec: Object, old: Object) -> None:
    """What the new type does not have, where it is as it was."""
    if needs_node_ports(old) and spec.get("type") not in _ON_NODES and _numbers(spec) == _numbers(old):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    gone = []
    if needs_health_port(old) and not needs_health_port(spec):
        gone.append("healthCheckNodePort")
    if old.get("type") in _ON_NODES and spec.get("type") not in _ON_NODES and not spec.get("externalIPs"):
        gone.append("externalTrafficPolicy")
    if old.get("type") == "LoadBalancer" != spec.get("type"):
        gone += ["allocateLoadBalancerNodePorts", "loadBalancerClass"]
    if spec.get("type") == "ExternalName" != old.get("type"):
        gone.append("internalTrafficPolicy")
    for key in gone:
        if spec.get(key) == old.get(key):
            spec.pop(key, None)


def _numbers(spec: Object) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def _taken(stored: StoredObjects, service: Object) -> set[int]:
    return {
        number
        for other in stored.objects(SERVICES)
        if uid_of(other) != uid_of(service)
        for number in (*_numbers(other["spec"]), other["spec"].get("healthCheckNodePort") or 0)
    }


def _free(service: Object, what: str, taken: set[int]) -> int:
    """The first free port from a place that the name decides, as with addresses."""
    size = _LAST - _FIRST + 1
    start = crc32(f"{namespace_of(service)}/{name_of(service)}/{what}".encode())
    candidates: Iterator[int] = (_FIRST + (start + step) % size for step in range(size))
    return next((number for number in candidates if number not in taken), 0)


def _check(service: Object, path: str, number: int, taken: set[int]) -> None:
    why = ""
    if number == 0:
        why = "failed to allocate a nodePort: range is full"
    elif not _FIRST <= number <= _LAST:
        why = f"provided port is not in the valid range. The range of valid ports is {_FIRST}-{_LAST}"
    elif number in taken:
        why = "provided port is already allocated"
    if why:
        raise invalid(SERVICES, name_of(service), [bad_value(path, number, why)])
