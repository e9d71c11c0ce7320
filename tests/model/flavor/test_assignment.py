"""A workload's flavours as a whole are as good as the worst of its pod sets."""

from __future__ import annotations

from model.flavor.assignment import FlavorAssignment, FlavorMode, PodSetFlavors

FITS = PodSetFlavors("a", 2, {"cpu": "x"}, {("x", "cpu"): 2})
EVICTS = PodSetFlavors("b", 1, {"cpu": "x"}, {("x", "cpu"): 1, ("y", "gpu"): 1}, FlavorMode.PREEMPT, 2, "no room")


def test_the_worst_counts() -> None:
    both = FlavorAssignment((FITS, EVICTS, EVICTS))
    assert (both.mode, both.borrowing, both.reason) == (FlavorMode.PREEMPT, 2, "no room")
    assert both.amounts == {("x", "cpu"): 4, ("y", "gpu"): 2}


def test_nothing_fits_at_once() -> None:
    assert (FlavorAssignment(()).mode, FlavorAssignment(()).borrowing) == (FlavorMode.FIT, 0)


def test_who_would_have_to_go() -> None:
    evicting = {mode for mode in FlavorMode if mode.evicts}
    assert evicting == {FlavorMode.PREEMPT, FlavorMode.RECLAIM}
