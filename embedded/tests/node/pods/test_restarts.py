"""Restart policy and back-off are the kubelet's, scaled by the base."""

from __future__ import annotations

import pytest

from embedded.node.pods.restarts import delay_seconds, quick_ends, restarts


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [
        ("Always", 0, True),
        ("Always", 1, True),
        (None, 0, True),
        ("OnFailure", 0, False),
        ("OnFailure", 1, True),
        ("Never", 0, False),
        ("Never", 1, False),
    ],
)
def test_policy(policy: str | None, code: int, again: bool) -> None:
    """restartPolicy and the exit code decide alone."""
    assert restarts(policy, code) is again


def test_delays() -> None:
    """At once, then 10 s doubling up to 300 s."""
    assert [delay_seconds(ends, 10) for ends in range(9)] == [0, 0, 10, 20, 40, 80, 160, 300, 300]
    assert delay_seconds(10_000, 10) == 300


def test_long_run_starts_afresh() -> None:
    """More than ten minutes of running clear the count."""
    assert (quick_ends(5, 600, 10), quick_ends(5, 601, 10)) == (6, 1)
