"""Machines with CPUs: so many NUMA nodes of so many cores, numbered as Linux numbers hyper-threads."""

from __future__ import annotations

from model.cpubinding import CpuLayout, layout_of, mask_of
from model.topology import Processor, parse_cpus


def machine(nodes: int = 2, cores: int = 4, threads: int = 2, *, sockets: int = 0) -> CpuLayout:
    """`cores` a NUMA node; threads of a core are as far from one another as there are cores, as Linux counts them."""
    total, sockets = nodes * cores, sockets or nodes
    return layout_of(
        Processor(core + thread * total, core, core // cores * sockets // nodes, core // cores)
        for thread in range(threads)
        for core in range(total)
    )


def cpus(text: str) -> int:
    """The mask of a CPU list."""
    return mask_of(parse_cpus(text))
