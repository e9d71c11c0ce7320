"""Masks of CPUs, and the layout of a node by cores, NUMA nodes and sockets."""

from __future__ import annotations

import pytest

from model.cpubinding import CPUS_LIMIT, CpuLayout, cpus_in, layout_of, mask_of, mask_of_list
from model.topology import Processor, parse_cpus


@pytest.mark.parametrize(
    ("cpus", "mask"), [((), 0), ((0,), 1), ((0, 3), 0b1001), ((2, 2), 0b100), ((CPUS_LIMIT, 1), 0b10)]
)
def test_mask(cpus: tuple[int, ...], mask: int) -> None:
    """There and back; what no machine has is left out."""
    assert mask_of(cpus) == mask
    assert tuple(cpus_in(mask)) == tuple(sorted({cpu for cpu in cpus if cpu < CPUS_LIMIT}))


@pytest.mark.parametrize("text", ["", "0", "0-3,8", "5,3,3-4", "8191", "8190-8193", "8192-65535", "0-65535"])
def test_mask_of_a_list(text: str) -> None:
    """The same as of its CPUs, one by one."""
    assert mask_of_list(text) == mask_of(parse_cpus(text))


def test_layout() -> None:
    """Cores by their lowest CPU, NUMA nodes and sockets by number."""
    processors = [Processor(cpu, core, 0, node) for cpu, core, node in ((3, 1, 7), (2, 0, 5), (1, 1, 7), (0, 0, 5))]
    found = layout_of(processors)
    assert found == CpuLayout((0b0101, 0b1010), ((5, 0b0101), (7, 0b1010)), ((0, 0b1111),))
    assert found.threads == 2
    assert CpuLayout().threads == 1
