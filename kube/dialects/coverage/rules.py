"""Eviction rules that a document asks for and that are off all the same, since something they need is missing or wrong.

Source: Koordinator pkg/webhook/cm/plugins/sloconfig (gtfield, ltfield), pkg/koordlet/qosmanager/plugins/{cpuevict,
memoryevict}.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kube.dialects.koordinator.nodeslo import EvictionFields
from kube.dialects.koordinator.sloconfig import Layers

_NAMES = {field.name: field.encode_name for field in msgspec.structs.fields(EvictionFields)}
_LOWER, _UPPER = "cpu_satisfaction_lower_pct", "cpu_satisfaction_upper_pct"
_MOST_LOWER_PCT, _MOST_UPPER_PCT = 60, 99
_NEEDS = {
    "cpu_threshold_pct": ("priority_threshold",),
    "cpu_lower_pct": ("cpu_threshold_pct",),
    "cpu_allocatable_threshold_pct": ("cpu_allocatable_lower_pct", "allocatable_priority_threshold"),
    "cpu_allocatable_lower_pct": ("cpu_allocatable_threshold_pct",),
    "memory_allocatable_threshold_pct": ("memory_allocatable_lower_pct", "allocatable_priority_threshold"),
    "memory_allocatable_lower_pct": ("memory_allocatable_threshold_pct",),
}
"""A field, and those without which nothing acts on it. BEMemoryEvict needs its threshold alone."""


class Flaw(msgspec.Struct, frozen=True):
    """`field` asks for a rule that is off; `why` says what to write. Koordinator's webhook refuses some (`refused`)."""

    field: str
    why: str
    refused: bool = False

    def __str__(self) -> str:
        return f"{self.field}: {self.why}"


def together(layers: Iterable[EvictionFields]) -> EvictionFields:
    """Later layers over earlier ones, where they say anything."""
    told: dict[str, object] = {}
    for layer in layers:
        told |= {name: value for name, value in msgspec.structs.asdict(layer).items() if value is not None}
    return msgspec.structs.replace(EvictionFields(), **told)


def flaws(fields: EvictionFields) -> tuple[Flaw, ...]:
    """Of one node's settings, or of a document by itself. A satisfaction of 0 asks for nothing."""
    return (*_satisfaction(fields), *_needs(fields))


def flaws_of(layers: Layers[EvictionFields] | None) -> Iterator[tuple[str, Flaw]]:
    """Of each layer as it holds on nodes: of the cluster's values, and of each entry over them; with its place.

    What the cluster lacks is not told again of every entry.
    """
    if layers is None:
        return
    of_cluster = flaws(layers.cluster)
    yield from (("clusterStrategy", flaw) for flaw in of_cluster)
    for index, entry in enumerate(layers.nodes):
        found = flaws(together((layers.cluster, entry.fields)))
        yield from ((f"nodeStrategies[{index}]", flaw) for flaw in found if flaw not in of_cluster)


def _satisfaction(fields: EvictionFields) -> Iterator[Flaw]:
    lower, upper = getattr(fields, _LOWER), getattr(fields, _UPPER)
    low, high = _NAMES[_LOWER], _NAMES[_UPPER]
    if lower and upper is None:
        yield Flaw(low, f"is {lower} without {high}; set that to more than {lower}", refused=True)
    elif upper and lower is None:
        yield Flaw(high, f"is {upper} without {low}; set that to less than {upper}", refused=True)
    elif lower and upper is not None and lower >= upper:
        yield Flaw(low, f"is {lower}, and {high} is {upper}; write a lower one below the upper one", refused=True)
    elif lower and lower > _MOST_LOWER_PCT:
        yield Flaw(low, f"is {lower}, which switches its rule off; write 1 to {_MOST_LOWER_PCT}")
    elif lower and upper and upper > _MOST_UPPER_PCT:
        yield Flaw(high, f"is {upper}, which switches its rule off; write at most {_MOST_UPPER_PCT}")


def _needs(fields: EvictionFields) -> Iterator[Flaw]:
    for name, needed in _NEEDS.items():
        missing = [_NAMES[each] for each in needed if getattr(fields, each) is None]
        if getattr(fields, name) is not None and missing:
            yield Flaw(_NAMES[name], f"nothing acts on it without {' and '.join(missing)}")
