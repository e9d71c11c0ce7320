"""Which endpoints are behind which address: Services and EndpointSlices in, a table out.

https://kubernetes.io/docs/reference/networking/virtual-ips/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import AddressValueError, IPv4Address

from embedded.proxy.objects import EndpointSliceObject, ServiceObject

_SERVICE_NAME = "kubernetes.io/service-name"
Place = tuple[str, int]  # IPv4 address and port
Routes = Mapping[Place, tuple[Place, ...]]


def routes(services: Iterable[ServiceObject], slices: Iterable[EndpointSliceObject], *, routed: bool = False) -> Routes:
    """The endpoints of every TCP port that has any, in order; only addresses of the loopback, unless `routed`.

    Where no endpoint is ready, those serve that are terminating and still can.
    """
    by_service: dict[tuple[str, str], list[EndpointSliceObject]] = {}
    for each in slices:
        name = (each.metadata.labels or {}).get(_SERVICE_NAME, "")
        by_service.setdefault((each.metadata.namespace, name), []).append(each)
    found: dict[Place, tuple[Place, ...]] = {}
    for service in services:
        behind = by_service.get((service.metadata.namespace, service.metadata.name), [])
        for port in service.spec.ports or () if _served(service.spec.cluster_ip, routed) else ():
            if port.protocol == "TCP" and (places := _places(behind, port.name, routed)):
                found[(service.spec.cluster_ip, port.port)] = places
    return found


def _served(address: str, routed: bool) -> bool:
    try:
        return IPv4Address(address).is_loopback or routed
    except AddressValueError:
        return False


def _places(slices: list[EndpointSliceObject], name: str, routed: bool) -> tuple[Place, ...]:
    ready: set[Place] = set()
    ending: set[Place] = set()
    for each in slices:
        ports = [port.port for port in each.ports or () if (port.name or "") == name and port.port]
        for endpoint in each.endpoints or ():
            kind = ready if endpoint.ready else ending if endpoint.still_serves else set[Place]()
            kind |= {
                (address, port) for address in endpoint.addresses[:1] for port in ports if _served(address, routed)
            }
    return tuple(sorted(ready or ending))
