"""An agent that observes: which offers it withdraws, and until when."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from agent.ports import TickResult
from agent.run.withdrawal import LeftoverOffer
from kube.objects import Condition
from model.reason import Reason
from model.resources import BATCH_CPU, ResourceVector


class FakeNode:
    """Counts withdrawals."""

    def __init__(self) -> None:
        self.withdrawn: list[Reason] = []

    def take(self, result: TickResult) -> None: ...

    async def withdraw(self, reason: Reason) -> None:
        self.withdrawn.append(reason)


def offering(build: Any, amount: int, *, pods: bool = True) -> TickResult:
    node = build.node()
    more = ResourceVector({**node.allocatable.amounts, BATCH_CPU: amount})
    facts = build.facts(node=msgspec.structs.replace(node, allocatable=more))
    made: TickResult = build.result(0, facts=facts if pods else msgspec.structs.replace(facts, pods=None))
    return made


def play(steps: list[tuple[TickResult, str | None]]) -> list[int]:
    """How often it was withdrawn after each tick, by the Node's word of that moment."""

    async def run() -> list[int]:
        node, word = FakeNode(), [""]

        def condition() -> Condition | None:
            return None if word[0] is None else Condition("ColocationReady", "True", word[0])

        taking = LeftoverOffer(node, condition)
        running = asyncio.create_task(taking.run())
        counts = []
        for result, word[0] in steps:  # type: ignore[assignment]
            taking.take(result)
            for _ in range(4):
                await asyncio.sleep(0)
            counts.append(len(node.withdrawn))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert set(node.withdrawn) <= {Reason.OBSERVING}
        return counts

    return asyncio.run(run())


CASES: dict[str, tuple[int, str | None, bool, int]] = {
    "an agent lent, and is gone": (900, "LendingActive", True, 1),
    "the leader withdrew already": (0, "AgentNotRunning", True, 0),
    "nobody of ours ever spoke": (900, None, True, 0),
    "after our last word somebody else lends": (900, "Observing", True, 0),
    "what runs is not known yet": (900, "LendingActive", False, 0),
}


@pytest.mark.parametrize(("amount", "word", "pods", "times"), CASES.values(), ids=CASES)
def test_which_offers(build: Any, amount: int, word: str | None, pods: bool, times: int) -> None:
    assert play([(offering(build, amount, pods=pods), word)]) == [times]


def test_what_running_pods_hold_goes_when_they_do(build: Any) -> None:
    """Our own word is on the Node by then; once nothing stands, what comes is somebody else's."""
    held, gone = (offering(build, 300), "Observing"), (offering(build, 0), "Observing")
    assert play([(offering(build, 900), "LendingActive"), held, gone, held]) == [1, 2, 2, 2]
