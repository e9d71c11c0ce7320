"""CPU topology of this very machine, and of made ones."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from agent.core.observe.observation import Missing, NumaSample
from agent.edge.topology import TopologyReader, kubelet_cpus
from model.fault import KernelFault
from model.topology import CpuBasics, CpuInfo, KubeletCpus, KubeletPolicy, NumaNode, PodCpus, Processor

MEMINFO = "{0}MemTotal: 1000 kB\n{0}MemFree: 300 kB\n{0}Active(file): 100 kB\n{0}Inactive(file): 50 kB\n{0}SReclaimable: 25 kB\n"
STAT = "cpu  0 0 0 0 0 0 0\ncpu0 1 0 0 9 0 0 0\ncpu1 2 0 0 9 0 0 0\ncpu2 4 0 0 9 0 0 0\ncpu3 8 0 0 9 0 0 0\nintr 1\n"
NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Two sockets, one core of two threads each, one NUMA node a socket; Intel with turbo and resctrl."""
    cpus = {
        f"sys/devices/system/cpu/cpu{cpu}/topology/{file}": f"{number}\n"
        for cpu in range(4)
        for file, number in (("core_id", 0), ("physical_package_id", cpu % 2))
    }
    nodes = {
        f"sys/devices/system/node/node{node}/{file}": text
        for node, list_ in ((0, "0,2\n"), (1, "1,3\n"))
        for file, text in (("cpulist", list_), ("meminfo", MEMINFO.format(f"Node {node} ")))
    }
    others = {
        "sys/devices/system/cpu/online": "0-3\n",
        "sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
        "sys/fs/resctrl/info/L3/cbm_mask": "fff\n",
        "sys/devices/system/node/node_x/cpulist": "9\n",
        "proc/cpuinfo": "processor : 0\nvendor_id : GenuineIntel\nmodel name : Xeon\n",
        "proc/stat": STAT,
        "proc/meminfo": MEMINFO.format(""),
    }
    write(tmp_path, **{name.replace("/", "__"): text for name, text in {**cpus, **nodes, **others}.items()})
    return tmp_path


def reader(root: Path) -> TopologyReader:
    return TopologyReader(root / "sys", root / "proc")


def test_a_made_machine(machine: Path) -> None:
    """Sockets, cores, nodes, memory and what the CPUs are."""
    info = reader(machine).read()
    assert info.basics == CpuBasics("Xeon", "GenuineIntel", hyper_threading=True, turbo=True, l3_mask="fff")
    assert info.processors == (
        Processor(0, 0, 0, 0),
        Processor(1, 1, 1, 1),
        Processor(2, 0, 0, 0),
        Processor(3, 1, 1, 1),
    )
    assert info.numa == (NumaNode(0, (0, 2), 1_024_000), NumaNode(1, (1, 3), 1_024_000))


def test_isolated_cpus_are_no_shared_ones(machine: Path) -> None:
    """They are in the machine, and work is spread over the others alone."""
    (machine / "sys/devices/system/cpu/isolated").write_text("1,3\n")
    info = reader(machine).read()
    assert info.isolated == (1, 3) and len(info.processors) == 4
    assert [p.cpu for p in info.shared] == [0, 2]


def test_an_offline_cpu_is_no_cpu(machine: Path) -> None:
    """Whatever its topology folder says; its node keeps the others."""
    (machine / "sys/devices/system/cpu/online").write_text("0-2\n")
    info = reader(machine).read()
    assert [p.cpu for p in info.processors] == [0, 1, 2] and info.numa[1].cpus == (1,)
    assert info.basics.hyper_threading


def test_a_machine_that_shows_nothing(tmp_path: Path) -> None:
    """As many CPUs as the kernel schedules us on, one socket, one node, no name; never an error."""
    info = reader(tmp_path).read()
    count = os.cpu_count() or 1
    assert info.processors == tuple(Processor(cpu, cpu, 0, 0) for cpu in range(count))
    assert info.numa == (NumaNode(0, tuple(range(count)), 0),) and info.basics == CpuBasics()
    assert reader(tmp_path).numa(info) == ()


def test_a_shortage_of_descriptors_keeps_the_last(
    machine: Path, starved: Callable[[], AbstractContextManager[None]]
) -> None:
    """Two sockets do not become one because no file can be opened; without a last one it is one clear line."""
    measured = reader(machine)
    info = measured.read()
    with starved():
        assert measured.read() is info
        with pytest.raises(KernelFault, match="cannot be read: Too many open files"):
            reader(machine).read()
    (machine / "sys/devices/system/cpu/online").write_text("0-2\n")
    assert len(measured.read().processors) == 3


def test_unknown_and_garbage_numbers(machine: Path) -> None:
    """-1 and text that is none count as absent; the rest stays."""
    topology = machine / "sys/devices/system/cpu"
    for cpu in (0, 2):
        (topology / f"cpu{cpu}/topology/core_id").write_text("-1\n")
    (topology / "cpu1/topology/physical_package_id").write_text("-1\n")
    (topology / "cpu3/topology/core_id").write_text("many\n")
    (machine / "sys/devices/system/node/node1/cpulist").write_text("all\n")
    info = reader(machine).read()
    assert info.processors == (
        Processor(0, 0, 0, 0),
        Processor(1, 1, 0, 0),
        Processor(2, 2, 0, 0),
        Processor(3, 3, 0, 0),
    )


