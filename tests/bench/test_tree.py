"""Names of the benchmark's cgroups, and what is read of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.core.observe.files import Role
from bench.agent.files import observation_plan
from bench.hierarchies import Hierarchies, discover
from bench.tree import BenchTree, place
from model.fault import KernelFault

V1 = Hierarchies(1, Path("/c"), {name: Path(f"/c/{name}") for name in ("cpu", "cpuacct", "memory", "unified")})
V2 = Hierarchies(2, Path("/c"), {"": Path("/c")})


def tree(hierarchies: Hierarchies) -> BenchTree:
    """Three pods: two Burstable, the third best effort."""
    return BenchTree(hierarchies, [place(index) for index in range(3)])


def test_pods_lie_where_a_kubelet_puts_them() -> None:
    """Two thirds burstable, two containers each, below a name that only this process uses."""
    made = tree(V1)
    assert made.kubepods == f"/sublet-bench-{os.getpid()}/kubepods"
    assert [cgroup.split("/")[3] for cgroup in made.pods] == ["burstable", "burstable", "besteffort"]
    assert [cgroup.rsplit("/", 1)[0] for cgroup in made.containers[:3]] == [made.pods[0], made.pods[0], made.pods[1]]
    assert len(made.containers[0].rsplit("/", 1)[1]) == 64 and len(set(made.containers)) == 6
    assert [
        list(made.roles.values()).count(role) for role in (Role.ROOT, Role.POD, Role.BEST_EFFORT_POD, Role.CONTAINER)
    ] == [3, 2, 1, 6]


def test_a_uid_of_the_api_server_names_the_pod() -> None:
    """The agent finds a pod's cgroup by it."""
    assert place(2, "some-uid").uid == "some-uid" and place(2, "some-uid").containers != place(2).containers


@pytest.mark.parametrize(
    ("hierarchies", "expected"),
    [
        # 12 cgroups; the memory level of the 3 pods and 3 roots, since the agent reads it of no other
        (V1, {"cpuacct.usage": 12, "memory.usage_in_bytes": 6, "memory.stat": 12, "cpu.stat": 12, "cpu.pressure": 12}),
        (V2, {"cpu.stat": 12, "memory.current": 6, "memory.stat": 12, "cpu.pressure": 12}),
        (
            Hierarchies(1, Path("/c"), {name: V1.mounts[name] for name in ("cpu", "cpuacct", "memory")}),
            {"cpuacct.usage": 12, "memory.usage_in_bytes": 6, "memory.stat": 12, "cpu.stat": 12},
        ),
    ],
    ids=["v1", "v2", "v1 without unified"],
)
def test_the_plan_reads_what_the_kernel_has(hierarchies: Hierarchies, expected: dict[str, int]) -> None:
    """Files by kind."""
    groups = observation_plan(hierarchies, tree(hierarchies).roles).groups
    assert {group.name: len(group.paths) for group in groups} == expected


def test_the_keys_are_those_of_the_version() -> None:
    """v1 counts descendants in total_ fields, v2 in every field."""
    keys = {h.version: {g.name: g.keys for g in observation_plan(h, tree(h).roles).groups} for h in (V1, V2)}
    assert "total_inactive_anon" in keys[1]["memory.stat"] and "inactive_anon" in keys[2]["memory.stat"]
    assert keys[1]["cpuacct.usage"] == () and "usage_usec" in keys[2]["cpu.stat"]


@pytest.mark.parametrize(
    ("files", "version", "mounts"),
    [
        (("cpu/cgroup.procs", "cpuacct/cgroup.procs", "memory/cgroup.procs"), 1, ["cpu", "cpuacct", "memory"]),
        (
            ("cpu/cgroup.procs", "cpuacct/cgroup.procs", "memory/cgroup.procs", "unified/cgroup.procs"),
            1,
            ["cpu", "cpuacct", "memory", "unified"],
        ),
        (("cgroup.controllers", "cgroup.procs"), 2, [""]),
    ],
    ids=["v1", "v1 with unified", "v2"],
)
def test_mounts_are_found(tmp_path: Path, files: tuple[str, ...], version: int, mounts: list[str]) -> None:
    """Welcome hierarchies take part where they are there."""
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("cpuset cpu io memory\n")
    found = discover(tmp_path)
    assert (found.version, list(found.mounts)) == (version, mounts)


@pytest.mark.parametrize("files", [(), ("cpu/cgroup.procs",)], ids=["nothing", "one controller"])
def test_an_unsuitable_machine_is_a_fault(tmp_path: Path, files: tuple[str, ...]) -> None:
    """One line that names the mount and what to do."""
    for name in files:
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    with pytest.raises(KernelFault, match="not a cgroup mount this user may write"):
        discover(tmp_path)


def test_a_v2_root_without_the_memory_controller_is_a_fault(tmp_path: Path) -> None:
    """It names what is missing."""
    (tmp_path / "cgroup.controllers").write_text("cpu io\n")
    with pytest.raises(KernelFault, match="no memory controller"):
        discover(tmp_path)
