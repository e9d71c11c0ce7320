"""The annotation with a pod's lent amounts, for those who see a container without its Kubernetes resources.

Source: Koordinator pkg/webhook/pod/mutating/extended_resource_spec.go, apis/extension/resource.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from admission.core.podfields import Document, Pod, annotations_of, containers, spec, with_metadata
from model.quantity import QuantityError, parse_units
from model.resources import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY

ANNOTATION = "node.koordinator.sh/extended-resource-spec"
_LENT = (BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY)
_COUNTED = (BATCH_CPU, MID_CPU)
"""Written as whole numbers, whatever notation they are stored in."""


def with_resource_spec(pod: Pod) -> Document:
    """The pod with the annotation that its containers and overhead call for; without one where nothing lent is asked.

    Names of containers and init containers are one space of names, so both stand in one map. An annotation that says
    the same in other notations is left alone.
    """
    told = _of(pod)
    if told == {} and ANNOTATION not in annotations_of(pod):
        return dict(pod)
    if told and _parsed(told) == _parsed(_written(annotations_of(pod).get(ANNOTATION, ""))):
        return dict(pod)
    text = msgspec.json.encode(told, order="sorted").decode() if told else None
    return with_metadata(pod, "annotations", {ANNOTATION: text})


def _of(pod: Pod) -> dict[str, Any]:
    found = {str(each.get("name", "")): _asked(each.get("resources") or {}) for each in containers(pod)}
    named = {name: amounts for name, amounts in found.items() if amounts}
    overhead = _lent(spec(pod).get("overhead") or {})
    return {**({"containers": named} if named else {}), **({"overhead": overhead} if overhead else {})}


def _asked(resources: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: _lent(resources.get(key) or {}) for key in ("requests", "limits")}
    return {key: amounts for key, amounts in found.items() if amounts}


def _lent(amounts: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(name, amounts[name]) for name in _LENT if name in amounts}


def _text(name: str, amount: Any) -> str:
    try:
        return str(parse_units(amount)) if name in _COUNTED else str(amount)
    except QuantityError:
        return str(amount)


def _written(text: str) -> Any:
    try:
        return msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _parsed(told: Any) -> Any:
    """The same with amounts as numbers."""
    if isinstance(told, dict):
        return {key: _parsed(value) for key, value in told.items()}
    try:
        return parse_units(told)
    except QuantityError:
        return told
