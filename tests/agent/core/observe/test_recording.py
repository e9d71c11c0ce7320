"""What a frame holds, and the text of scenario.toml."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.observe.layout import CgroupDriver
from agent.core.observe.recording import (
    CgroupShape,
    NodeShape,
    Origin,
    Scenario,
    ScenarioContainer,
    ScenarioPod,
    difference,
    runtime_of,
    scenario_text,
    shape_of,
)
from model.qos import KubernetesQoS, QoSClass

TREE = {"a/x": b"1", "a/b/x": b"2", "a/b/y": b"3", "a/c/x": b"4"}


@pytest.mark.parametrize(
    ("case", "after", "files", "removed"),
    [
        ("nothing happened", TREE, {}, ()),
        ("a file changed", TREE | {"a/x": b"9"}, {"a/x": b"9"}, ()),
        ("a file appeared", TREE | {"a/d/x": b"5"}, {"a/d/x": b"5"}, ()),
        ("a file went, its directory stands", {p: t for p, t in TREE.items() if p != "a/b/y"}, {}, ("a/b/y",)),
        ("a directory went", {p: t for p, t in TREE.items() if "/b/" not in p}, {}, ("a/b",)),
        ("two directories went", {"a/x": b"1"}, {}, ("a/b", "a/c")),
        ("all went", {}, {}, ("a",)),
        ("one came for another", {"a/x": b"1", "a/e/x": b"2"}, {"a/e/x": b"2"}, ("a/b", "a/c")),
    ],
)
def test_a_frame_is_what_changed(
    case: str, after: dict[str, bytes], files: dict[str, bytes], removed: tuple[str, ...]
) -> None:
    """Changed and new files whole; what is gone by its uppermost directory."""
    frame = difference(TREE, after)
    assert (dict(frame.files), frame.removed) == (files, removed), case


@pytest.mark.parametrize(
    ("paths", "ids", "runtime"),
    [
        ((), (), ""),
        (("kubepods/pod1/0a1b/cpu.stat",), (), ""),
        (("k.slice/k-pod1.slice/cri-containerd-0a.scope/cpu.stat",), (), "containerd"),
        (("k.slice/k-pod1.slice/docker-0a.scope/cpu.stat",), (), "docker"),
        (("kubepods/pod1/crio-0a/cpu.stat",), (), "cri-o"),
        (("kubepods/pod1/0a1b/cpu.stat",), ("containerd://0a1b",), "containerd"),
        (("kubepods/pod1/0a1b/cpu.stat",), ("", "cri-o://0a1b"), "cri-o"),
    ],
)
def test_the_runtime_is_known_by_id_or_directory(paths: tuple[str, ...], ids: tuple[str, ...], runtime: str) -> None:
    """A bare id as a directory's name says nothing; a pod that has not started has an empty id."""
    assert runtime_of(paths, ids) == runtime


def test_the_machine_is_read_from_proc() -> None:
    """Two CPUs; 2,000 KiB are 2,048,000 bytes."""
    stat = b"cpu  1 2\ncpu0 1 1\ncpu1 0 1\nctxt 5\ncpufreq 1\n"
    assert shape_of("n", stat, b"MemFree: 1 kB\nMemTotal:    2000 kB\n") == NodeShape(2000, 2_048_000, "n")


@pytest.mark.parametrize(
    ("stat", "meminfo"),
    [
        (b"", b"MemTotal: 1 kB\n"),
        (b"cpu0 1\n", b""),
        (b"cpu0 1\n", b"MemTotal: lots kB\n"),
        (b"cpu 1\n", b"MemTotal: 1 kB\n"),
    ],
)
def test_an_impossible_proc_is_an_error(stat: bytes, meminfo: bytes) -> None:
    """Never a machine of no CPUs."""
    with pytest.raises(ValueError, match="can be read from stat and meminfo"):
        shape_of("n", stat, meminfo)


def scenario(text: str = "x") -> Scenario:
    pod = ScenarioPod(
        text, text, KubernetesQoS.BURSTABLE, QoSClass.LS, 1, 2, 3, 4, (ScenarioContainer(text, text),) * 2
    )
    return Scenario(
        origin=Origin.RECORDED,
        about=text,
        frames_seconds=(0.0, 1.5),
        node=NodeShape(1000, 1024, text),
        layout=CgroupShape(2, CgroupDriver.SYSTEMD, "/kubepods.slice", "cri-o"),
        kernel=text,
        pods=(pod, ScenarioPod("b", "c", KubernetesQoS.BEST_EFFORT)),
        removed={"01": (text, "sys/fs")},
    )


# DEL is the one character that JSON leaves bare and TOML does not allow; no name of a cgroup or pod has it.
@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x7f")))
def test_a_scenario_reads_back_as_it_was_written(text: str) -> None:
    """Whatever the names, and with all that may be left out left out."""
    for written in (scenario(text), msgspec.structs.replace(scenario(text), pods=(), removed={}, kernel="")):
        assert msgspec.toml.decode(scenario_text(written), type=Scenario) == written
