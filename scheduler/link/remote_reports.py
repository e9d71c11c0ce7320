"""Node reports in the link process: what agents say goes up in frames, what they are to know came down in some."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

import msgspec

from model.decision import Decision
from model.report import CheckpointSaved, EvictionCost, NodeReport
from scheduler.link.frames import FromLinkProcess
from scheduler.link.newest_saved import NewestSaved
from scheduler.ports import Clock

_MOST_DECISIONS = 4096
_FRAME_REPORTS = 256
"""Bounds how long the scheduling process is kept by one frame."""


class RemoteNodeReports:
    """scheduler.ports.NodeReportSink. Newest wins: a node has one link state, one report, one list of costs waiting."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wake = asyncio.Event()
        self._links: dict[str, bool] = {}
        self._reports: dict[str, NodeReport] = {}
        self._saved = NewestSaved()
        self._decisions: deque[tuple[str, Decision]] = deque()
        self._dropped = 0
        self._costs: dict[str, tuple[float, tuple[EvictionCost, ...]]] = {}

    def connected(self, node: str) -> None:
        self._links[node] = True
        self._wake.set()

    def disconnected(self, node: str) -> None:
        self._costs.pop(node, None)
        self._links[node] = False
        self._wake.set()

    def report(self, node: str, report: NodeReport) -> None:
        self._reports.pop(node, None)
        self._reports[node] = report
        self._wake.set()

    def decision(self, node: str, decision: Decision) -> None:
        """They are for watchers; what does not fit is counted."""
        if len(self._decisions) >= _MOST_DECISIONS:
            self._decisions.popleft()
            self._dropped += 1
        self._decisions.append((node, decision))
        self._wake.set()

    def checkpoints(self, told: Iterable[tuple[str, CheckpointSaved]]) -> None:
        self._saved.put(told)
        self._wake.set()

    def costs(self, node: str) -> tuple[EvictionCost, ...]:
        """What came last for the node, as old as it is by this moment; nothing before anything came."""
        came, costs = self._costs.get(node, (0.0, ()))
        passed = max(0.0, self._clock() - came)
        return tuple(_aged(cost, passed) for cost in costs)

    def learn(self, costs: dict[str, tuple[EvictionCost, ...]]) -> None:
        """Costs that came down."""
        now = self._clock()
        self._costs.update((node, (now, told)) for node, told in costs.items())

    def forget(self) -> None:
        """Nothing of what waits or came down counts for another leader."""
        self._reports.clear()
        self._saved.take()
        self._costs.clear()
        self._decisions.clear()

    async def take(self) -> FromLinkProcess:
        """The next frame, once there is something to say."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._links or self._reports or self._saved or self._decisions:
                return self._frame()

    def _frame(self) -> FromLinkProcess:
        first = list(self._reports)[:_FRAME_REPORTS]
        reports = {node: self._reports.pop(node) for node in first}
        if self._reports:
            self._wake.set()
        frame = FromLinkProcess(
            links=self._links,
            reports=reports,
            saved=self._saved.take(),
            decisions=list(self._decisions),
            dropped=self._dropped,
        )
        self._links, self._dropped = {}, 0
        self._decisions.clear()
        return frame


def _aged(cost: EvictionCost, seconds: float) -> EvictionCost:
    if cost.checkpoint_age_seconds is None:
        return cost
    return msgspec.structs.replace(cost, checkpoint_age_seconds=cost.checkpoint_age_seconds + seconds)