def test_numa_samples(machine: Path) -> None:
    """CPU 0 and 2: 1 + 4 ticks, CPU 1 and 3: 2 + 8; 525 KiB in use each; the next reading sees what grew."""
    measured = reader(machine)
    info = measured.read()
    assert measured.numa(info) == (
        NumaSample(0, 5 * NS_PER_TICK, 525 * 1024),
        NumaSample(1, 10 * NS_PER_TICK, 525 * 1024),
    )
    (machine / "proc/stat").write_text(STAT.replace("cpu2 4", "cpu2 5"))
    assert measured.numa(info)[0].cpu_ns == 6 * NS_PER_TICK
    measured.close()
    assert measured.numa(info)[0].cpu_ns == 6 * NS_PER_TICK
    measured.close()


def test_a_node_that_cannot_be_read_is_left_out(machine: Path) -> None:
    """Garbage in its meminfo, or one of its CPUs gone offline; the others stay, and it comes back."""
    measured = reader(machine)
    info = measured.read()
    meminfo = machine / "sys/devices/system/node/node0/meminfo"
    meminfo.write_text("nothing\n")
    assert [s.numa_id for s in measured.numa(info)] == [1]
    meminfo.write_text(MEMINFO.format("Node 0 "))
    assert [s.numa_id for s in measured.numa(info)] == [0, 1]
    (machine / "proc/stat").write_text(STAT.replace("cpu3 8 0 0 9 0 0 0\n", ""))
    assert [s.numa_id for s in measured.numa(info)] == [0]
    measured.close()


def test_this_machine() -> None:
    """Every CPU is in a node; CPU time grows while we work, memory is plausible."""
    measured = TopologyReader(Path("/sys"), Path("/proc"))
    info = measured.read()
    assert sorted(cpu for node in info.numa for cpu in node.cpus) == [p.cpu for p in info.processors]
    before = measured.numa(info)
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    after = measured.numa(info)
    measured.close()
    assert sum(s.cpu_ns for s in after) >= sum(s.cpu_ns for s in before) + 50_000_000
    assert all(s.memory_used_bytes > 0 for s in after)


def test_the_kubelets_state_file(tmp_path: Path) -> None:
    """None: no policy; unreadable: a value that says why."""
    path = tmp_path / "cpu_manager_state"
    assert kubelet_cpus(path, []) == KubeletCpus("none")
    path.write_text('{"policyName":"static","defaultCpuSet":"0-1"}')
    assert kubelet_cpus(path, []) == KubeletCpus("static")
    path.write_text("{")
    found = kubelet_cpus(path, [])
    assert isinstance(found, Missing) and "not a cpu_manager_state" in found.detail and found.path == str(path)


STATE = '{"policyName":"%s","defaultCpuSet":"0","entries":{"u":{"main":"%s"}}}'
KUBELET = {
    "CPUs of its own": (STATE % ("static", "2-3"), "", KubeletPolicy.STATIC, [0, 1]),
    "none yet": ('{"policyName":"static","defaultCpuSet":"0-3"}', "", KubeletPolicy.STATIC, [0, 1, 2, 3]),
    "another policy": ('{"policyName":"none","defaultCpuSet":""}', "", KubeletPolicy.NONE, [0, 1, 2, 3]),
    "no file": (None, "", KubeletPolicy.NONE, [0, 1, 2, 3]),
    "isolated ones, which count as used": (STATE % ("static", "2-3"), "2-3", KubeletPolicy.NONE, [0, 1]),
    "isolated ones and others": (STATE % ("static", "1-2"), "2-3", KubeletPolicy.STATIC, [0]),
    "a file that says nothing": ("{", "", KubeletPolicy.STATIC, [0, 1, 2, 3]),
}


@pytest.mark.parametrize(("state", "isolated", "policy", "shared"), KUBELET.values(), ids=KUBELET)
def test_what_the_kubelet_gave_away(
    machine: Path, state: str | None, isolated: str, policy: KubeletPolicy, shared: list[int]
) -> None:
    """Best effort is spread over the rest; what cannot be told lends least, and stays as it was later."""
    path = machine / "cpu_manager_state"
    (machine / "sys/devices/system/cpu/isolated").write_text(f"{isolated}\n")
    if state is not None:
        path.write_text(state)
    measured = TopologyReader(machine / "sys", machine / "proc", path)
    info = measured.read()
    assert (info.policy, [p.cpu for p in info.shared]) == (policy, shared)
    path.write_text("}")
    assert measured.read() == info


def test_what_the_kubelet_gives_away_is_heard_of_soon(machine: Path) -> None:
    """Where its file was written since, and only then; one that says nothing is read again until it does."""
    path, wrote = machine / "cpu_manager_state", machine / "new"
    measured = TopologyReader(machine / "sys", machine / "proc", path)
    assert measured.refreshed() is None, "nothing is known before the first reading"
    measured.read()
    assert measured.refreshed() is None

    def kubelet(text: str) -> CpuInfo | None:
        wrote.write_text(text)
        wrote.rename(path)
        return measured.refreshed()

    info = kubelet(STATE % ("static", "2-3"))
    assert info is not None and info.given_away == (PodCpus("u", (2, 3)),)
    assert (info.policy, [p.cpu for p in info.shared]) == (KubeletPolicy.STATIC, [0, 1])
    assert measured.refreshed() is None
    assert kubelet("{") == info and measured.refreshed() == info
    info = kubelet(STATE % ("static", "1"))
    assert info is not None and [p.cpu for p in info.shared] == [0, 2, 3]
    path.unlink()
    assert measured.refreshed() == measured.read() == info, (
        "the kubelet writes another; until then its pods keep theirs"
    )
    assert measured.refreshed() is None
    assert (other := kubelet('{"policyName":"none"}')) is not None and other.policy is KubeletPolicy.NONE
    path.unlink()
    assert (gone := measured.refreshed()) is not None and gone.policy is KubeletPolicy.NONE
