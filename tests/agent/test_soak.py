"""A day of ticks with pods that come and go: what is remembered stays bounded."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import pytest

from agent.ports import TickResult
from agent.report.journal import LineWriter
from agent.report.status import AgentStatus
from agent.settings import AgentSettings
from agent.tick import Tick
from tests.agent.simulated_node import LAYOUT, SimulatedNode

TICKS = 100_000
WARM_UP_TICKS = 10_000
EVERY_TICKS = 1_000
PODS = 20


class JournalSink:
    """Makes the journal's lines and lets them go."""

    def __init__(self) -> None:
        self._writer = LineWriter()
        self.bytes = 0

    def take(self, result: TickResult) -> None:
        self.bytes += len(self._writer.line(result))


class Size(NamedTuple):
    """What the tick remembers, encoded, and all memory blocks of this process, most of them Python's own."""

    state_bytes: int
    blocks: int


def sizes(ticks: int) -> Iterator[Size]:
    """One each thousand ticks after the warm-up."""
    node = SimulatedNode(11, PODS)
    journal, status = JournalSink(), AgentStatus(1.0, lambda: 0.0)
    tick = Tick(LAYOUT, AgentSettings(), node.ports(), (journal, status))
    for number in range(1, ticks + 1):
        node.advance()
        result = tick.run()
        if number > WARM_UP_TICKS and number % EVERY_TICKS == 0:
            gc.collect()
            assert result.usage is not None and len(result.usage.pods) > PODS // 2
            yield Size(len(msgspec.msgpack.encode(tick.state)), sys.getallocatedblocks())
    assert status.ticks == ticks and journal.bytes > 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_is_remembered_stays_bounded() -> None:
    """In the second half neither the tick's state nor the process's memory outgrows the first by more than its wobble.

    One block kept of every pod would be 4,500 more of some 140,000.
    """
    found = list(sizes(TICKS))
    early, late = found[: len(found) // 2], found[len(found) // 2 :]
    assert max(size.state_bytes for size in late) <= 1.05 * max(size.state_bytes for size in early)
    assert max(size.blocks for size in late) <= 1.01 * max(size.blocks for size in early)
