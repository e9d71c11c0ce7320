"""Field errors of Services and EndpointSlices. Words: Kubernetes' pkg/apis/core/validation and pkg/apis/discovery.

Endpoints may be loopback addresses, which Kubernetes refuses: pods of the embedded cluster have no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

from local.apiserver import names
from local.apiserver.objects import Object
from local.apiserver.status import FieldError, bad_value, duplicate, not_allowed, not_supported, required, too_many

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_AFFINITIES = ("ClientIP", "None")
_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_MOST_ENDPOINTS = 1000
_MOST_ADDRESSES = 100


def service_errors(service: Object) -> Iterator[FieldError]:
    """Everything wrong with a defaulted Service."""
    spec = service["spec"]
    ports = spec.get("ports") or []
    headless = spec.get("clusterIP") == "None"
    if not ports and not headless and spec["type"] != "ExternalName":
        yield required("spec.ports")
    if spec["type"] not in _TYPES:
        yield not_supported("spec.type", spec["type"], _TYPES)
    if spec["type"] == "ExternalName" and not spec.get("externalName"):
        yield required("spec.externalName")
    if spec["sessionAffinity"] not in _AFFINITIES:
        yield not_supported("spec.sessionAffinity", spec["sessionAffinity"], _AFFINITIES)
    yield from names.labels("spec.selector", spec.get("selector"))
    yield from _address_errors(spec)
    yield from _port_errors(ports)
    yield from _node_port_errors(spec)


def service_changes(service: Object, old: Object) -> Iterator[FieldError]:
    """An address stays for as long as the Service has one."""
    spec, old_spec = service["spec"], old["spec"]
    kinds = (spec["type"], old_spec["type"])
    if "ExternalName" not in kinds and spec.get("clusterIPs") != old_spec.get("clusterIPs"):
        yield bad_value("spec.clusterIPs[0]", spec.get("clusterIPs"), "may not change once set")


def _address_errors(spec: Object) -> Iterator[FieldError]:
    held = spec.get("clusterIPs") or []
    if spec["type"] == "ExternalName":
        if held:
            yield not_allowed("spec.clusterIPs", "may not be set for ExternalName services")
        return
    if spec["type"] != "ClusterIP" and held[:1] == ["None"]:
        yield bad_value("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {spec['type']} services")
    if held and held[0] != spec.get("clusterIP"):
        yield bad_value("spec.clusterIPs", held, "first value must match `clusterIP`")
    for index, address in enumerate(held):
        if address != "None":
            yield from names.ip_address(f"spec.clusterIPs[{index}]", address)


def _node_port_errors(spec: Object) -> Iterator[FieldError]:
    for index, port in enumerate(spec.get("ports") or ()):
        if port.get("nodePort") and spec["type"] == "ClusterIP":
            yield not_allowed(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")


def endpoint_slice_errors(slice_: Object) -> Iterator[FieldError]:
    """Everything wrong with a defaulted EndpointSlice."""
    kind, endpoints = slice_["addressType"], slice_.get("endpoints") or []
    if kind not in _ADDRESS_TYPES:
        yield required("addressType") if not kind else not_supported("addressType", kind, _ADDRESS_TYPES)
    yield from _slice_port_errors(slice_.get("ports") or [])
    if len(endpoints) > _MOST_ENDPOINTS:
        yield too_many("endpoints", len(endpoints), _MOST_ENDPOINTS)
        return
    for index, endpoint in enumerate(endpoints):
        yield from _endpoint_errors(f"endpoints[{index}].addresses", endpoint.get("addresses") or [], kind)


def endpoint_slice_changes(slice_: Object, old: Object) -> Iterator[FieldError]:
    if slice_["addressType"] != old["addressType"]:
        yield bad_value("addressType", slice_["addressType"], "field is immutable")


def _endpoint_errors(path: str, addresses: list[str], kind: str) -> Iterator[FieldError]:
    if not addresses:
        yield required(path, "must contain at least 1 address")
    elif len(addresses) > _MOST_ADDRESSES:
        yield too_many(path, len(addresses), _MOST_ADDRESSES)
    for index, address in enumerate(addresses):
        if kind == "FQDN":
            yield from names.dns_subdomain(f"{path}[{index}]", address)
        elif not names.is_address(address):
            yield from names.ip_address(f"{path}[{index}]", address)
        elif not names.is_address(address, IPv4Address if kind == "IPv4" else IPv6Address):
            yield bad_value(path, address, f"must be an {kind} address")


def _slice_port_errors(ports: list[Object]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        if name := port["name"]:
            yield from names.dns_label(f"ports[{index}].name", name)
        if name in seen:
            yield duplicate(f"ports[{index}].name", name)
        seen.add(name)
        if port["protocol"] not in _PROTOCOLS:
            yield not_supported(f"ports[{index}].protocol", port["protocol"], _PROTOCOLS)


def _port_errors(ports: list[Object]) -> Iterator[FieldError]:
    seen: set[object] = set()
    for index, port in enumerate(ports):
        path, name = f"spec.ports[{index}]", port.get("name") or ""
        if not name and len(ports) > 1:
            yield required(f"{path}.name")
        elif name:
            yield from names.dns_label(f"{path}.name", name)
            if name in seen:
                yield duplicate(f"{path}.name", name)
        yield from names.port_number(f"{path}.port", port["port"])
        if port["protocol"] not in _PROTOCOLS:
            yield not_supported(f"{path}.protocol", port["protocol"], _PROTOCOLS)
        target = port["targetPort"]
        yield from (names.port_name if isinstance(target, str) else names.port_number)(f"{path}.targetPort", target)
        place = (port["protocol"], port["port"])
        if place in seen:
            yield duplicate(path, {"port": port["port"], "protocol": port["protocol"]})
        seen |= {place, name}
