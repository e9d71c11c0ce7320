"""Who has which CPUs of a node, and that a node without such pods is forgotten."""

from __future__ import annotations

from model.cpubinding import BoundCpus
from scheduler.core.ledger.cpu_account import CpuAccount


def test_account() -> None:
    """What came and did not go is there; a pod that is not there cannot go."""
    account = CpuAccount()
    account.add("n1", "a", BoundCpus(0b11))
    account.add("n1", "b", BoundCpus(0b100))
    account.remove("n1", "a")
    account.remove("n1", "nobody")
    account.remove("n2", "b")
    assert dict(account.of("n1")) == {"b": BoundCpus(0b100)}
    account.remove("n1", "b")
    assert dict(account.of("n1")) == dict(account.of("n2")) == {}
