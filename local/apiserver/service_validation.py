"""Field errors of Services, which are stored and not acted upon. Words: Kubernetes' pkg/apis/core/validation."""

from __future__ import annotations

from collections.abc import Iterator

from local.apiserver import names
from local.apiserver.objects import Object
from local.apiserver.status import FieldError, duplicate, not_supported, required

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_AFFINITIES = ("ClientIP", "None")


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
    yield from _port_errors(ports)


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
