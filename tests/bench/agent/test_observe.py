"""The whole reading benchmark in small, on this host's own cgroups."""

from __future__ import annotations

import os

import pytest

from bench.agent.observe import BenchFault, ObservationEffort, ReaderProcess, observe
from bench.hierarchies import CGROUP_ROOT, discover
from bench.tree import BenchTree, place
from model.fault import KernelFault

TINY = ObservationEffort(hot_rounds=1, hot_passes=2, paced_rounds=1, paced_passes=2, interval_seconds=0.01)


def able() -> bool:
    try:
        discover()
    except KernelFault:
        return False
    return os.geteuid() == 0


needs_cgroups = pytest.mark.skipif(not able(), reason="needs root and writable cgroups")


def left() -> list[str]:
    name = f"sublet-bench-{os.getpid()}"
    return [str(path) for pattern in (name, f"*/{name}") for path in CGROUP_ROOT.glob(pattern)]


@pytest.mark.kernel
@needs_cgroups
def test_all_readers_agree_and_nothing_is_left() -> None:
    """Ours, plain Python and what could be compiled read a small tree; then it is gone."""
    result = observe(discover(), 3, 2, TINY)
    assert {"ours", "tick", "plain"} <= set(result.costs) <= {"ours", "tick", "plain", "floor", "go"}
    assert set(result.absent) == {"floor", "go"} - set(result.costs)
    assert all(cost.hot_ms > 0 and cost.paced_ms > 0 for cost in result.costs.values())
    assert result.files == sum(result.groups.values()) > 40
    assert left() == []


@pytest.mark.kernel
@needs_cgroups
def test_an_error_inside_still_removes_the_tree() -> None:
    """Whatever happens while the tree stands."""
    with pytest.raises(ZeroDivisionError), BenchTree(discover(), [place(0)]):
        assert left() != []
        raise ZeroDivisionError
    assert left() == []


def test_a_reader_that_ends_early_is_named() -> None:
    """Not a hang, and not a traceback about a pipe."""
    with pytest.raises(BenchFault, match="reader gone: ended early"):
        ReaderProcess("gone", ["/bin/true"])
