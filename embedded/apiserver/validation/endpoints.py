"""Field errors of Endpoints and EndpointSlices. Words: Kubernetes' pkg/apis/core/validation and pkg/apis/discovery.

Of the loopback addresses, which Kubernetes refuses, pods of the embedded cluster have those beyond 127.0.0.0/16.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    not_supported,
    required,
    too_many,
)
from embedded.apiserver.apimachinery.objects import Object, dig

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_MOST_ENDPOINTS = 1000
_MOST_ADDRESSES = 100
_MACHINES_OWN = IPv4Network("127.0.0.0/16")
_LOOPBACK = "may not be in the loopback range (127.0.0.0/8, ::1/128)"


def reachable_address_errors(path: str, text: str) -> Iterator[FieldError]:
    """What is no address of anything else than the machine itself."""
    address = ip_address(text)
    if address.is_unspecified:
        yield bad_value(path, text, f"may not be unspecified ({text})")
    if address.is_loopback and (address.version == 6 or address in _MACHINES_OWN):
        yield bad_value(path, text, _LOOPBACK)
    if address.is_link_local:
        yield bad_value(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if text.startswith("224.0.0.") or text.lower().startswith("ff02:"):
        yield bad_value(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


def is_reachable(text: str) -> bool:
    """Whether an address may be an endpoint's."""
    return names.is_address(text) and not any(reachable_address_errors("", text))


def endpoints_errors(endpoints: Object) -> Iterator[FieldError]:
    """Everything wrong with defaulted Endpoints."""
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required(path, "must specify `addresses` or `notReadyAddresses`")
        for group in ("addresses", "notReadyAddresses"):
            for number, address in enumerate(subset.get(group) or ()):
                yield from _address_errors(f"{path}.{group}[{number}]", address)
        ports = subset.get("ports") or []
        for number, port in enumerate(ports):
            yield from _port_errors(f"{path}.ports[{number}]", port, named=len(ports) > 1)


def _address_errors(path: str, address: Object) -> Iterator[FieldError]:
    text = address.get("ip") or ""
    yield from (
        names.ip_address(f"{path}.ip", text)
        if not names.is_address(text)
        else reachable_address_errors(f"{path}.ip", text)
    )
    if address.get("hostname"):
        yield from names.dns_label(f"{path}.hostname", address["hostname"])
    if address.get("nodeName") is not None:
        yield from names.dns_subdomain(f"{path}.nodeName", address["nodeName"])


def _port_errors(path: str, port: Object, *, named: bool) -> Iterator[FieldError]:
    if named and not port.get("name"):
        yield required(f"{path}.name")
    elif port.get("name"):
        yield from names.dns_label(f"{path}.name", port["name"])
    yield from names.port_number(f"{path}.port", port.get("port") or 0)
    yield from _protocol_errors(path, port)


def _protocol_errors(path: str, port: Object) -> Iterator[FieldError]:
    if port.get("protocol") not in _PROTOCOLS:
        yield not_supported(f"{path}.protocol", port.get("protocol"), _PROTOCOLS)
    if port.get("appProtocol"):
        yield from names.qualified_name(f"{path}.appProtocol", port["appProtocol"])


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
        path = f"endpoints[{index}]"
        yield from _slice_addresses(f"{path}.addresses", endpoint.get("addresses") or [], kind)
        if endpoint.get("nodeName") is not None:
            yield from names.dns_subdomain(f"{path}.nodeName", endpoint["nodeName"])
        if endpoint.get("hostname"):
            yield from names.dns_label(f"{path}.hostname", endpoint["hostname"])
        zones = [hint.get("name") or "" for hint in dig(endpoint, "hints.forZones") or ()]
        for number, zone in enumerate(zones):
            if zone in zones[:number]:
                yield duplicate(f"{path}.hints.forZones[{number}].name", zone)
            yield from names.label_value(f"{path}.hints.forZones[{number}].name", zone)


def endpoint_slice_changes(slice_: Object, old: Object) -> Iterator[FieldError]:
    if slice_["addressType"] != old["addressType"]:
        yield bad_value("addressType", slice_["addressType"], "field is immutable")


def _slice_addresses(path: str, addresses: list[str], kind: str) -> Iterator[FieldError]:
    if not addresses:
        yield required(path, "must contain at least 1 address")
    elif len(addresses) > _MOST_ADDRESSES:
        yield too_many(path, len(addresses), _MOST_ADDRESSES)
    for index, address in enumerate(addresses):
        here = f"{path}[{index}]"
        if kind == "FQDN":
            yield from names.dns_subdomain(here, address)
        elif not names.is_address(address):
            yield from names.ip_address(here, address)
        elif not names.is_address(address, IPv4Address if kind == "IPv4" else IPv6Address):
            yield bad_value(path, address, f"must be an {kind} address")
        else:
            yield from reachable_address_errors(here, address)


def _slice_port_errors(ports: list[Object]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        if name := port["name"]:
            yield from names.dns_label(f"ports[{index}].name", name)
        if name in seen:
            yield duplicate(f"ports[{index}].name", name)
        seen.add(name)
        yield from _protocol_errors(f"ports[{index}]", port)
