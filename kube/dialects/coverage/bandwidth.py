"""Shares of the network that do not go together: Koordinator accepts them, and no network could give them.

Source: Koordinator pkg/koordlet/runtimehooks/hooks/terwayqos (parseNetQoS), apis/slo/v1alpha1 (NetworkQOS).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import msgspec

from kube.dialects.koordinator.sloconfig import Layers
from kube.dialects.koordinator.slosections import NetworkQos, QosFields, SystemFields
from model.quantity import parse

_CLASSES = ("lsr_class", "ls_class", "be_class")
_NAMES = {field.name: field.encode_name for kind in (QosFields, NetworkQos) for field in msgspec.structs.fields(kind)}
_DIRECTIONS = ("ingress", "egress")
_WHOLE = Fraction(100)


def at_odds(qos: Layers[QosFields] | None, system: Layers[SystemFields] | None) -> Iterator[str]:
    """One sentence for each limit below its request, and for requests that are more than there is together.

    The cluster's total counts for every entry: whose nodes a system entry means as well is not known here.
    """
    if qos is None:
        return
    total = _total(system)
    told = tuple(_of_layer(qos.cluster, QosFields(), total))
    yield from (f"clusterStrategy.{each}" for each in told)
    for index, entry in enumerate(qos.nodes):
        yield from (
            f"nodeStrategies[{index}].{each}"
            for each in _of_layer(entry.fields, qos.cluster, total)
            if each not in told
        )


def _total(system: Layers[SystemFields] | None) -> Fraction:
    return parse(system.cluster.total_network_bandwidth or 0) if system else Fraction(0)


def _of_layer(over: QosFields, under: QosFields, total: Fraction) -> Iterator[str]:
    found = {name: _network(over, under, name) for name in _CLASSES}
    enabled = {name: network for name, network in found.items() if network.enable}
    for direction in _DIRECTIONS:
        shares = []
        for name, network in enabled.items():
            request, limit = getattr(network, f"{direction}_request"), getattr(network, f"{direction}_limit")
            shares.append(_share(request, total))
            if _below(limit, request, total):
                where = f"{_NAMES[name]}.networkQOS.{_NAMES[f'{direction}_limit']}"
                yield f"{where}: is less than {_NAMES[f'{direction}_request']}; write at least as much"
        known = [share for share in shares if share is not None]
        if sum(known) > _WHOLE:
            together = f"{_NAMES[f'{direction}_request']} of {', '.join(_NAMES[name] for name in enabled)}"
            yield f"networkQOS: {together} is {round(sum(known))} % of the bandwidth together; write at most 100"


def _network(over: QosFields, under: QosFields, name: str) -> NetworkQos:
    """A class's, field by field."""
    told: dict[str, Any] = {}
    for layer in (under, over):
        of_class = getattr(layer, name)
        if of_class is not None and of_class.network is not None:
            fields = msgspec.structs.asdict(of_class.network)
            told |= {field: value for field, value in fields.items() if value is not None}
    return NetworkQos(**told)


def _below(limit: int | str | None, request: int | str | None, total: Fraction) -> bool:
    """Two amounts compare whatever the whole is, and so do two shares of it."""
    if isinstance(limit, str) and isinstance(request, str) and limit and request:
        return parse(limit) < parse(request)
    least, most = _share(request, total), _share(limit, total)
    return least is not None and most is not None and most < least


def _share(written: int | str | None, total: Fraction) -> Fraction | None:
    """In percent; None where nothing is said, or where the whole is not known."""
    if isinstance(written, int):
        return Fraction(written)
    return _WHOLE * parse(written) / total if written and total else None
