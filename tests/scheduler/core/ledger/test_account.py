"""Amounts of one kind, by node and by queue."""

from __future__ import annotations

from scheduler_builders import pod

from model.resources import BATCH_CPU
from scheduler.core.ledger.account import Account
from scheduler.core.snapshot.podclass import class_of


def test_a_queue_is_told_exactly_and_forgotten_with_its_last_pod() -> None:
    """Beyond int64 too, where a node's sum is cut."""
    account, large = Account(), class_of(pod(batch_cpu=1 << 52))
    account.add(["n1"] * 3000, large, "team")
    account.add(["n2"], class_of(pod(batch_cpu=5)), "other")
    assert account.of("team") == {BATCH_CPU: 3000 << 52, "pods": 3000}
    for _ in range(3000):
        account.remove("n1", large, "team")
    assert (account.of("team"), account.of("other")) == ({}, {BATCH_CPU: 5, "pods": 1})
    assert account.nodes == {"n2": {BATCH_CPU: 5, "pods": 1}}
