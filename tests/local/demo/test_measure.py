"""Readings of the machine: CPU time, the moment best effort was cut, processes that cannot be confused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from embedded.tests.dummies import until
from local.demo.measure import (
    CpuTime,
    ProcessMark,
    QuotaCut,
    QuotaSample,
    QuotaTrace,
    describe_machine,
    first_cut,
    mark_process,
    own_cpu_ticks,
    parse_cpu_time,
    parse_quota,
    pods_cpu_seconds,
    still_alive,
)
from local.rundir import NodeEndpoints


def test_cpu_time_leaves_out_idle_iowait_steal_and_guest() -> None:
    """Guest time is part of user time already; stolen time was never ours."""
    assert parse_cpu_time("cpu  10 1 5 80 3 1 1 99 7 0\ncpu0 1 1 1 1\n") == CpuTime(18, 101)


@pytest.mark.parametrize(
    ("case", "later", "expected"),
    [("half", CpuTime(60, 200), 50.0), ("idle", CpuTime(10, 200), 0.0), ("no time passed", CpuTime(10, 100), 0.0)],
)
def test_utilisation(case: str, later: CpuTime, expected: float) -> None:
    """Busy ticks of all ticks between two readings."""
    assert CpuTime(10, 100).utilisation_pct(later) == expected


@pytest.mark.parametrize(
    ("own", "later", "expected"),
    [
        (30, CpuTime(90, 200), 50.0),
        (80, CpuTime(90, 200), 0.0),
        (90, CpuTime(90, 200), 0.0),
        (0, CpuTime(10, 100), 0.0),
    ],
)
def test_the_work_of_others(own: float, later: CpuTime, expected: float) -> None:
    """What was busy less one's own; never below nothing, though the two are read one after the other."""
    assert CpuTime(10, 100).others_pct(later, own) == expected


def test_a_child_that_ended_was_own_work() -> None:
    """It burns a fifth of a second of CPU, however long that takes."""
    before = own_cpu_ticks()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"], check=True)
    assert own_cpu_ticks() - before >= 0.2 * os.sysconf("SC_CLK_TCK") - 2


def samples(*pairs: tuple[float, int]) -> list[QuotaSample]:
    return [QuotaSample(at, quota) for at, quota in pairs]


@pytest.mark.parametrize(
    ("case", "changes", "expected"),
    [
        ("cut at once", samples((1, 100), (10.5, 40)), QuotaCut(0.5, 100, 40, 40)),
        ("raised first", samples((1, 100), (10.5, 120), (11, 90), (12, 30)), QuotaCut(1.0, 100, 90, 30)),
        ("from no limit", samples((1, -1), (10.25, 500)), QuotaCut(0.25, -1, 500, 500)),
        ("lifted is no cut", samples((1, 100), (11, -1)), None),
        ("cut before the surge only", samples((1, 100), (9, 50)), None),
        ("nothing before the surge", samples((11, 100), (12, 50)), None),
        ("nothing at all", [], None),
    ],
)
def test_first_cut(case: str, changes: list[QuotaSample], expected: QuotaCut | None) -> None:
    """The first value after the surge, at 10, that is below the one at the surge; -1 is above all."""
    assert first_cut(changes, 10.0) == expected


def test_the_quota_trace_keeps_changes_only(tmp_path: Path) -> None:
    """A value that stays is one sample."""
    path = tmp_path / "quota"
    path.write_text("100000\n")
    trace = QuotaTrace(path, interval_seconds=0.001)
    trace.start()
    assert until(lambda: len(trace.samples) == 1)
    path.write_text("050000\n")
    assert until(lambda: trace.samples[-1].quota_us == 50000)
    values = [sample.quota_us for sample in trace.stop()]
    assert values[0] == 100000 and values[-1] == 50000 and len(values) == len(set(values))


def test_the_quota_trace_of_a_missing_file_is_empty(tmp_path: Path) -> None:
    """A cgroup that does not exist gives no samples; stopping before starting is fine."""
    trace = QuotaTrace(tmp_path / "none")
    trace.start()
    assert trace.stop() == []
    assert QuotaTrace(tmp_path / "none").stop() == []


def test_a_process_that_ended_is_not_alive_and_another_with_its_id_is_not_it() -> None:
    """Identity is id and start time."""
    process = subprocess.Popen(["/bin/sleep", "60"])
    mark = mark_process(process.pid)
    assert mark is not None
    assert still_alive([mark, ProcessMark(os.getpid(), 0)]) == [process.pid]
    process.kill()
    process.wait()
    assert still_alive([mark]) == []


def test_the_machine_is_described_on_one_line() -> None:
    """CPUs, memory, kernel, cgroup version, Python."""
    text = describe_machine(NodeEndpoints("n", kernel="real", cgroup_version=2))
    assert "\n" not in text
    assert all(word in text for word in ("CPUs", "GiB", "Linux", "cgroups v2", "Python"))
    assert "cgroups simulated" in describe_machine(NodeEndpoints("n", kernel="simulated", cgroup_version=2))


@pytest.mark.parametrize(
    ("text", "expected"), [("-1\n", -1), ("5000\n", 5000), ("max 100000\n", -1), ("5000 100000\n", 5000), ("", None)]
)
def test_quota(text: str, expected: int | None) -> None:
    """Either version's file; one that is being written says nothing."""
    assert parse_quota(text) == expected


@pytest.mark.parametrize(
    ("version", "controller", "file", "text"),
    [(1, "cpuacct/", "cpuacct.usage", "2500000000\n"), (2, "", "cpu.stat", "usage_usec 2500000\n")],
)
def test_cpu_time_of_pods(tmp_path: Path, version: int, controller: str, file: str, text: str) -> None:
    """In seconds, wherever the pod's class puts it; a pod without a cgroup has used none."""
    node = NodeEndpoints("n", cgroup_root=str(tmp_path), cgroup_version=version, kubepods="/s/kubepods")
    pod = tmp_path / f"{controller}s/kubepods/besteffort/podu1"
    pod.mkdir(parents=True)
    (pod / file).write_text(text)
    assert pods_cpu_seconds(node, ["u1", "u2"]) == 2.5
