"""Silence is told from a wrong clock, and only what an agent of ours offered is taken back."""

from __future__ import annotations

from typing import Any

import pytest

from model.lender import Lender
from scheduler.controllers.withdrawal_plan import LastHeartbeat, heard, overdue, silent_at

AFTER = 900.0
BATCH = ("kubernetes.io/batch-cpu",)


def lender(heartbeat: float | None = 1000.0, **changes: Any) -> Lender:
    return Lender("n", **{"version": "1", "offered": BATCH, "heartbeat_seconds": heartbeat, "ready": True, **changes})


@pytest.mark.parametrize(
    ("name", "known", "after", "moment"),
    [
        ("a clock that is right: by the date", LastHeartbeat(1000.0, 1000.0), AFTER, 1900.0),
        ("a new leader waits three beats before it trusts an old date", LastHeartbeat(1000.0, 5000.0), AFTER, 5180.0),
        ("a new leader and a date not so old: by the date", LastHeartbeat(4500.0, 5000.0), AFTER, 5400.0),
        ("a clock that is ahead: by our own", LastHeartbeat(99_000.0, 1000.0), AFTER, 1900.0),
        ("a clock far behind: after three beats", LastHeartbeat(0.0, 5000.0), AFTER, 5180.0),
        ("a shorter time than three beats is waited for whole", LastHeartbeat(0.0, 5000.0), 90.0, 5090.0),
    ],
)
def test_silent_at(name: str, known: LastHeartbeat, after: float, moment: float) -> None:
    """The moment, whatever the node's clock says."""
    assert silent_at(known, after) == moment, name
    assert not overdue(lender(known.heartbeat_seconds), known, after, moment - 0.001)
    assert overdue(lender(known.heartbeat_seconds), known, after, moment)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("nothing is offered", lender(offered=())),
        ("no agent of ours ever spoke for the node", lender(None)),
    ],
)
def test_what_is_not_ours_to_withdraw(name: str, word: Lender) -> None:
    """Another program's amounts stay, however old they are."""
    assert not overdue(word, heard(None, word, 0.0), AFTER, 1e9), name


def test_only_a_new_heartbeat_counts_as_heard() -> None:
    """Other changes of the Node do not keep a silent agent alive; an agent that writes an older date is alive."""
    first = heard(None, lender(1000.0), 1010.0)
    assert first == LastHeartbeat(1000.0, 1010.0)
    assert heard(first, lender(1000.0, version="2", labels={"a": "b"}), 1500.0) == first
    assert heard(first, lender(900.0), 1500.0) == LastHeartbeat(900.0, 1500.0)
