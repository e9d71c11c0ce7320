"""Recording a node, from a tree that looks like one."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.core.observe.observation import NodeSample
from agent.core.observe.recording import Scenario
from agent.edge.host import HostReader
from agent.record import NodeFiles, RecordedFolders, RecordPace, record, started
from cgroup_fixtures.live import MOUNT, LiveTree
from cgroup_fixtures.scenarios import Playback, open_scenario
from model.fault import ConfigurationFault, KernelFault


class Clock:
    """Time that passes by sleeping alone; `then` maps the number of a pause to what happens in it."""

    def __init__(self, then: dict[int, Callable[[], None]] | None = None) -> None:
        self.now = 100.0
        self.pauses = 0
        self.then = then or {}

    def read(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.then.get(self.pauses, lambda: None)()
        self.pauses += 1


def places(root: Path, kubepods: str = "/kubepods") -> RecordedFolders:
    return RecordedFolders(root / "sys/fs/cgroup", root / "proc", root / "sys", kubepods)


def recorded(root: Path, kubepods: str, clock: Clock, into: Path, frames: int = 3) -> Scenario:
    node = NodeFiles(places(root, kubepods))
    pace = RecordPace(frames, 0.5, clock.read, clock.sleep)
    return record(node, started(node, kubepods, "n", "a test"), pace, into)


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A v1 node with three pods."""
    root = tmp_path / "node"
    open_scenario("v1_cgroupfs_docker", tmp_path).lay(0, root)
    for name, text in (("cpuinfo", "model name : x\n"), ("sys/kernel/osrelease", "6.1.0\n")):
        (root / "proc" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "proc" / name).write_text(text)
    (root / "sys/devices/system/cpu/cpu0/topology").mkdir(parents=True)
    (root / "sys/devices/system/cpu/cpu0/topology/core_id").write_text("0\n")
    return root


@pytest.mark.parametrize("name", ["v1_systemd_docker", "v2_systemd_crio", "v2_nested_root_cgroupfs", "v1_pod_vanishes"])
def test_what_was_recorded_plays_back(name: str, tmp_path: Path) -> None:
    """A recording of a scenario being played is that scenario again: both versions, both drivers, a pod that goes."""
    played, root = open_scenario(name, tmp_path / "made"), tmp_path / "node"
    played.lay(0, root)
    clock = Clock({number: lambda number=number: played.lay(number, root) for number in range(1, 5)})  # type: ignore[misc]
    done = recorded(root, played.scenario.layout.root, clock, tmp_path / "again", frames=5)
    again = Playback(tmp_path / "again")
    assert again.scenario == done and done.removed == played.scenario.removed
    assert (done.layout.version, done.layout.driver) == (played.scenario.layout.version, played.scenario.layout.driver)
    for number in range(5):
        assert files(tmp_path / "again" / f"{number:02d}") == files(played.folder / f"{number:02d}")


def test_a_later_frame_holds_only_what_changed(node: Path, tmp_path: Path) -> None:
    """A changed counter, a pod that goes, one that comes; the times are the clock's, from 0."""
    usage = node / "sys/fs/cgroup/cpuacct/kubepods/cpuacct.usage"
    pod = node / "sys/fs/cgroup/cpuacct/kubepods/besteffort"

    def change() -> None:
        usage.write_text("7\n")

    def replace() -> None:
        shutil.rmtree(pod)
        (pod.parent / "podnew").mkdir()
        (pod.parent / "podnew/cpuacct.usage").write_text("1\n")

    done = recorded(node, "/kubepods", Clock({1: change, 2: replace}), tmp_path / "out")
    below = "sys/fs/cgroup/cpuacct/kubepods"
    assert done.frames_seconds == (0.0, 0.5, 1.0)
    assert files(tmp_path / "out/01") == {f"{below}/cpuacct.usage": b"7\n"}
    assert files(tmp_path / "out/02") == {f"{below}/podnew/cpuacct.usage": b"1\n"}
    assert dict(done.removed) == {"02": (f"{below}/besteffort",)}


def test_what_never_changes_is_in_frame_00_alone(node: Path, tmp_path: Path) -> None:
    """CPU facts; and they are not taken for removed later."""
    done = recorded(node, "/kubepods", Clock(), tmp_path / "out", frames=2)
    first = files(tmp_path / "out/00")
    assert first["proc/cpuinfo"] == b"model name : x\n"
    assert first["sys/devices/system/cpu/cpu0/topology/core_id"] == b"0\n"
    assert files(tmp_path / "out/01") == {} and not done.removed
    assert done.kernel == "6.1.0" and (done.node.cpu_millis, done.node.memory_bytes) == (4000, 8 << 30)


