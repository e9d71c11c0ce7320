"""The newest decisions, and those who watch."""

from __future__ import annotations

import asyncio

import numpy as np
from scheduler_builders import node, pod, snapshot

from model.decision import Decision, Term, Unit
from model.reason import Reason
from scheduler.core.scores.choice import choice
from scheduler.core.scores.node_scores import ScoreAsk
from scheduler.core.snapshot.podclass import class_of
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


def test_what_is_passed_on_answers_no_query() -> None:
    """Those who watch see it; the newest of ours stays, and nothing is kept by subject."""

    async def body() -> None:
        history = DecisionHistory(3)
        history.record(decision("node/n1"))
        watching = history.watch("node/", 0)
        coming = asyncio.create_task(anext(watching))
        await asyncio.sleep(0)
        history.pass_on(decision("node/n1", Reason.COMPUTED))
        assert (await coming).reason is Reason.COMPUTED
        newest = history.newest("node/n1")
        assert newest is not None
        assert newest.reason is Reason.UNSCHEDULABLE
        history.pass_on(decision("node/n2"))
        assert history.newest("node/n2") is None
        await watching.aclose()

    asyncio.run(body())


def test_the_newest_choices_can_tell_their_scores() -> None:
    """As many as there is room for, the oldest makes it; a pod that is gone tells nothing."""
    ask = ScoreAsk(snapshot(node("n1")), np.zeros((1, 2), np.int64), np.zeros((1, 2), np.int64), class_of(pod()))
    history, one = DecisionHistory(10), choice(ask, None, np.array([0]))
    for number in range(4097):
        history.chose(f"pod/{number}", one)
    found = history.scored("pod/1")
    assert history.scored("pod/0") is None and found is not None and found.node == "n1"
    history.forget("pod/1")
    assert history.scored("pod/1") is None
