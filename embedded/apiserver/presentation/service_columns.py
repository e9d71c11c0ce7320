"""The columns of Endpoints, EndpointSlices and NetworkPolicies.

Source: kubernetes `pkg/printers/internalversion/printers.go`.
"""

from __future__ import annotations

from collections.abc import Iterator

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.presentation.columns import AGE, NAME, NONE, Column, path, selector

_SHOWN = 3


def _listed(found: list[str], nothing: str) -> str:
    """The first few, and how many more there are."""
    more = f" + {len(found) - _SHOWN} more..." if len(found) > _SHOWN else ""
    return (",".join(found[:_SHOWN]) or nothing) + more


def _addresses(endpoints: Object) -> Iterator[str]:
    for subset in endpoints.get("subsets") or ():
        addresses = [address["ip"] for address in subset.get("addresses") or ()]
        if not subset.get("ports"):
            yield from addresses
        for port in subset.get("ports") or ():
            yield from (f"{address}:{port['port']}" for address in addresses)


def _slice_port(port: Object) -> str:
    number = port.get("port")
    return str(port.get("name") or "*") if number is None else str(number)


ENDPOINTS = (NAME, Column("Endpoints", lambda obj, _: _listed(list(_addresses(obj)), NONE)), AGE)
ENDPOINT_SLICE = (
    NAME,
    Column("AddressType", path("addressType")),
    Column("Ports", lambda obj, _: _listed([_slice_port(port) for port in obj.get("ports") or ()], "<unset>")),
    Column(
        "Endpoints",
        lambda obj, _: _listed([a for e in obj.get("endpoints") or () for a in e["addresses"]], "<unset>"),
    ),
    AGE,
)
NETWORK_POLICY = (NAME, Column("Pod-Selector", selector("spec.podSelector")), AGE)
SCALE = (
    NAME,
    Column("Desired", path("spec.replicas", 0), "integer"),
    Column("Available", path("status.replicas", 0), "integer"),
    AGE,
)
