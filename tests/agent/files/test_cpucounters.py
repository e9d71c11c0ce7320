"""CPU time of all pods and of best effort, read together or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.observe.layout import Layout
from agent.files.cpucounters import CpuCounters

V1 = Layout(version=1)
V2 = Layout(version=2)


def write(root: Path, layout: Layout, kubepods_us: int, best_effort_us: int) -> None:
    """The files that the kernel has for both groups."""
    for group, used in ((layout.root, kubepods_us), (layout.best_effort, best_effort_us)):
        folder = root / ("cpuacct" if layout.version == 1 else "") / group.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        if layout.version == 1:
            (folder / "cpuacct.usage").write_text(f"{used * 1000}\n")
        else:
            (folder / "cpu.stat").write_text(f"usage_usec {used}\nuser_usec 0\nsystem_usec 0\n")


@pytest.mark.parametrize("layout", [V1, V2], ids=["v1", "v2"])
def test_both_are_read_again_and_again(tmp_path: Path, layout: Layout) -> None:
    """In nanoseconds, by what the files say then."""
    write(tmp_path, layout, 7000, 3000)
    counters = CpuCounters(tmp_path, layout)
    assert not counters.working
    first = counters.sample()
    assert first is not None and (first.kubepods_ns, first.best_effort_ns) == (7_000_000, 3_000_000)
    write(tmp_path, layout, 9000, 3500)
    second = counters.sample()
    assert second is not None and (second.kubepods_ns, second.best_effort_ns) == (9_000_000, 3_500_000)
    assert second.monotonic_seconds >= first.monotonic_seconds
    assert counters.working and counters.unreadable == 0
    counters.close()


def test_one_alone_is_no_sample(tmp_path: Path) -> None:
    """A failure is counted; one alone does not mean that it works no more, ten do; then it comes back."""
    write(tmp_path, V2, 7000, 3000)
    counters = CpuCounters(tmp_path, V2)
    assert counters.sample() is not None
    stat = tmp_path / V2.best_effort.lstrip("/") / "cpu.stat"
    stat.write_text("nothing\n")
    assert counters.sample() is None
    assert (counters.unreadable, counters.working) == (1, True)
    for _ in range(9):
        assert counters.sample() is None
    assert (counters.unreadable, counters.working) == (10, False)
    write(tmp_path, V2, 8000, 3000)
    assert counters.sample() is not None
    assert counters.working
    counters.close()