def test_what_the_host_reader_sees_is_recorded(node: Path, tmp_path: Path) -> None:
    """The same samples from the copy: the CPUs that could be there, and time that no CPU's line accounts for."""
    (node / "sys/devices/system/cpu/present").write_text("0-7\n")
    uptime(node, 1000)
    reader = HostReader(node / "proc", sys=node / "sys")
    before = reader.sample()
    into = tmp_path / "out"
    recorded(node, "/kubepods", Clock({1: lambda: uptime(node, 1020)}), into, frames=2)
    after = reader.sample()
    assert isinstance(before, NodeSample) and isinstance(after, NodeSample)
    assert after.present_cpus == 8 and after.cpu_ns > before.cpu_ns
    again, copy = Playback(into), tmp_path / "copy"
    again.lay(0, copy)
    reader = HostReader(copy / "proc", sys=copy / "sys")
    assert reader.sample() == before
    again.lay(1, copy)
    assert reader.sample() == after


def uptime(node: Path, seconds: int) -> None:
    (node / "proc/uptime").write_text(f"{seconds}.00 0.00\n")


def test_only_listed_files_are_copied(node: Path, tmp_path: Path) -> None:
    """Nothing of a process, and nothing deeper than a container."""
    container = next((node / "sys/fs/cgroup/cpuacct/kubepods/burstable").glob("pod*/*/"))
    (container / "cgroup.procs").write_text("1\n")
    (container / "inner").mkdir()
    (container / "inner/cpuacct.usage").write_text("1\n")
    (node / "proc/1").mkdir()
    (node / "proc/1/environ").write_text("SECRET=1")
    recorded(node, "/kubepods", Clock(), tmp_path / "out", frames=1)
    seen = files(tmp_path / "out/00")
    assert not [path for path in seen if "inner" in path or path.endswith(("cgroup.procs", "environ"))]
    assert any(container.name in path for path in seen)


def test_an_interrupted_recording_is_whole_as_far_as_it_goes(node: Path, tmp_path: Path) -> None:
    """scenario.toml tells of the frames there are."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recorded(node, "/kubepods", Clock({2: interrupt}), tmp_path / "out")
    assert Playback(tmp_path / "out").scenario.frames_seconds == (0.0, 0.5)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["00", "01", "scenario.toml"]


def test_no_kubepods_is_a_fault_that_names_the_directory(node: Path) -> None:
    """And says what to give."""
    with pytest.raises(KernelFault, match=r"cpu/elsewhere: does not exist \(is kubelet running here\?.*--kubepods"):
        NodeFiles(places(node, "/elsewhere"))


def test_an_unreadable_proc_is_a_fault(node: Path) -> None:
    """A machine's size is never guessed."""
    (node / "proc/meminfo").unlink()
    with pytest.raises(KernelFault, match="neither CPUs nor memory"):
        started(NodeFiles(places(node)), "/kubepods", "n", "")


def test_a_directory_that_cannot_be_written_is_a_fault(node: Path, tmp_path: Path) -> None:
    """The line names it."""
    (tmp_path / "out").write_text("a file")
    with pytest.raises(ConfigurationFault, match=r"out.*: Not a directory"):
        recorded(node, "/kubepods", Clock(), tmp_path / "out")


@pytest.mark.kernel
@pytest.mark.skipif(
    os.geteuid() != 0 or not os.access(MOUNT / "cpu" / "cpu.shares", os.W_OK),
    reason="needs root and writable cgroup v1; run as root on a v1 host",
)
def test_real_cgroup_v1(tmp_path: Path) -> None:
    """A busy container's counters move, and the one that is removed while recording is named."""
    tree = LiveTree(f"sublet-test-{secrets.token_hex(4)}")
    busy, idle = (f"/{tree.top}/kubepods/{kind}/podx/{kind}" for kind in ("besteffort", "burstable"))
    try:
        tree.make(busy)
        tree.make(idle)
        tree.run(busy, "while True: pass")
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            time.sleep(seconds)
            pauses.append(seconds)
            if len(pauses) == 2:
                tree.folder(idle, "memory").rmdir()

        node = NodeFiles(RecordedFolders(kubepods=f"/{tree.top}/kubepods"))
        scenario = started(node, f"/{tree.top}/kubepods", "n", "")
        done = record(node, scenario, RecordPace(2, 0.3, time.monotonic, pause), tmp_path / "out")
    finally:
        tree.remove()
    assert done.layout.version == 1
    assert dict(done.removed) == {"01": (f"sys/fs/cgroup/memory{idle}",)}
    usage = [tmp_path / f"out/{frame}/sys/fs/cgroup/cpuacct{busy}/cpuacct.usage" for frame in ("00", "01")]
    assert int(usage[0].read_text()) < int(usage[1].read_text())


def test_waiting_of_the_node_s_services_is_copied(node: Path, tmp_path: Path) -> None:
    """It lies beside the pods' cgroups."""
    pressure = node / "sys/fs/cgroup/unified/system.slice/cpu.pressure"
    pressure.parent.mkdir(parents=True)
    pressure.write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=9\n")
    recorded(node, "/kubepods", Clock(), tmp_path / "copy", frames=1)
    assert (tmp_path / "copy/00/sys/fs/cgroup/unified/system.slice/cpu.pressure").read_bytes() == pressure.read_bytes()
