"""Field errors of Services. Rules and words: `ValidateService` in Kubernetes' pkg/apis/core/validation."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    not_allowed,
    not_supported,
    required,
)
from embedded.apiserver.apimachinery.objects import Object, dig
from embedded.apiserver.validation.endpoints import reachable_address_errors

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_AFFINITIES = ("ClientIP", "None")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_TRAFFIC_POLICIES = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_DAY_SECONDS = 86_400
_BALANCED = "may only be used when `type` is 'LoadBalancer'"
_CIDR_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def service_errors(service: Object) -> Iterator[FieldError]:
    """Everything wrong with a defaulted Service."""
    spec = service["spec"]
    ports = spec.get("ports") or []
    headless = spec.get("clusterIP") == "None"
    if not ports and not headless and spec["type"] != "ExternalName":
        yield required("spec.ports")
    if spec["type"] not in _TYPES:
        yield not_supported("spec.type", spec["type"], _TYPES)
    if spec["type"] == "ExternalName":
        yield from names.dns_subdomain("spec.externalName", (spec.get("externalName") or "").removesuffix("."))
    yield from _affinity_errors(spec)
    yield from names.labels("spec.selector", spec.get("selector"))
    yield from _address_errors(spec)
    yield from _family_errors(spec)
    yield from _port_errors(ports)
    yield from _node_port_errors(spec)
    yield from _balancer_errors(spec)
    yield from _traffic_errors(spec)


def _affinity_errors(spec: Object) -> Iterator[FieldError]:
    if spec["sessionAffinity"] not in _AFFINITIES:
        yield not_supported("spec.sessionAffinity", spec["sessionAffinity"], _AFFINITIES)
    elif spec["sessionAffinity"] == "ClientIP":
        seconds = dig(spec, "sessionAffinityConfig.clientIP.timeoutSeconds")
        if seconds is None or not 0 < seconds <= _DAY_SECONDS:
            path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            yield bad_value(path, seconds, f"must be greater than 0 and less than {_DAY_SECONDS}")


def _family_errors(spec: Object) -> Iterator[FieldError]:
    """The embedded cluster has addresses of one family."""
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        yield not_supported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES)
    elif policy == "RequireDualStack":
        yield bad_value("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services")
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in _FAMILIES:
            yield not_supported(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        elif family in spec["ipFamilies"][:index]:
            yield duplicate(f"spec.ipFamilies[{index}]", family)
        elif family != "IPv4":
            yield bad_value(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")


def _balancer_errors(spec: Object) -> Iterator[FieldError]:
    balanced = spec["type"] == "LoadBalancer"
    for index, address in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{index}]"
        if not names.is_address(address):
            yield from names.ip_address(path, address)
        else:
            yield from reachable_address_errors(path, address)
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        yield not_allowed("spec.allocateLoadBalancerNodePorts", _BALANCED)
    ranges = spec.get("loadBalancerSourceRanges") or ()
    if ranges and not balanced:
        yield not_allowed("spec.LoadBalancerSourceRanges", _BALANCED)
    for index, found in enumerate(ranges if balanced else ()):
        if not names.is_range(found.strip()):
            yield bad_value(f"spec.LoadBalancerSourceRanges[{index}]", found, _CIDR_RULE)
    if kind := spec.get("loadBalancerClass"):
        if balanced:
            yield from names.qualified_name("spec.loadBalancerClass", kind)
        else:
            yield not_allowed("spec.loadBalancerClass", _BALANCED)


def _traffic_errors(spec: Object) -> Iterator[FieldError]:
    inside, outside = spec.get("internalTrafficPolicy"), spec.get("externalTrafficPolicy")
    reached = spec["type"] in ("LoadBalancer", "NodePort") or (spec["type"] == "ClusterIP" and spec.get("externalIPs"))
    if inside is not None and inside not in _TRAFFIC_POLICIES:
        yield not_supported("spec.internalTrafficPolicy", inside, _TRAFFIC_POLICIES)
    if outside and not reached:
        detail = "may only be set for externally-accessible services"
        yield bad_value("spec.externalTrafficPolicy", outside, detail)
    elif outside and outside not in _TRAFFIC_POLICIES:
        yield not_supported("spec.externalTrafficPolicy", outside, _TRAFFIC_POLICIES)
    if (port := spec.get("healthCheckNodePort")) and not needs_health_port(spec):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield bad_value("spec.healthCheckNodePort", port, detail)
    if (wanted := spec.get("trafficDistribution")) is not None and wanted not in _DISTRIBUTIONS:
        yield not_supported("spec.trafficDistribution", wanted, _DISTRIBUTIONS)


def service_changes(service: Object, old: Object) -> Iterator[FieldError]:
    """An address stays for as long as the Service has one."""
    spec, old_spec = service["spec"], old["spec"]
    kinds = (spec["type"], old_spec["type"])
    held = old_spec.get("loadBalancerClass")
    if kinds == ("LoadBalancer", "LoadBalancer") and held and spec.get("loadBalancerClass") != held:
        yield bad_value("spec.loadBalancerClass", spec.get("loadBalancerClass"), "may not change once set")
    if "ExternalName" not in kinds and spec.get("clusterIPs") != old_spec.get("clusterIPs"):
        yield bad_value("spec.clusterIPs[0]", spec.get("clusterIPs"), "may not change once set")


def _address_errors(spec: Object) -> Iterator[FieldError]:
    held = spec.get("clusterIPs") or []
    if spec["type"] == "ExternalName":
        if held or spec.get("clusterIP"):
            yield not_allowed("spec.clusterIPs", "may not be set for ExternalName services")
        return
    if spec["type"] != "ClusterIP" and held[:1] == ["None"]:
        yield bad_value("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {spec['type']} services")
    if held and held[0] != spec.get("clusterIP"):
        yield bad_value("spec.clusterIPs", held, "first value must match `clusterIP`")
    if len(held) > 1 and "None" in held:
        yield bad_value("spec.clusterIPs", held, "'None' must be the first and only value")
    for index, address in enumerate(held):
        if names.is_address(address, IPv6Address):
            yield bad_value(f"spec.clusterIPs[{index}]", held, "IPv6 is not configured on this cluster")
        elif address != "None":
            yield from names.ip_address(f"spec.clusterIPs[{index}]", address)


def _node_port_errors(spec: Object) -> Iterator[FieldError]:
    for index, port in enumerate(spec.get("ports") or ()):
        if port.get("nodePort") and spec["type"] == "ClusterIP":
            yield not_allowed(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")


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
        if port.get("appProtocol"):
            yield from names.qualified_name(f"{path}.appProtocol", port["appProtocol"])
        target = port["targetPort"]
        yield from (names.port_name if isinstance(target, str) else names.port_number)(f"{path}.targetPort", target)
        place = (port["protocol"], port["port"])
        if place in seen:
            yield duplicate(path, {"port": port["port"], "protocol": port["protocol"]})
        seen |= {place, name}


def needs_health_port(spec: Object) -> bool:
    """Whether a load balancer asks nodes for their health."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"
