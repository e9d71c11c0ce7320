"""What is read of a node: both cgroup versions, other agents' processes, a state directory that is not there yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob
from agent.edge.discovery import find_layout
from agent.edge.preflight import PreflightPaths, look
from agent.files.statefile import StateFile
from model.fault import KernelFault


def tree(folder: Path, version: int) -> Path:
    files = {
        1: ("cpu/{}/cpu.cfs_quota_us", "cpu/{}/cpu.cfs_period_us", "cpu/{}/cpu.shares", "cpuset/{}/cpuset.cpus"),
        2: ("{}/cpu.max", "{}/cpu.weight", "{}/cpu.idle", "{}/cpuset.cpus", "{}/memory.high", "{}/cgroup.kill"),
    }[version]
    for name in files:
        file = folder / name.format("kubepods/besteffort")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    if version == 1:
        for controller in ("cpuacct", "memory"):
            (folder / controller / "kubepods" / "besteffort").mkdir(parents=True)
    else:
        (folder / "cgroup.controllers").write_text("cpu cpuset memory io\n")
        (folder / "kubepods" / "cgroup.controllers").write_text("cpu memory\n")
    return folder


def places(folder: Path, root: Path) -> PreflightPaths:
    (folder / "proc").mkdir(exist_ok=True)
    try:
        layout: Layout | KernelFault = find_layout(root)
    except KernelFault as fault:
        layout = fault
    return PreflightPaths(root, folder / "proc", folder / "state" / "agent.json", layout)


def test_version_2(tmp_path: Path) -> None:
    facts = look(places(tmp_path, tree(tmp_path / "cgroup", 2)))
    assert (facts.cgroup_version, facts.kubepods, facts.driver) == (2, "/kubepods", "cgroupfs")
    assert facts.controllers == {"cpu", "memory"} and facts.kill_file and not facts.unwritable
    assert {"cpu.idle", "memory.high"} <= facts.knobs


def test_version_1(tmp_path: Path) -> None:
    root = tree(tmp_path / "cgroup", 1)
    (root / "cpuacct").joinpath("kubepods").mkdir(exist_ok=True)
    facts = look(places(tmp_path, root))
    assert (facts.cgroup_version, facts.kubepods) == (1, "/kubepods")
    assert facts.controllers == {"cpu", "cpuset", "memory"} and not facts.kill_file
    assert "cpu.idle" not in facts.knobs and "cpu.cfs_quota_us" in facts.knobs


def test_without_pods_the_trouble_is_told(tmp_path: Path) -> None:
    (tmp_path / "cgroup").mkdir()
    facts = look(places(tmp_path, tmp_path / "cgroup"))
    assert facts.kubepods == "" and str(tmp_path) in facts.trouble


KEPT: dict[str, tuple[str, str, str]] = {
    "nothing": ("burstable/pod1/c/memory.low", "0\n", ""),
    "no limit": ("burstable/pod1/c/memory.high", "max\n", ""),
    "a class": ("burstable/memory.low", "4096\n", "memory.low of /kubepods/burstable"),
    "a pod": ("pod2/memory.min", "4096\n", "memory.min of /kubepods/pod2"),
    "all of it": ("pod2/memory.min", "max\n", "memory.min of /kubepods/pod2"),
    "a container": ("burstable/pod1/c/memory.high", "4096\n", "memory.high of /kubepods/burstable/pod1/c"),
    "what is no pod": ("burstable/other/memory.min", "4096\n", ""),
    "no number": ("burstable/memory.low", "x\n", ""),
}


@pytest.mark.parametrize(("file", "text", "expected"), KEPT.values(), ids=KEPT)
def test_memory_qos_of_the_kubelet(tmp_path: Path, file: str, text: str, expected: str) -> None:
    """Wherever it protects or slows down; on cgroup v1 nothing does."""
    root = tree(tmp_path / "cgroup", 2)
    written = root / "kubepods" / file
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(text)
    assert look(places(tmp_path, root)).memory_kept == expected
    assert look(places(tmp_path, tree(tmp_path / "v1", 1))).memory_kept == ""


def test_what_an_agent_of_ours_wrote_is_not_the_kubelets(tmp_path: Path) -> None:
    """The state file says so."""
    root = tree(tmp_path / "cgroup", 2)
    file = root / "kubepods/burstable/memory.low"
    file.parent.mkdir()
    file.write_text("4096\n")
    chosen = places(tmp_path, root)
    state = StateFile(chosen.state_file)
    state.remember({Knob("/kubepods/burstable", "", "memory.low"): "0"})
    assert look(chosen).memory_kept == ""
    (root / "kubepods/memory.min").write_text("4096\n")
    assert look(chosen).memory_kept == "memory.min of /kubepods"


def process(folder: Path, number: str, name: bytes, pod: bytes = b"burstable/pod1", user: str = "0") -> None:
    place = folder / "proc" / number
    place.mkdir(parents=True)
    about = f"Umask:\t0022\nState:\tS (sleeping)\nUid:\t{user}\t{user}\t{user}\t{user}\n"
    (place / "status").write_bytes(b"Name:\t" + name + b"\n" + about.encode())
    (place / "cgroup").write_bytes(b"4:memory:/kubepods/%b/c\n1:name=systemd:/kubepods/%b/c\n" % (pod, pod))


def test_best_effort_work_cannot_pose_as_another_agent(tmp_path: Path) -> None:
    """Else any of it would be taken for one."""
    process(tmp_path, "10", b"koordlet", b"besteffort/pod1")
    chosen = places(tmp_path, tree(tmp_path / "cgroup", 2))
    assert look(chosen).rivals == ()
    process(tmp_path, "11", b"koordlet")
    assert look(chosen).rivals == ("koordlet",)


def test_a_local_user_cannot_pose_as_another_agent(tmp_path: Path) -> None:
    process(tmp_path, "10", b"koordlet", b"../user.slice", "1000")
    process(tmp_path, "11", b"koordlet\\nUid:\t0", b"../user.slice", "1000")
    process(tmp_path, "12", b"koordlet\rUid:\t0", b"../user.slice", "1000")
    assert look(places(tmp_path, tree(tmp_path / "cgroup", 2))).rivals == ()


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """Of a process (by prctl) or of a cgroup below a container: neither ends the look, or hides another agent."""
    process(tmp_path, "10", b"\xff\xfe")
    process(tmp_path, "11", b"koordlet", b"besteffort/\xff")
    process(tmp_path, "12", b"katalyst-agent", b"burstable/\xff")
    assert look(places(tmp_path, tree(tmp_path / "cgroup", 2))).rivals == ("katalyst-agent",)


def test_other_agents_are_known_by_their_processes(tmp_path: Path) -> None:
    """The kernel keeps 15 characters of a name; what is no process, or has ended, is passed over."""
    for number, name in (("10", b"koordlet"), ("11", b"nginx"), ("12", b"katalyst-agent")):
        process(tmp_path, number, name)
    (tmp_path / "proc" / "13").mkdir()
    (tmp_path / "proc" / "sys").mkdir()
    (tmp_path / "cgroup").mkdir()
    assert look(places(tmp_path, tmp_path / "cgroup")).rivals == ("katalyst-agent", "koordlet")
