"""Annotations of a Node about lending, by Koordinator's API, in base units.

Source: Koordinator apis/extension/{node_colocation,node_reservation,cpu_normalization,node_resource_amplification}.go.
"""

from __future__ import annotations

import msgspec

from model.resources import ResourceVector

LABEL_NORMALIZATION = "node.koordinator.sh/cpu-normalization-enabled"
"""Beats what documents say of CPU normalization."""


class NodeColocation(msgspec.Struct, frozen=True):
    """`reserved` is kept free of pods (cpu, memory; a count of reserved CPUs has replaced `cpu` already).

    `third_party` is the sum of batch resources that other schedulers have given away (priority koord-batch only), None
    where the Node does not speak of them. `normalization_ratio` is what the Node carries, None without one.
    `raw_allocatable` is what was allocatable before amplification, None on a node that is not amplified.
    `reserved_cpus` are kept free of pods by number; `system_cpus` belong to system-class pods alone (ascending).
    `paused`: the switch of the whole fleet says that nothing is lent.
    """

    reserved: ResourceVector = ResourceVector()
    third_party: ResourceVector | None = None
    normalization_ratio: float | None = None
    raw_allocatable: ResourceVector | None = None
    reserved_cpus: tuple[int, ...] = ()
    system_cpus: tuple[int, ...] = ()
    paused: bool = False
