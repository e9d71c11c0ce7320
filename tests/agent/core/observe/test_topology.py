"""CPUs, NUMA nodes, zones and share pools."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from agent.core.observe.topology import (
    CpuPlace,
    NumaMemory,
    busy_ticks_by_cpu,
    hyper_threading,
    kubelet_cpus,
    model_and_vendor,
    numa_memory,
    processors,
    share_pools,
    turbo,
    zones,
)
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.qos import QoSClass
from model.resources import CPU, MEMORY, ResourceVector
from model.topology import (
    CpuBasics,
    CpuInfo,
    KubeletCpus,
    NumaNode,
    PodCpus,
    Processor,
    SharePool,
    SharePools,
)
from tests.pods import make_pod

GIB = 1 << 30
# Two sockets of two cores of two threads; the siblings of CPU n are n and n + 4; one NUMA node a socket.
PLACES = {cpu: CpuPlace(socket=cpu % 4 // 2, core=cpu % 2) for cpu in range(8)}
NODES = {0: (0, 1, 4, 5), 1: (2, 3, 6, 7)}
INFO = CpuInfo(
    CpuBasics(), processors(range(8), PLACES, NODES), (NumaNode(0, NODES[0], 8 * GIB), NumaNode(1, NODES[1], 4 * GIB))
)


def pod(name: str = "p", **fields: Any) -> Pod:
    return make_pod("ns", name, f"uid-{name}", **{"phase": PodPhase.RUNNING, **fields})


def test_processors_of_a_large_machine() -> None:
    """A core is named after its lowest CPU, also where two sockets count their cores alike."""
    assert INFO.processors == (
        Processor(0, core=0, socket=0, node=0),
        Processor(1, core=1, socket=0, node=0),
        Processor(2, core=2, socket=1, node=1),
        Processor(3, core=3, socket=1, node=1),
        Processor(4, core=0, socket=0, node=0),
        Processor(5, core=1, socket=0, node=0),
        Processor(6, core=2, socket=1, node=1),
        Processor(7, core=3, socket=1, node=1),
    )
    assert hyper_threading(INFO.processors)


def test_processors_without_topology() -> None:
    """One socket, the lowest node, every CPU a core of its own; gaps of offline CPUs stay."""
    assert processors((2, 0), {}, {}) == (Processor(0, 0, 0, 0), Processor(2, 2, 0, 0))
    assert [p.node for p in processors((0, 1), {}, {3: (), 5: (1,)})] == [3, 5]
    assert not hyper_threading(processors((0, 2), {}, {}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            b"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R): Gold\n\nprocessor\t: 1\nmodel name\t: x\n",
            ("Intel(R) Xeon(R): Gold", "GenuineIntel"),
        ),
        (b"processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\n", ("", "")),
        (b"", ("", "")),
    ],
)
def test_model_and_vendor(text: bytes, expected: tuple[str, str]) -> None:
    """Of the first CPU; empty where the architecture has no such line."""
    assert model_and_vendor(text) == expected


@pytest.mark.parametrize(
    ("no_turbo", "boost", "expected"),
    [(b"0\n", None, True), (b"1\n", b"1\n", False), (None, b"1\n", True), (None, b"0\n", False), (None, None, False)],
)
def test_turbo(no_turbo: bytes | None, boost: bytes | None, expected: bool) -> None:
    """Intel's switch is the wrong way round and goes first; unknown is off."""
    assert turbo(no_turbo, boost) is expected


MEMINFO = b"""Node 1 MemTotal:       1000 kB
Node 1 MemFree:         300 kB
Node 1 Active:          999 kB
Node 1 Active(anon):    999 kB
Node 1 Active(file):    100 kB
Node 1 Inactive(file):   50 kB
Node 1 SReclaimable:     25 kB
Node 1 HugePages_Total:     0
"""


def test_numa_memory() -> None:
    """1000 - (300 + 100 + 50 + 25) = 525 KiB used; /proc/meminfo has the same lines without the node."""
    assert numa_memory(MEMINFO) == NumaMemory(1000 * 1024, 525 * 1024)
    assert numa_memory(MEMINFO.replace(b"Node 1 ", b"")) == NumaMemory(1000 * 1024, 525 * 1024)
    assert numa_memory(MEMINFO.replace(b" 300 kB", b" 5000 kB")).used_bytes == 0


