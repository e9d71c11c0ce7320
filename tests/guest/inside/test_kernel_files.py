"""What the kernel's cgroup v2 files say, for the parsers that read them."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from agent.core.observe import parse
from agent.core.observe.recording import cgroup_files
from tests.guest.inside.live_node import HOLD, MIB, SLEEP, SPIN, eventually

FILES = cgroup_files(2)[""]
WRITE = f"""
import mmap, os
disk = os.open("/dev/vda", os.O_WRONLY | os.O_DIRECT)
os.pwrite(disk, mmap.mmap(-1, {MIB}), 0)
{SLEEP}"""


@pytest.mark.parametrize("depth", ["kubepods", "class", "pod", "container"])
def test_every_file_is_there_at_every_depth(pods: Any, depth: str) -> None:
    """The controllers reach down to the container, and the agent's parsers read all of it."""
    levels = 3 - ["kubepods", "class", "pod", "container"].index(depth)
    cgroup = pods.burstable.rsplit("/", levels)[0]
    assert {name for name in FILES if not (pods.tree.folder(cgroup) / name).is_file()} == set()
    cpu_ns, throttling = parse.v2_cpu_time(pods.read(cgroup, "cpu.stat"))
    assert cpu_ns >= 0 and throttling is not None
    parse.v2_memory(pods.read(cgroup, "memory.stat"))
    parse.v2_memory_events(pods.read(cgroup, "memory.events"))
    parse.v2_disk(pods.read(cgroup, "io.stat"))
    assert parse.cpu_count(pods.read(cgroup, "cpuset.cpus.effective")) == os.cpu_count()
    for kind in ("cpu", "memory", "io"):
        assert parse.stalls(pods.read(cgroup, f"{kind}.pressure"))[1] is not None


def test_limits_nobody_set_say_max(pods: Any) -> None:
    """And a set quota reads back with its period."""
    assert pods.read(pods.burstable, "cpu.max") == b"max 100000\n"
    assert pods.read(pods.burstable, "memory.max") == b"max\n"
    assert pods.read(pods.burstable, "cpu.weight") == b"100\n"
    pods.write(pods.burstable, "cpu.max", "20000")
    assert pods.read(pods.burstable, "cpu.max") == b"20000 100000\n"


def test_cpu_time_of_a_container_is_its_parents_too(pods: Any) -> None:
    """A spinning process shows in the container, the pod, the class and the root."""
    pods.tree.run(pods.best_effort, SPIN)
    chain = [pods.best_effort.rsplit("/", levels)[0] for levels in range(4)]
    assert eventually(
        lambda: all(parse.v2_cpu_time(pods.read(cgroup, "cpu.stat"))[0] > 200_000_000 for cgroup in chain)
    )
    assert parse.v2_cpu_time(pods.read(pods.burstable, "cpu.stat"))[0] == 0


def test_a_quota_is_counted_where_it_stands(pods: Any) -> None:
    """cpu.stat holds usage and throttling in one file; the child without a quota shows none."""
    above = pods.best_effort.rsplit("/", 1)[0]
    pods.write(above, "cpu.max", "10000 100000")
    pods.tree.run(pods.best_effort, SPIN)

    def throttled() -> bool:
        seen = parse.v2_cpu_time(pods.read(above, "cpu.stat"))[1]
        return seen is not None and seen.throttled >= 3 and seen.periods >= seen.throttled

    assert eventually(throttled)
    below = parse.v2_cpu_time(pods.read(pods.best_effort, "cpu.stat"))[1]
    assert below is not None and below.throttled == 0


def test_held_memory_is_anonymous(pods: Any) -> None:
    """memory.stat of the root counts what a container holds."""
    pods.tree.run(pods.burstable, HOLD)
    assert eventually(lambda: parse.v2_memory(pods.read(pods.root, "memory.stat"))[0] >= 32 * MIB)
    assert parse.counter(pods.read(pods.root, "memory.current")) >= 32 * MIB


def test_an_oom_kill_is_counted_once(pods: Any) -> None:
    """memory.events of the container and, as it counts descendants, of the root."""
    pods.write(pods.burstable, "memory.max", str(16 * MIB))
    assert pods.tree.run(pods.burstable, HOLD).wait(60) < 0
    for cgroup in (pods.burstable, pods.root):
        assert parse.v2_memory_events(pods.read(cgroup, "memory.events")).oom_kill == 1


def test_bytes_written_are_counted_for_every_parent(pods: Any) -> None:
    """io.stat needs a real disk and no page cache in between."""
    pods.tree.run(pods.best_effort, WRITE)
    both = (pods.best_effort, pods.root)
    assert eventually(lambda: all(parse.v2_disk(pods.read(cgroup, "io.stat")).written_bytes >= MIB for cgroup in both))


def test_populated_follows_the_last_process(pods: Any) -> None:
    """cgroup.events of the class turns with the container's."""
    above = pods.best_effort.rsplit("/", 2)[0]
    assert b"populated 0\n" in pods.read(above, "cgroup.events")
    process = pods.tree.run(pods.best_effort, SLEEP)
    assert b"populated 1\n" in pods.read(above, "cgroup.events")
    pods.tree.end(process)
    assert eventually(lambda: b"populated 0\n" in pods.read(above, "cgroup.events"))


@pytest.mark.parametrize("name", FILES)
def test_a_descriptor_outlives_its_cgroup_as_enodev(pods: Any, name: str) -> None:
    """Also when a cgroup of that name was made again: a cached descriptor never reports another pod's numbers."""
    folder = pods.tree.folder(pods.best_effort)
    descriptor = os.open(folder / name, os.O_RDONLY)
    try:
        assert os.pread(descriptor, 8192, 0) or name == "io.stat"
        for again in (False, True):
            folder.rmdir() if not again else folder.mkdir()
            with pytest.raises(OSError) as failed:
                os.pread(descriptor, 8192, 0)
            assert failed.value.errno == errno.ENODEV
    finally:
        os.close(descriptor)
