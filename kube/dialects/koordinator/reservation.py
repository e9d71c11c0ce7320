"""Reservation of a Node: what is kept free of pods, by its annotation `node.koordinator.sh/reservation`.

Source: Koordinator apis/extension/node_reservation.go, and getNodeReserved in
pkg/koordlet/statesinformer/impl/states_noderesourcetopology.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec

from kube.dialects.documents.document import annotated, parsed
from model.fault import ConfigurationFault
from model.node import Node
from model.resources import CPU, ResourceVector, parse_resources
from model.topology import Processor, format_cpus, parse_cpus

ANNOTATION_RESERVATION = "node.koordinator.sh/reservation"


class Reservation(msgspec.Struct, frozen=True):
    """`cpus` are those reserved by number; there are none where a Node says an amount only."""

    amounts: ResourceVector = ResourceVector()
    cpus: tuple[int, ...] = ()

    @property
    def reserved(self) -> ResourceVector:
        """Amounts, in which the count of CPUs replaces `cpu`."""
        return ResourceVector({**self.amounts.amounts, CPU: 1000 * len(self.cpus)}) if self.cpus else self.amounts

    def chosen(self, processors: Iterable[Processor]) -> tuple[int, ...]:
        """The reserved CPUs; of an amount as many as hold it, core by core from the lowest."""
        if self.cpus:
            return self.cpus
        by_core = sorted((processor.core, processor.cpu) for processor in processors)
        return tuple(sorted(cpu for _, cpu in by_core[: -(-self.amounts[CPU] // 1000)]))


class _ApplyPolicy(StrEnum):
    DEFAULT = "Default"
    RESERVED_CPUS_ONLY = "ReservedCPUsOnly"
    UNSET = ""


class _Annotation(msgspec.Struct, frozen=True, rename="camel"):
    resources: dict[str, Any] | None = None
    reserved_cpus: str | None = msgspec.field(name="reservedCPUs", default=None)
    apply_policy: _ApplyPolicy | None = None


def reservation(node: Node) -> Reservation:
    """Raises ConfigurationFault naming Node, annotation, field and what to write."""
    told = annotated(node.annotations, ANNOTATION_RESERVATION, _Annotation, f"Node {node.name}") or _Annotation()
    where = f"Node {node.name}: annotation {ANNOTATION_RESERVATION}"
    amounts = parse_resources(told.resources or {}, f"{where}.resources")
    try:
        return Reservation(amounts, parse_cpus(told.reserved_cpus or ""))
    except ValueError as error:
        raise ConfigurationFault(f"{where}.reservedCPUs", str(error)) from error


def written_out(node: Node, processors: Iterable[Processor]) -> str | None:
    """The annotation for a NodeResourceTopology: the Node's own, with the CPUs that were chosen for an amount.

    None without one. Raises ConfigurationFault, as `reservation` does.
    """
    text = node.annotations.get(ANNOTATION_RESERVATION)
    found = reservation(node)
    cpus = found.chosen(processors)
    if text is None or found.cpus or not cpus:
        return text
    return msgspec.json.encode({**parsed(text, ANNOTATION_RESERVATION), "reservedCPUs": format_cpus(cpus)}).decode()
