"""A node stays within its share of the machine, however many there are and whatever it claims."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.core.observe.layout import CgroupDriver
from local.node.cgroups import Cgroups
from local.node.kernels import confine
from local.node.machine import cpus_of_machine
from local.node.ownership import this_process
from local.node.share import Claim, Share, share_of
from local.node.simkernel.table import ProcessTable
from local.node.simkernel.tree import SimulatedCgroups, make_root, simulated_layout
from model.topology import format_cpus

GIB = 1 << 30
CPUS = cpus_of_machine()


def confined(root: Path, share: Share) -> Mapping[str, str]:
    """What the top cgroup of the node then holds, in the form of cgroup v2."""
    make_root(root, format_cpus(CPUS))
    cgroups = SimulatedCgroups(simulated_layout(root, "t", CgroupDriver.CGROUPFS), ProcessTable())
    me = this_process()
    cgroups.create(f"{cgroups.layout.prefix}/{me.claim}")
    confine(cgroups, share, me)
    knobs = ("cpu.max", "cpu.weight", "cpuset.cpus", "memory.max")
    return {knob: (cgroups.read("cpu", cgroups.layout.prefix, knob) or "").strip() for knob in knobs}


@pytest.mark.parametrize(
    ("claim", "memory"), [(Claim(), 8 * GIB), (Claim("64", "256Gi"), 8 * GIB), (Claim("64", "3Gi"), 3 * GIB)]
)
def test_memory_is_what_is_there_or_less(tmp_path: Path, claim: Claim, memory: int) -> None:
    """A claim above the machine gives no more of it; the weight beside other things stays the kernel's."""
    held = confined(tmp_path, share_of(1, 1, CPUS, 8 * GIB, claim))
    assert (held["memory.max"], held["cpu.weight"], held["cpu.max"]) == (str(memory), "100", "max 100000")


def test_a_part_of_the_cpus_is_a_quota(tmp_path: Path) -> None:
    """Where nodes have no CPU of their own."""
    of = 2 * len(CPUS)
    held = confined(tmp_path, share_of(1, of, CPUS, 8 * GIB, Claim("64", "256Gi")))
    assert (held["cpu.max"], held["memory.max"]) == ("50000 100000", str(8 * GIB // of))


def test_a_claim_of_a_part_of_a_cpu_is_a_quota(tmp_path: Path) -> None:
    """And one CPU to run on."""
    held = confined(tmp_path, share_of(1, 1, CPUS, 8 * GIB, Claim("500m")))
    assert held["cpu.max"] == "50000 100000"


@pytest.mark.kernel
def test_this_machines_kernel(cgroups: Cgroups) -> None:
    """Takes it; pods below may still say more, as their manifests do."""
    if cgroups.layout.version != 1:
        pytest.skip("reads the files of cgroup v1")
    me, prefix, kubepods = this_process(), cgroups.layout.prefix, cgroups.layout.kubepods
    cgroups.create(f"{prefix}/{me.claim}")
    confine(cgroups, share_of(1, 2 * len(CPUS), CPUS, 8 * GIB, Claim("64", "256Gi")), me)
    assert cgroups.read("memory", prefix, "memory.limit_in_bytes") == f"{8 * GIB // (2 * len(CPUS))}\n"
    assert cgroups.read("cpu", prefix, "cpu.cfs_quota_us") == "-1\n"
    cgroups.create(kubepods)
    cgroups.write("cpu", kubepods, "cpu.cfs_quota_us", 100_000 * len(CPUS))
    cgroups.write("memory", kubepods, "memory.limit_in_bytes", 256 * GIB)
