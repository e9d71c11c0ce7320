"""Wakes are coalesced and rate-limited, none is lost, and each is counted for whom it served."""

from __future__ import annotations

from agent.core.limit.watch import WakeCause
from agent.waking import EarlyTicks


def test_the_first_goes_at_once_the_others_together() -> None:
    """One wake per half second; what came in between is served at its end."""
    woken: list[float] = []
    now = 10.0
    waking = EarlyTicks(lambda: woken.append(now))
    waking.wake_if_due(now)
    waking.ask(WakeCause.CPU_USE)
    waking.wake_if_due(now)
    assert woken == [10.0]
    for now in (10.1, 10.2, 10.3):
        waking.ask(WakeCause.MEMORY_MARK)
        waking.ask(WakeCause.CPU_USE)
        waking.wake_if_due(now)
    assert woken == [10.0]
    for now in (10.5, 10.6, 11.2):
        waking.wake_if_due(now)
    assert woken == [10.0, 10.5]
    assert (waking.wakes[WakeCause.CPU_USE], waking.wakes[WakeCause.MEMORY_MARK]) == (2, 1)


def test_what_was_seen_wakes_nobody() -> None:
    """Seeing counts, asking wakes."""
    woken: list[int] = []
    waking = EarlyTicks(lambda: woken.append(1))
    waking.saw(WakeCause.CPU_PRESSURE)
    waking.wake_if_due(0.0)
    assert woken == [] and waking.fired[WakeCause.CPU_PRESSURE] == 1 and sum(waking.wakes.values()) == 0
