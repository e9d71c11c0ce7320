"""The newest decisions, and those who watch."""

from __future__ import annotations

import asyncio

from model.decision import Decision, Term, Unit
from model.reason import Reason
from scheduler.history import DecisionHistory


def decision(subject: str, reason: Reason = Reason.UNSCHEDULABLE, detail: str = "") -> Decision:
    return Decision(subject, "feasible nodes", 1, Unit.NODES, reason, (Term("total nodes", 1),), detail=detail)


def test_only_a_new_reason_is_worth_a_line() -> None:
    """The same again is nothing, another detail is kept without a line, another reason is news."""
    history = DecisionHistory(10)
    assert history.record(decision("a"))
    assert not history.record(decision("a"))
    assert not history.record(decision("a", detail="x"))
    assert history.record(decision("a", Reason.SCHEDULED))
    newest = history.newest("a")
    assert newest is not None
    assert newest.reason is Reason.SCHEDULED
    history.forget("a")
    assert history.newest("a") is None


def test_watching() -> None:
    """The last of the past, then what comes, by prefix; the ring is bounded."""

    async def body() -> None:
        history = DecisionHistory(3)
        for name in ("pod/a", "gang/b", "pod/c", "pod/d"):
            history.record(decision(name))
        watching = history.watch("pod/", 2)
        assert [(await anext(watching)).subject for _ in range(2)] == ["pod/c", "pod/d"]
        history.record(decision("gang/e"))
        history.record(decision("pod/f"))
        assert (await anext(watching)).subject == "pod/f"
        everything = history.watch("", 99)
        assert [(await anext(everything)).subject for _ in range(3)] == ["pod/d", "gang/e", "pod/f"]
        await watching.aclose()
        await everything.aclose()
        assert history._watchers == []

    asyncio.run(body())