def test_numa_memory_that_was_given_up_counts_as_used() -> None:
    """Among the file pages stand 30 KiB that were given up (MADV_FREE), of which nobody tells whether they are written."""
    lists = b"".join(
        b"Node 1 %s: %d kB\n" % row
        for row in (
            (b"AnonPages", 400),
            (b"Shmem", 5),
            (b"Active(anon)", 70),
            (b"Inactive(anon)", 300),
            (b"Unevictable", 5),
            (b"FilePages", 132),
            (b"SwapCached", 7),
        )
    )
    assert numa_memory(MEMINFO + lists).used_bytes == (525 + 30) * 1024


def test_numa_memory_names_what_is_missing() -> None:
    """Never a number from half a file."""
    with pytest.raises(ValueError, match=r"MemFree, SReclaimable missing in 'Node 1 MemTotal"):
        numa_memory(MEMINFO.replace(b"MemFree", b"X").replace(b"SReclaimable", b"Y"))


def test_busy_ticks_by_cpu() -> None:
    """user + nice + system + irq + softirq + steal: 1+2+3+6+7+8 and 10+20+30+60+70+80; the sum line and others are not CPUs."""
    text = b"cpu  99 99 99 99 99 99 99 0 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu12 10 20 30 40 50 60 70 80 0 0\nintr 1 2\n"
    assert busy_ticks_by_cpu(text) == {0: 27, 12: 270}
    for broken in (b"cpu0 1 2\n", b"cpu0 1 2 3 x 5 6 7 8\n"):
        with pytest.raises(ValueError, match=r"too few numbers|is not a whole number"):
            busy_ticks_by_cpu(broken)


def state(entries: Any, policy: str = "static") -> bytes:
    return json.dumps({"policyName": policy, "defaultCpuSet": "0", "entries": entries, "checksum": 14413152}).encode()


def test_kubelet_cpus() -> None:
    """Containers of a pod are joined; whom we put on CPUs of the scheduler, and what has none, is left out.

    An LS or BE label moves nobody from the kubelet's CPUs.
    """
    pods = [
        pod("plain"),
        pod("static", cgroup_uid="hash"),
        pod("ls", qos_label=QoSClass.LS),
        pod("be", qos_label=QoSClass.BE),
        pod("named", cpuset="1", qos_label=QoSClass.LS),
        pod("lse", cpuset="1", qos_label=QoSClass.LSE),
        pod("lsr", cpuset="1", qos_label=QoSClass.LSR),
        pod("whole", qos_label=QoSClass.LSE),
    ]
    entries = {
        "uid-plain": {"a": "2-3", "b": "6"},
        "hash": {"a": "1"},
        "unlisted": {"a": "7"},
        "uid-none": {"a": ""},
        **{f"uid-{name}": {"a": "4"} for name in ("ls", "be", "named", "lse", "lsr", "whole")},
    }
    assert kubelet_cpus(state(entries), pods) == KubeletCpus(
        "static",
        (
            PodCpus("hash", (1,), "ns", "static"),
            *(PodCpus(f"uid-{name}", (4,), "ns", name) for name in ("be", "ls", "named")),
            PodCpus("uid-plain", (2, 3, 6), "ns", "plain"),
            PodCpus("uid-whole", (4,), "ns", "whole"),
            PodCpus("unlisted", (7,)),
        ),
    )
    assert kubelet_cpus(b'{"policyName":"none","defaultCpuSet":"","checksum":1353318690}', pods) == KubeletCpus("none")


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[]", b'{"policyName": 5}', b"\xff", b"[" * 100_000, state({"u": {"c": "x"}})]
)
def test_a_state_file_that_is_none(text: bytes) -> None:
    """One error, never half the pods."""
    with pytest.raises(ValueError, match=r"not a cpu_manager_state|is not a CPU list"):
        kubelet_cpus(text, [])


