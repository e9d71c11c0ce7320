"""Field errors of NetworkPolicies. Rules and words: Kubernetes' pkg/apis/networking/validation."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_allowed, not_supported, required
from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.validation.label_selectors import label_selector_errors

_TYPES = ("Ingress", "Egress")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_RANGE_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def network_policy_errors(policy: Object) -> Iterator[FieldError]:
    """Everything wrong with a defaulted NetworkPolicy."""
    spec = policy["spec"]
    yield from label_selector_errors("spec.podSelector", spec.get("podSelector"))
    for group, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(group) or ()):
            path = f"spec.{group}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                yield from _port_errors(f"{path}.ports[{number}]", port)
            for number, peer in enumerate(rule.get(peers) or ()):
                yield from _peer_errors(f"{path}.{peers}[{number}]", peer)
    types = spec.get("policyTypes") or []
    if len(types) > len(_TYPES):
        yield bad_value("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for index, kind in enumerate(types):
        if kind not in _TYPES:
            yield not_supported(f"spec.policyTypes[{index}]", kind, _TYPES)


def _port_errors(path: str, port: Object) -> Iterator[FieldError]:
    if port.get("protocol") not in _PROTOCOLS:
        yield not_supported(f"{path}.protocol", port.get("protocol"), _PROTOCOLS)
    number, last = port.get("port"), port.get("endPort")
    if isinstance(number, str):
        yield from names.port_name(f"{path}.port", number)
    elif number is not None:
        yield from names.port_number(f"{path}.port", number)
    if last is None:
        return
    if number is None:
        yield bad_value(f"{path}.endPort", last, "may not be specified when `port` is not specified")
    elif isinstance(number, str):
        yield bad_value(f"{path}.endPort", last, "may not be specified when `port` is non-numeric")
    elif last < number:
        yield bad_value(f"{path}.endPort", number, "must be greater than or equal to `port`")
    else:
        yield from names.port_number(f"{path}.endPort", last)


def _peer_errors(path: str, peer: Object) -> Iterator[FieldError]:
    selectors = [key for key in ("podSelector", "namespaceSelector") if peer.get(key) is not None]
    for key in selectors:
        yield from label_selector_errors(f"{path}.{key}", peer[key])
    block = peer.get("ipBlock")
    if block is None:
        if not selectors:
            yield required(path, "must specify a peer")
        return
    yield from _block_errors(f"{path}.ipBlock", block)
    if selectors:
        yield not_allowed(path, "may not specify both ipBlock and another peer")


def _block_errors(path: str, block: Object) -> Iterator[FieldError]:
    whole = block.get("cidr") or ""
    if not whole:
        yield required(f"{path}.cidr")
        return
    if not names.is_range(whole):
        yield bad_value(f"{path}.cidr", whole, _RANGE_RULE)
        return
    for index, part in enumerate(block.get("except") or ()):
        here = f"{path}.except[{index}]"
        if not names.is_range(part):
            yield bad_value(here, part, _RANGE_RULE)
        elif not _is_within(part, whole):
            yield bad_value(here, part, "must be a strict subset of `cidr`")


def _is_within(part: str, whole: str) -> bool:
    inner, outer = ip_network(part, strict=False), ip_network(whole, strict=False)
    return inner.version == outer.version and inner != outer and inner.subnet_of(outer)  # type: ignore[arg-type]
