"""One row of the table of Koordinator's API: a field, how far it is acted on, and what makes a document ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec


class Support(StrEnum):
    """How far a field is acted on."""

    HONOURED = "honoured"
    PARTLY = "partly"
    NOT_YET = "not yet"
    NEVER = "never"


class Surface(StrEnum):
    """Where a field stands."""

    SETTINGS = "ConfigMap slo-controller-config and NodeSLO"
    NODE_METRIC = "NodeMetric"
    PROFILE = "ClusterColocationProfile"
    POD_LABEL = "Pod labels"
    POD_ANNOTATION = "Pod annotations"
    POD_RESOURCE = "Resources that a pod asks for"
    GANG = "PodGroup, and annotations of gangs"
    NODE = "Node labels and annotations"
    SCHEDULER = "ConfigMap koord-scheduler-config"
    KIND = "Kinds"


class Area(StrEnum):
    """What a field is for: the lines of the short table."""

    LENDING = "batch and mid resources"
    SUPPRESS = "CPU suppression"
    EVICT = "eviction from a node"
    PROFILES = "colocation profiles"
    GANGS = "gangs and their topology"
    PREEMPTION = "preemption"
    LOAD = "load-aware scheduling"
    HOST = "host applications"
    CPU_RATIOS = "CPU normalization, amplification"
    CPU_QOS = "CPU QoS, CPU burst"
    MEMORY_QOS = "memory QoS"
    OTHER_QOS = "cache, disk and network QoS"
    SYSTEM = "settings of the whole node"
    CPU_BINDING = "CPU binding, NUMA"
    QUOTA = "quotas, queues"
    RESERVATION = "reservations, hints"
    DEVICES = "GPU and other devices"
    DESCHEDULING = "descheduling, migration"


class Asks(StrEnum):
    """What makes a document ask for a field."""

    SET = "it is set"
    ON = "its `enable` is true"
    VALUE = "it is neither empty nor 0"
    POLICY = "its policy is neither empty nor none"


class CoverageRow(msgspec.Struct, frozen=True):
    """One field.

    `field` is its path: in settings the ConfigMap's key comes first, `*` stands for any letters of one name, `[]` for
    the items of a list; of labels and annotations the key, where `*` ends a prefix. `values` restricts the row to these
    values. `consequence` is what is done, or what is not, as the end of a sentence; `source` Koordinator's file or
    manual.
    `reader` is our file that reads an honoured field. A minimal document has `example` at the field, and `beside` it
    what the field cannot be without.
    """

    surface: Surface
    area: Area
    field: str
    support: Support
    consequence: str
    source: str = ""
    reader: str = ""
    asks: Asks = Asks.SET
    values: tuple[str, ...] = ()
    example: Any = True
    beside: Mapping[str, Any] = {}

    @property
    def warns(self) -> bool:
        """Whether a document that asks for the field asks for something nobody does."""
        return self.support is not Support.HONOURED

    @property
    def name(self) -> str:
        """The field with the values it is about."""
        return f"{self.field}: {', '.join(self.values)}" if self.values else self.field


class Asked(msgspec.Struct, frozen=True):
    """A row and the places of a document that ask for it, the first one first."""

    row: CoverageRow
    places: tuple[str, ...]


_FORMS = {
    Support.HONOURED: "{where}: {place} is acted on: {consequence}",
    Support.PARTLY: "{where}: {place} is acted on in part: {consequence}",
    Support.NOT_YET: "{where}: nothing acts on {place} yet: {consequence}",
    Support.NEVER: "{where}: nothing acts on {place}: {consequence}",
}


def sentence(where: str, asked: Asked) -> str:
    """What a person reads who wrote the object `where`."""
    more = len(asked.places) - 1
    place = asked.places[0] + (f" (and {more} more)" if more else "")
    return _FORMS[asked.row.support].format(where=where, place=place, consequence=asked.row.consequence)
