"""The agent's own readers take what a process node shows for a machine: its view, its cgroups, its counters."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

import model.qos
from agent.core.observe import parse
from agent.core.observe.files import V2_FILES, FilePart
from agent.core.observe.layout import CgroupDriver as AgentDriver
from agent.core.observe.layout import Layout as AgentLayout
from agent.core.observe.layout import driver_of
from agent.core.observe.observation import NodeSample
from agent.edge.discovery import find_layout
from agent.edge.host import HostReader
from agent.edge.topology import TopologyReader
from cgroup_fixtures.names import Place, container_path
from embedded.cgroups.drivers import CgroupDriver
from embedded.cgroups.knobs import Use
from embedded.cgroups.layout import Layout
from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.kernels.partial_view import Accounting, View, read_machine_use
from embedded.node.machine.facts import cpus_of_machine
from embedded.node.machine.share import Claim, share_of
from embedded.simkernel.accounts import Account
from embedded.simkernel.process_table import ProcessTable
from embedded.simkernel.tree import SimulatedCgroups, make_root, simulated_layout

GIB = 1 << 30
FULL = Account(
    cpu_us=5_000_000, periods=7, throttled=3, throttled_us=9, memory_bytes=4096, processes=2, high=1, oom_kill=1
)


def test_the_agents_own_readers_understand_it(tmp_path: Path) -> None:
    """CPU count as claimed, memory as claimed, and only the node's own CPUs to place work on."""
    mine = share_of(1, 1, cpus_of_machine(), 8 * GIB, Claim("5", "3Gi"))
    view = View(tmp_path, mine)
    view.make()
    machine, stat = read_machine_use({"n": Use(0, 0, 0)})
    view.write(Accounting(mine, "n").part(machine), stat)
    host, topology = HostReader(view.proc), TopologyReader(view.sys, view.proc)
    try:
        sample = host.sample()
        assert isinstance(sample, NodeSample)
        assert sample.cpus == 5
        # Of the machine: how many processes there may be, and whether it reclaims memory.
        assert host.pids() is not None and host.reclaimed_pages() is not None
        assert tuple(processor.cpu for processor in topology.read().processors) == mine.cpus
        assert parse.meminfo((view.proc / "meminfo").read_bytes())[0] == 3 * GIB
        assert topology.numa(topology.read())
    finally:
        host.close()
        topology.close()
        view.close()


@pytest.mark.parametrize("qos", KubernetesQoS)
def test_names_are_container_runtimes(qos: KubernetesQoS) -> None:
    """As recorded scenarios have them from containerd under systemd."""
    layout = Layout(PurePosixPath("/sys/fs/cgroup"), "t1-2", driver=CgroupDriver.SYSTEMD)
    named = Place("/sublet_t1_2.slice/sublet_t1_2-kubepods.slice", AgentDriver.SYSTEMD, "containerd")
    assert layout.container(qos, "a-b", "c1") == container_path(named, layout.pod(qos, "a-b"), "c1")


@pytest.mark.parametrize("driver", CgroupDriver)
@pytest.mark.parametrize("qos", KubernetesQoS)
def test_the_agent_finds_it(driver: CgroupDriver, qos: KubernetesQoS) -> None:
    """Class, pod and container, from the name of the kubepods directory alone."""
    layout = Layout(PurePosixPath("/sys/fs/cgroup"), "t1-2", version=2, driver=driver)
    seen = AgentLayout(layout.kubepods, 2, driver_of(layout.kubepods))
    of = model.qos.KubernetesQoS(qos)
    assert seen.driver == driver
    assert (seen.class_root(of), seen.pod(of, "a-b")) == (layout.qos(qos), layout.pod(qos, "a-b"))
    assert seen.container_id_of(layout.container(qos, "a-b", "c1").rsplit("/", 1)[-1]) == "c1"


@pytest.mark.parametrize("driver", CgroupDriver)
def test_the_agent_takes_it_for_cgroup_v2(tmp_path: Path, driver: CgroupDriver) -> None:
    """By nothing but what is there."""
    make_root(tmp_path, "0-1")
    cgroups = SimulatedCgroups(simulated_layout(tmp_path, "t", driver), ProcessTable())
    cgroups.create(f"{cgroups.layout.kubepods}/besteffort")
    layout = find_layout(tmp_path, cgroups.layout.kubepods)
    assert (layout.version, layout.driver) == (2, driver)


def test_every_file_parses() -> None:
    """By the table the agent reads cgroup v2 with."""
    texts = FULL.texts()
    read = {kind.part: kind.parse(texts[kind.file].encode()) for kind in V2_FILES if kind.file in texts}
    assert {FilePart.CPU, FilePart.LEVEL, FilePart.MEMORY, FilePart.OOM} <= read.keys()
    cpu_ns, throttling = read[FilePart.CPU]
    assert cpu_ns == 5_000_000_000 and (throttling.throttled, throttling.throttled_us) == (3, 9)
    assert read[FilePart.MEMORY] == (4096, 0) and read[FilePart.OOM].oom_kill == 1
