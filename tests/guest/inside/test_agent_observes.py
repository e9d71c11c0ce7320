"""The agent's senses on real cgroup v2: layout, discovery, reader and observer over pods with processes in them."""

from __future__ import annotations

import os
import select

import pytest

from agent.core.observe.files import FILES, Role
from agent.core.observe.layout import CgroupDriver
from agent.core.observe.observation import Absence, Missing
from agent.edge.cgroupfs import CgroupReader
from cgroup_fixtures.live import MOUNT
from tests.guest.inside.live_node import HOLD, MIB, SLEEP, SPIN, LiveNode, eventually, read

QUOTA = "5000 100000"
# Through the page cache: the kernel must remember whose page it was.
WRITE = f"""
import os
disk = os.open("/dev/vda", os.O_WRONLY)
os.write(disk, bytes({MIB}))
os.fsync(disk)
{SLEEP}"""


@pytest.mark.parametrize(
    ("node", "driver"),
    [
        ("/kubepods", CgroupDriver.CGROUPFS),
        ("/kubelet/kubepods", CgroupDriver.CGROUPFS),
        ("/kubepods.slice", CgroupDriver.SYSTEMD),
        ("/kubelet.slice/kubelet-kubepods.slice", CgroupDriver.SYSTEMD),
    ],
    indirect=["node"],
)
def test_the_layout_is_found_and_by_it_everything_else(node: LiveNode, driver: CgroupDriver) -> None:
    """From directories alone: version, driver and root, and then every pod, container and figure."""
    assert (node.layout.version, node.layout.driver, node.layout.root) == (2, driver, node.place.root)
    assert node.layout.best_effort == node.best_effort
    node.cgroups.require(node.layout)
    seen = node.observe()
    assert seen.unlisted_pods == () and seen.best_effort_cpus == os.cpu_count()
    samples = [seen.kubepods, seen.burstable, seen.best_effort, *seen.pods.values()]
    samples += [found for containers in seen.containers.values() for found in containers.values()]
    assert len(samples) == 7
    for sample in map(read, samples):
        assert sample.throttling and sample.pressure and sample.events and sample.disk
        assert sample.pressure.cpu_full and sample.pressure.memory_full and sample.pressure.io_full


def test_a_pod_that_appears_is_told_and_found(node: LiveNode) -> None:
    """inotify on the cgroup file system: the descriptor turns readable, the next look has pod and container."""
    assert set(node.discovery.pods()) == {node.web.uid, node.job.uid}
    node.tree.make(f"{node.best_effort}/podlate/c1")
    descriptor = node.discovery.fileno()
    assert descriptor is not None and select.select([descriptor], [], [], 30)[0]
    assert node.discovery.pods()["late"].containers == {"c1": f"{node.best_effort}/podlate/c1"}
    assert node.observe().unlisted_pods == ("late",)


def test_work_shows_as_usage_of_the_pod_that_does_it(node: LiveNode) -> None:
    """A spinning pod's rate rises, in its container, in online use and of the node; the idle pod's does not."""
    assert node.usage() is None
    node.tree.run(node.web.container, SPIN)

    def busy() -> bool:
        found = node.usage()
        return found is not None and found.containers[node.web.uid]["app"].last.cpu_millis > 300

    assert eventually(busy)
    found = node.usage()
    assert found is not None
    for used in (found.pods[node.web.uid], found.online, found.burstable, found.node):
        assert used is not None and used.last.cpu_millis > 300
    # A rate cannot exceed the guest's CPUs.
    assert found.node.last.cpu_millis <= 1000 * (os.cpu_count() or 0)
    assert found.pods[node.job.uid].last.cpu_millis == found.best_effort.last.cpu_millis == 0


def test_held_memory_is_measured_before_its_slow_turn(node: LiveNode) -> None:
    """memory.current moved by more than the 4 MiB that are let pass, so memory.stat is read at once, though its turn is a
    thousand passes away."""
    reader = CgroupReader(MOUNT, FILES[2], slow_passes=1000)
    try:
        reader.place({node.web.path: Role.POD})
        assert read(reader.read()[node.web.path]).memory_bytes < 16 * MIB
        node.tree.run(node.web.container, HOLD)
        assert eventually(lambda: read(reader.read()[node.web.path]).memory_bytes >= (32 - 4) * MIB)
    finally:
        reader.close()


