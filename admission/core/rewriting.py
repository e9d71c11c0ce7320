"""A pod's cpu and memory in the terms of its priority class: what a batch pod asks for is lent, not reserved.

Source: Koordinator pkg/webhook/pod/mutating/cluster_colocation_profile.go (mutatePodResourceSpec).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from admission.core.podfields import (
    LABEL_PRIORITY_CLASS,
    LABEL_QOS,
    Document,
    Pod,
    labels_of,
    spec,
    with_containers,
    with_spec,
)
from model.qos import PriorityBand, QoSClass, priority_band
from model.quantity import QuantityError, parse_millis, parse_units
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY

Amounts = Mapping[str, Any]

LENT_NAMES: Mapping[PriorityBand, Mapping[str, str]] = {
    PriorityBand.BATCH: {CPU: BATCH_CPU, MEMORY: BATCH_MEMORY},
    PriorityBand.MID: {CPU: MID_CPU, MEMORY: MID_MEMORY},
}
"""What cpu and memory of a class are called when they are lent; those of the other classes are their own."""


class NoLentForm(ValueError):
    """The pod's resources have no form in lent terms; the message names the field and what to do."""


class Rewritten(msgspec.Struct, frozen=True):
    """The pod, and what was renamed: `container.requests.cpu 2 → kubernetes.io/batch-cpu 2000`."""

    pod: Document
    changes: tuple[str, ...] = ()


def band_of(pod: Pod) -> PriorityBand:
    """The pod's priority band with default.

    Kubernetes' own QoS class is left out of the default: it could only make batch of a pod that asks for nothing.
    """
    qos = QoSClass.of(labels_of(pod).get(LABEL_QOS))
    return priority_band(labels_of(pod).get(LABEL_PRIORITY_CLASS), spec(pod).get("priority"), qos)


def rewritten(pod: Pod) -> Rewritten:
    """The pod with lent amounts where its class has any.

    An overhead that comes from a RuntimeClass stays as it is: the API server refuses a pod whose overhead is not
    word for word its RuntimeClass's. Raises Unwritable.
    """
    names = LENT_NAMES.get(band_of(pod))
    if names is None:
        return Rewritten(dict(pod))
    renaming = _Renaming(names)
    result = with_containers(_on_container(pod), renaming.container)
    overhead = spec(pod).get("overhead")
    if overhead and not spec(pod).get("runtimeClassName"):
        result = with_spec(result, {"overhead": renaming.renamed(overhead, "spec.overhead")})
    return Rewritten(result, tuple(renaming.changes))


class _Renaming:
    """Renames amounts and remembers what it renamed."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self.changes: list[str] = []

    def container(self, container: Document) -> Document:
        resources = container.get("resources") or {}
        told = {name: resources[name] for name in ("requests", "limits") if resources.get(name)}
        if not told:
            return container
        where = f"container {container.get('name', '')}"
        after = {name: self.renamed(amounts, f"{where}: {name}") for name, amounts in told.items()}
        requests = _at_least_limits(after.get("requests") or {}, after.get("limits") or {}, self._names)
        return {**container, "resources": {**resources, **after, **({"requests": requests} if requests else {})}}

    def renamed(self, amounts: Amounts, where: str) -> dict[str, Any]:
        """An amount that stands there in lent terms already is what was meant: the other one is a default of others."""
        kept = {name: amount for name, amount in amounts.items() if name not in self._names}
        for name, lent in self._names.items():
            if name not in amounts:
                continue
            amount = _lent_amount(name, amounts[name], f"{where}.{name}")
            self.changes.append(f"{where}.{name} {amounts[name]} → {lent} {kept.get(lent, amount)}")
            kept.setdefault(lent, amount)
        return kept


def _lent_amount(name: str, amount: Any, where: str) -> str:
    """CPU in whole milli-CPU, as the lent resource is counted; memory as it was written."""
    try:
        parse_units(amount)
        return str(parse_millis(amount)) if name == CPU else str(amount)
    except QuantityError as error:
        raise NoLentForm(f"{where}: {error}") from None


def _at_least_limits(requests: Amounts, limits: Amounts, names: Mapping[str, str]) -> dict[str, Any]:
    """A limit stands for the request that is not made."""
    return {**requests, **{lent: limits[lent] for lent in names.values() if lent in limits and lent not in requests}}


def _on_container(pod: Pod) -> Document:
    """What the pod asks for as a whole, asked for by its only container.

    Kubernetes knows no lent resources at the pod's level, and what several containers share cannot be divided among
    them without guessing. Raises Unwritable for those.
    """
    whole = spec(pod).get("resources") or {}
    asked = {key: {n: whole[key][n] for n in (CPU, MEMORY) if n in (whole.get(key) or {})} for key in _KEYS}
    if not any(asked.values()):
        return dict(pod)
    if len(spec(pod).get("containers") or ()) != 1 or spec(pod).get("initContainers"):
        raise NoLentForm(
            "spec.resources: batch and mid resources cannot be asked for by a pod of several containers as a whole; "
            "write requests and limits at each container"
        )
    rest = {key: {n: a for n, a in (whole.get(key) or {}).items() if n not in asked[key]} for key in _KEYS}
    left = {**{key: value for key, value in whole.items() if key not in _KEYS}, **{k: r for k, r in rest.items() if r}}
    (container,) = spec(pod)["containers"]
    return with_spec(pod, {"containers": [_asking(container, asked)], "resources": left or None})


_KEYS = ("requests", "limits")


def _asking(container: Document, asked: Mapping[str, Amounts]) -> Document:
    own = container.get("resources") or {}
    more = {key: {**(own.get(key) or {}), **amounts} for key, amounts in asked.items() if amounts}
    return {**container, "resources": {**own, **more}}
