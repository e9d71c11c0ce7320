"""The machine's CPUs as a NodeResourceTopology tells of them, by its annotation `node.koordinator.sh/cpu-topology`.

Source: Koordinator apis/extension/numa_aware.go.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from kube.dialects.documents.document import annotated
from kube.dialects.koordinator.topology import ANNOTATION_CPU_TOPOLOGY, KIND, NodeResourceTopology
from model.topology import Processor

_Number = Annotated[int, Meta(ge=0, le=65_535)]


class _Cpu(msgspec.Struct, frozen=True):
    id: _Number
    core: _Number = 0
    socket: _Number = 0
    node: _Number = 0

    @property
    def place(self) -> tuple[int, int, int]:
        return self.node, self.socket, self.core


class _CpuTopology(msgspec.Struct, frozen=True):
    detail: Annotated[list[_Cpu], Meta(max_length=65_536)] | None = None


def processors(source: NodeResourceTopology) -> tuple[Processor, ...]:
    """Every CPU once, by number; none where the annotation is missing. A core is its lowest CPU.

    Raises ConfigurationFault naming the object, the annotation and the field.
    """
    where = f"{KIND} {source.metadata.name}"
    told = annotated(source.metadata.annotations or {}, ANNOTATION_CPU_TOPOLOGY, _CpuTopology, where) or _CpuTopology()
    by_number = sorted({cpu.id: cpu for cpu in told.detail or ()}.items())
    lowest: dict[tuple[int, int, int], int] = {}
    return tuple(
        Processor(number, lowest.setdefault(cpu.place, number), cpu.socket, cpu.node) for number, cpu in by_number
    )
