"""What an agent is shown of a machine that its node shares: never more room than there is."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.cgroups.knobs import Use
from embedded.node.kernels.partial_view import (
    Accounting,
    Part,
    Reading,
    meminfo_text,
    stat_text,
)
from embedded.node.machine.share import Claim, Share, share_of

GIB = 1 << 30
TICKS = os.sysconf("SC_CLK_TCK")


def share(of: int = 2, claim: Claim = Claim()) -> Share:  # noqa: B008
    return share_of(1, of, range(2), 8 * GIB, claim)


def use(cpu_seconds: float, gib: float = 0) -> Use:
    return Use(int(cpu_seconds * 10**9), int(gib * GIB), int(gib * GIB))


def reading(seconds: float, busy_seconds: float, available: float = 8, **pods: Use | None) -> Reading:
    named = {name.replace("_", "-"): each for name, each in pods.items()}
    return Reading(int(busy_seconds * TICKS), 8 * GIB, int(available * GIB), named, seconds)


def after(accounting: Accounting, *readings: Reading) -> Part:
    return [accounting.part(each) for each in readings][-1]


def test_each_node_bears_its_own_pods_and_a_part_of_the_rest() -> None:
    """Of 10 s busy 4 were own pods', 2 the neighbour's: 4 of nobody's pods are shared."""
    part = after(
        Accounting(share(), "n-1"),
        reading(0, 0, n_1=use(0), n_2=use(0)),
        reading(10, 10, n_1=use(4), n_2=use(2)),
    )
    assert part.busy_ticks == 6 * TICKS
    assert part.passed_ticks == 10 * TICKS


def test_what_is_only_claimed_is_in_use() -> None:
    """Of 4 claimed CPUs one is there: three are busy all the time; of 16 GiB four are."""
    part = after(Accounting(share(claim=Claim("4", "16Gi")), "n-1"), reading(0, 0, n_1=use(0)), reading(10, 0))
    assert (part.busy_ticks, part.passed_ticks) == (30 * TICKS, 40 * TICKS)
    assert part.available_bytes == 4 * GIB


def test_memory() -> None:
    """A node's room is its share less its pods' and its part of what nobody's pods hold."""
    part = Accounting(share(), "n-1").part(reading(0, 0, available=4, n_1=use(0, 1), n_2=use(0, 1)))
    assert part.available_bytes == 2 * GIB


def test_what_is_only_claimed_is_no_use() -> None:
    """`kubectl top nodes` shows the node's pods and its part of everything else, not the CPUs that are not there."""
    part = after(
        Accounting(share(claim=Claim("4", "16Gi")), "n-1"),
        reading(0, 0, n_1=use(0), n_2=use(0)),
        reading(10, 10, available=4, n_1=use(4, 1), n_2=use(2, 1)),
    )
    assert part.use == use(6, 2)


def test_counters_only_grow() -> None:
    """A neighbour that begins again counts from 0; what it used before stays used."""
    accounting = Accounting(share(), "n-1")
    before = after(accounting, reading(0, 0, n_1=use(0), n_2=use(0)), reading(10, 10, n_1=use(2), n_2=use(6)))
    gone = after(accounting, reading(11, 11, n_1=use(2), n_2=None), reading(12, 12, n_1=use(2), n_2=use(0.5)))
    assert before.busy_ticks == 3 * TICKS
    assert before.busy_ticks <= gone.busy_ticks <= before.busy_ticks + TICKS


@given(
    claimed=st.integers(100, 64_000),
    of=st.integers(1, 4),
    busy=st.integers(0, 20),
    pods=st.integers(0, 20),
    available=st.floats(0, 8),
)
def test_no_claim_makes_room(claimed: int, of: int, busy: int, pods: int, available: float) -> None:
    """What the view shows as free never exceeds what is free of the node's true share."""
    mine = share(of, Claim(f"{claimed}m", "64Gi"))
    part = after(
        Accounting(mine, "n-1"), reading(0, 0, n_1=use(0)), reading(10, max(busy, pods), available, n_1=use(pods))
    )
    assert part.passed_ticks - part.busy_ticks <= mine.cpu_millis * 10 * TICKS // 1000
    assert part.available_bytes <= min(8 * GIB // of, available * GIB)


@pytest.mark.parametrize("busy", [0, 5, 123_456_789])
def test_lengths_stay(busy: int) -> None:
    """Readers keep the files open, and a file whose length stays is never seen half."""
    parts = [Part(0, 0, 0, use(0)), Part(busy, 2 * busy, busy << 20, use(0))]
    mine = share(claim=Claim("4", "16Gi"))
    assert len({len(stat_text(part, mine, "cpu  1\ncpu0 1 1\n")) for part in parts}) == 1
    assert len({len(meminfo_text(part, mine)) for part in parts}) == 1