def test_a_throttled_pod_is_told_apart_and_stalls(node: LiveNode) -> None:
    """cpu.max of one pod: most of its periods are throttled and it waits for the CPU; the other does not."""
    node.file(node.job.path, "cpu.max").write_text(QUOTA)
    node.tree.run(node.job.container, SPIN)
    ratios: dict[str, float] = {}

    def throttled() -> bool:
        found = node.usage()
        ratios.update(found.throttled_ratio if found else {})
        return ratios.get(node.job.uid, 0.0) > 0.5

    assert eventually(throttled), ratios
    assert ratios.get(node.web.uid, 0.0) == 0.0
    seen = node.observe()
    job, web = read(seen.pods[node.job.uid]), read(seen.pods[node.web.uid])
    assert job.throttling and job.throttling.throttled_us > 0
    assert job.pressure and job.pressure.cpu_some and job.pressure.cpu_some.total_us > 0
    assert web.pressure and web.pressure.cpu_some and web.pressure.cpu_some.total_us == 0
    assert seen.node_pressure and seen.node_pressure.memory_full and seen.pressure is not None


def test_an_oom_kill_is_the_containers_and_its_parents(node: LiveNode) -> None:
    """memory.max of one container: one kill, counted upwards to kubepods and nowhere else."""
    node.file(node.job.container, "memory.max").write_text(str(16 * MIB))
    assert node.tree.run(node.job.container, HOLD).wait(60) < 0
    seen = node.observe()
    hit = [seen.containers[node.job.uid]["app"], seen.pods[node.job.uid], seen.best_effort, seen.kubepods]
    assert [(e.oom_kill, e.maximum > 0) for e in (read(part).events for part in hit) if e] == [(1, True)] * 4
    spared = read(seen.pods[node.web.uid]).events
    assert spared and (spared.oom_kill, spared.maximum) == (0, 0)


def test_written_bytes_are_the_writers(node: LiveNode) -> None:
    """A page of the writer's that fsync sends to the disk is its own, and its parents'."""
    node.tree.run(node.job.container, WRITE)

    def written() -> bool:
        seen = node.observe()
        parts = (seen.containers[node.job.uid]["app"], seen.pods[node.job.uid], seen.kubepods)
        return all(disk is not None and disk.written_bytes >= MIB for disk in (read(part).disk for part in parts))

    assert eventually(written)
    other = read(node.observe().pods[node.web.uid]).disk
    assert other is not None and other.written_bytes == 0


def test_a_pod_that_goes_and_comes_back_starts_at_nothing(node: LiveNode) -> None:
    """Gone is a value in the very next pass; the same pod's new cgroup has new counters and never a negative rate."""
    process = node.tree.run(node.web.container, SPIN)
    rates: list[int] = []

    def measured(times: int) -> bool:
        """So often; passes too soon after each other repeat the last rate."""
        found = node.usage()
        if found and node.web.uid in found.pods:
            rates.append(found.pods[node.web.uid].last.cpu_millis)
        return len(rates) >= times

    assert eventually(lambda: measured(1) and rates[-1] > 300)
    node.tree.end(process)
    before = read(node.observe().pods[node.web.uid]).cpu_ns
    node.rmdir(node.web.container, node.web.path)
    gone = node.observe()
    for absent in (gone.pods[node.web.uid], gone.containers[node.web.uid]["app"]):
        assert isinstance(absent, Missing) and absent.absence is Absence.GONE
    read(gone.pods[node.job.uid])
    node.tree.make(node.web.container)
    assert read(node.observe().pods[node.web.uid]).cpu_ns == 0 < before
    rates.clear()
    assert eventually(lambda: measured(2) and rates[-1] == 0), rates
    assert 0 <= min(rates) <= max(rates) <= 1000 * (os.cpu_count() or 0)


def test_a_class_that_is_made_again_is_read_again(node: LiveNode) -> None:
    """kubelet re-creates a QoS root: nothing is measured in between, then everything is."""
    read(node.observe().best_effort)
    opened = node.cgroups.open_descriptors
    node.rmdir(node.job.container, node.job.path, node.best_effort)
    gone = node.observe()
    assert isinstance(gone.best_effort, Missing) and isinstance(gone.pods[node.job.uid], Missing)
    assert gone.best_effort_cpus is None
    node.tree.make(node.job.container)

    def back() -> bool:
        seen = node.observe()
        found = (seen.best_effort, seen.pods[node.job.uid], seen.containers[node.job.uid]["app"])
        return not any(isinstance(part, Missing) for part in found)

    assert eventually(back)
    assert node.cgroups.open_descriptors == opened and node.observe().best_effort_cpus == os.cpu_count()


def test_a_removed_cgroups_descriptor_is_never_another_pods(node: LiveNode) -> None:
    """Placed though gone and made again meanwhile: ENODEV is an absence in one pass and the new one's in the next."""
    reader = CgroupReader(MOUNT, FILES[2])
    try:
        reader.place({node.web.container: Role.POD})
        read(reader.read()[node.web.container])
        node.rmdir(node.web.container)
        node.tree.make(node.web.container)
        assert reader.read()[node.web.container] == Missing(node.web.container, Absence.GONE, "no such cgroup")
        assert read(reader.read()[node.web.container]).cpu_ns == 0
    finally:
        reader.close()
