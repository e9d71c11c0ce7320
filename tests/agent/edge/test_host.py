"""Facts of this very machine, and of a made /proc."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest

from agent.core.observe.observation import Absence, CgroupPressure, Missing, NodeSample, Stall
from agent.edge.host import HostReader

PSI = "some avg10=2.50 avg60=0.00 avg300=0.00 total=7\nfull avg10=1.25 avg60=0.00 avg300=0.00 total=0\n"
MEMINFO = "MemTotal:       1000 kB\nMemFree:        100 kB\nMemAvailable:   400 kB\n"
# 137 ticks of 10 ms; 1000 - 400 and 1000 - 100 kB; one cpuN line
SAMPLE = NodeSample(1_370_000_000, 600 * 1024, 1, 900 * 1024, total_bytes=1000 * 1024)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "stat").write_text("cpu  10 1 20 1000 500 3 4 99 0 0\ncpu0 1 1\n")
    (tmp_path / "meminfo").write_text(MEMINFO)
    return tmp_path


def test_this_machine() -> None:
    """CPU time grows while we work; memory and CPUs are plausible."""
    reader = HostReader(Path("/proc"))
    before = reader.sample()
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    after = reader.sample()
    reader.close()
    assert isinstance(before, NodeSample) and isinstance(after, NodeSample)
    assert after.cpu_ns >= before.cpu_ns + 50_000_000 and after.cpus == os.cpu_count()
    assert 1 << 20 < after.memory_used_bytes < after.memory_with_cache_bytes


def test_a_made_proc(proc: Path) -> None:
    """Everything comes from below `proc`, also when it changed since the first reading."""
    reader = HostReader(proc)
    assert reader.sample() == SAMPLE
    (proc / "meminfo").write_text(MEMINFO.replace("400", "500"))
    changed = reader.sample()
    assert isinstance(changed, NodeSample) and changed.memory_used_bytes == 500 * 1024
    reader.close()


SWAP = "SwapCached:        50 kB\nSwapTotal:      1000 kB\nSwapFree:        300 kB\n"


def test_swap(proc: Path) -> None:
    """What is on the device alone; a file that tells of swap and not how much is free is garbage."""
    (proc / "meminfo").write_text(MEMINFO + SWAP)
    reader = HostReader(proc)
    assert reader.sample() == msgspec.structs.replace(SAMPLE, swapped_bytes=650 * 1024, swap_free_bytes=300 * 1024)
    (proc / "meminfo").write_text(MEMINFO + "SwapTotal:      1000 kB\n")
    assert isinstance(reader.sample(), Missing)
    reader.close()


def test_caches_that_cannot_be_dropped(proc: Path) -> None:
    """100 names in use are 1,408 bytes each at most, and no more than there are caches; a kernel that does not tell has none."""
    (proc / "meminfo").write_text(MEMINFO + "SReclaimable:     150 kB\n")
    reader, file = HostReader(proc), proc / "sys/fs/dentry-state"
    assert reader.sample() == SAMPLE
    file.parent.mkdir(parents=True)
    for in_use, held in ((100, 100 * 1408), (10_000, 150 * 1024), (0, 0)):
        file.write_text(f"{900 + in_use}\t900\t45\t0\t1\t0\n")
        found = reader.sample()
        assert isinstance(found, NodeSample) and found.memory_used_bytes == 600 * 1024 + held
    file.write_text("nothing\n")
    assert reader.sample() == SAMPLE
    reader.close()


PRESENT = {"four": ("0-3\n", 4), "none that is told": ("", 0), "no list": ("x\n", 0), "no file": (None, 0)}


@pytest.mark.parametrize(("text", "expected"), PRESENT.values(), ids=PRESENT)
def test_cpus_that_are_in_the_machine(proc: Path, tmp_path: Path, text: str | None, expected: int) -> None:
    """Those that are offline as well; a kernel that does not tell costs nothing else."""
    place = tmp_path / "sys/devices/system/cpu"
    place.mkdir(parents=True)
    if text is not None:
        (place / "present").write_text(text)
    reader = HostReader(proc, sys=tmp_path / "sys")
    assert reader.sample() == msgspec.structs.replace(SAMPLE, present_cpus=expected)
    reader.close()


IDLE = 40
"""Ticks of cpu1: 30 idle, 10 waiting for a disk."""
ISOLATED = {
    "one": ("1\n", IDLE),
    "one that is offline": ("7\n", 0),
    "none": ("\n", 0),
    "no list": ("\xff\n", 0),
    "no file": (None, 0),
}


@pytest.mark.parametrize(("text", "ticks"), ISOLATED.values(), ids=ISOLATED)
def test_what_isolated_cpus_leave_idle_counts_as_used(proc: Path, tmp_path: Path, text: str | None, ticks: int) -> None:
    """Nobody who is not bound to one gets there; a list that cannot be read any more stays as it was."""
    place = tmp_path / "sys/devices/system/cpu"
    place.mkdir(parents=True)
    (proc / "stat").write_text(
        "cpu  10 1 20 1000 500 3 4 99 0 0\ncpu0 1 0 1 9 9 0 0 0 0 0\ncpu1 1 0 1 30 10 0 0 0 0 0\n"
    )
    if text is not None:
        (place / "isolated").write_text(text, "latin-1")
    reader = HostReader(proc, sys=tmp_path / "sys")
    expected = msgspec.structs.replace(SAMPLE, cpus=2, cpu_ns=SAMPLE.cpu_ns + ticks * 10_000_000)
    assert reader.sample() == expected
    (place / "isolated").write_text("x")
    assert reader.sample() == expected
    reader.close()


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("stat", "intr 5\n", "is not the cpu line"),
        ("meminfo", "MemTotal: 5 kB\n", "MemAvailable: missing"),
        ("meminfo", "", "MemTotal: missing"),
    ],
)
def test_garbage_is_a_value(proc: Path, file: str, text: str, message: str) -> None:
    """Neither half of the sample is guessed."""
    (proc / file).write_text(text)
    reader = HostReader(proc)
    found = reader.sample()
    assert isinstance(found, Missing) and found.absence is Absence.UNREADABLE and message in found.detail
    reader.close()


def test_absence_is_a_value_and_ends(proc: Path) -> None:
    """A file that is not there is asked for again."""
    (proc / "meminfo").unlink()
    reader = HostReader(proc)
    found = reader.sample()
    assert isinstance(found, Missing) and found.absence is Absence.GONE and found.path == str(proc / "meminfo")
    (proc / "meminfo").write_text(MEMINFO)
    assert reader.sample() == SAMPLE
    reader.close()


@pytest.mark.parametrize(("lines", "cpus"), [(0, 1), (2, 2), (600, 600)])
def test_cpus_are_counted_in_each_sample(proc: Path, lines: int, cpus: int) -> None:
    """CPUs come and go while the agent runs; 600 lines are longer than a page. Without any line there is still one."""
    reader = HostReader(proc)
    assert reader.sample() == SAMPLE
    each = "".join(f"cpu{number} 1000000 0 1000000 1000000000 0 0 0 0 0 0\n" for number in range(lines))
    (proc / "stat").write_text(f"cpu  10 1 20 1000 500 3 4 99 0 0\n{each}intr 5\n")
    found = reader.sample()
    assert isinstance(found, NodeSample) and found.cpus == cpus
    told = HostReader(proc, cpus=7)
    sized = told.sample()
    assert isinstance(sized, NodeSample) and sized.cpus == 7
    for made in (reader, told):
        made.close()


def test_a_broken_descriptor_is_opened_again(proc: Path) -> None:
    """Reading fails once, as after a remount: the next sample has a descriptor that works."""
    reader = HostReader(proc)
    assert reader.sample() == SAMPLE
    folder = os.open(proc, os.O_RDONLY)
    os.dup2(folder, reader._descriptors["stat"])
    os.close(folder)
    found = reader.sample()
    assert isinstance(found, Missing) and found.absence is Absence.UNREADABLE
    assert reader.sample() == SAMPLE
    reader.close()


def test_how_long_services_of_the_node_waited(proc: Path) -> None:
    """Nothing where they have no cgroup, which may come; nothing of text that is none of the kernel's."""
    file = proc / "cgroup/system.slice/cpu.pressure"
    reader = HostReader(proc, services=file)
    assert reader.services_waited_us() is None and HostReader(proc).services_waited_us() is None
    file.parent.mkdir(parents=True)
    file.write_text(PSI)
    assert reader.services_waited_us() == 7
    file.write_text("some of it\n")
    assert reader.services_waited_us() is None
    reader.close()