ALL = ((0, 0, (0, 1, 4, 5)), (1, 1, (2, 3, 6, 7)))
POOLS: dict[str, tuple[dict[str, Any], tuple[Any, ...], tuple[Any, ...]]] = {
    "nobody has CPUs": ({}, ALL, ALL),
    "LSR: best effort may share": (
        {"pods": [pod(cpuset="0,4", qos_label=QoSClass.LSR)]},
        ((0, 0, (1, 5)), ALL[1]),
        ALL,
    ),
    "LSE: nobody may": (
        {"pods": [pod(cpuset="0,4", qos_label=QoSClass.LSE)]},
        ((0, 0, (1, 5)), ALL[1]),
        ((0, 0, (1, 5)), ALL[1]),
    ),
    "a pod that ended gives them back": (
        {"pods": [pod(cpuset="0,4", qos_label=QoSClass.LSE, phase=PodPhase.SUCCEEDED)]},
        ALL,
        ALL,
    ),
    "reserved or exclusive to the system": ({"unusable": (0, 1)}, ((0, 0, (4, 5)), ALL[1]), ((0, 0, (4, 5)), ALL[1])),
    "given away by the kubelet": (
        {"kubelet": KubeletCpus("static", (PodCpus("u", (2, 6)),))},
        (ALL[0], (1, 1, (3, 7))),
        (ALL[0], (1, 1, (3, 7))),
    ),
    "isolated": (
        {"info": msgspec.structs.replace(INFO, isolated=(0, 1))},
        ((0, 0, (4, 5)), ALL[1]),
        ((0, 0, (4, 5)), ALL[1]),
    ),
    "a node without any left has no pool": ({"unusable": (0, 1, 4, 5)}, (ALL[1],), (ALL[1],)),
}


@pytest.mark.parametrize(("case", "online", "best_effort"), POOLS.values(), ids=POOLS.keys())
def test_share_pools(case: dict[str, Any], online: tuple[Any, ...], best_effort: tuple[Any, ...]) -> None:
    """(socket, node, CPUs) left for LS pods, and for best effort."""
    found = share_pools(**{"info": INFO, "pods": [], "kubelet": None, "unusable": (), **case})
    assert found == SharePools(
        tuple(SharePool(*pool) for pool in online), tuple(SharePool(*pool) for pool in best_effort)
    )


def test_a_cpuset_that_cannot_be_read_names_its_pod() -> None:
    """A CPU that may be exclusive must not be shared by mistake."""
    with pytest.raises(ValueError, match=r"^Pod ns/p: 'zero' is not a CPU list"):
        share_pools(INFO, [pod(cpuset="zero")], None, ())


def test_zones() -> None:
    """Capacity by node. Reserved 1001 milli and 3 GiB: each of two zones bears 501 milli (rounded up) and 1.5 GiB."""
    full = ResourceVector({CPU: 4000, MEMORY: 8 * GIB}), ResourceVector({CPU: 4000, MEMORY: 4 * GIB})
    assert [(z.id, z.name, z.capacity, z.allocatable) for z in zones(INFO)] == [
        (0, "node-0", full[0], full[0]),
        (1, "node-1", full[1], full[1]),
    ]
    reserved = zones(INFO, ResourceVector({CPU: 1001, MEMORY: 3 * GIB}))
    assert [z.capacity for z in reserved] == list(full)
    assert [z.allocatable.amounts for z in reserved] == [
        {CPU: 3499, MEMORY: 6 * GIB + GIB // 2},
        {CPU: 3499, MEMORY: 2 * GIB + GIB // 2},
    ]
    assert zones(INFO, ResourceVector({CPU: 99_000}))[0].allocatable[CPU] == 0


def test_memory_without_cpus_is_no_zone() -> None:
    """Nothing can run there; the others bear its share of what is reserved."""
    info = CpuInfo(CpuBasics(), INFO.processors, (*INFO.numa[:1], NumaNode(9, (), 16 * GIB)))
    (only,) = zones(info, ResourceVector({CPU: 1000}))
    assert (only.name, only.allocatable[CPU]) == ("node-0", 3000)