def test_pressure(proc: Path) -> None:
    """A kernel without it, one with part of it, one with all."""
    reader = HostReader(proc)
    assert reader.pressure() is None
    (proc / "pressure").mkdir()
    (proc / "pressure/cpu").write_text(PSI.split("full")[0])
    some, full = Stall(2.5, 0.0, 0.0, 7), Stall(1.25)
    assert reader.pressure() == CgroupPressure(some)
    for name in ("memory", "io"):
        (proc / "pressure" / name).write_text(PSI)
    assert reader.pressure() == CgroupPressure(some, None, some, full, some, full)
    reader.close()


def test_processes_and_threads(proc: Path) -> None:
    """Those of the whole machine, and the smaller of its two limits; None while one of the three files is not there."""
    reader = HostReader(proc)
    (proc / "sys/kernel").mkdir(parents=True)
    texts = {
        "loadavg": "0.00 0.01 0.05 2/345 6789\n",
        "sys/kernel/pid_max": "32768\n",
        "sys/kernel/threads-max": "900\n",
    }
    for name, text in texts.items():
        assert reader.pids() is None
        (proc / name).write_text(text)
    assert reader.pids() == (345, 900, 32_768)
    (proc / "loadavg").write_text("0.00 0.01 0.05\n")
    assert reader.pids() is None
    reader.close()


def test_time_that_no_cpu_tells_of_is_used(proc: Path) -> None:
    """Work that sleeps at each clock tick is neither busy nor idle in /proc/stat; without an uptime nothing is known."""
    reader = HostReader(proc)
    for second in range(31):
        # Of each second of the one CPU 10 ticks are busy and 40 idle; nobody tells of the other 50.
        line = f"{10 * second} 0 0 {40 * second} 0 0 0 0 0 0\n"
        (proc / "stat").write_text(f"cpu  {line}cpu0 {line}")
        if second >= 10:
            (proc / "uptime").write_text(f"{1000 + second}.00 5.00\n")
        found = reader.sample()
    assert isinstance(found, NodeSample) and found.cpus == 1
    # 20 seconds with an uptime: half of each, less the second that may be noise.
    assert found.cpu_ns == 30 * 100_000_000 + 20 * 500_000_000 - 1_000_000_000
    reader.close()
