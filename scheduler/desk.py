"""What agents report over the link, and what they are to know: newest word wins."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from model.decision import Decision
from model.report import CheckpointSaved, EvictionCost, NodeReport
from scheduler import facts
from scheduler.cache import ClusterCache
from scheduler.core.cost import eviction_costs
from scheduler.history import DecisionHistory
from scheduler.ports import Clock


class ReportEntry(msgspec.Struct, frozen=True):
    """A node's newest report and when it came (Unix seconds, our clock)."""

    report: NodeReport
    received_seconds: float


class NodeDesk:
    """Reports outlive their link: how old they are says what they are worth."""

    def __init__(
        self, cache: ClusterCache, history: DecisionHistory, clock: Clock, tell: Callable[[facts.Fact], None]
    ) -> None:
        self.reports: dict[str, ReportEntry] = {}
        self.links: set[str] = set()
        self._cache = cache
        self._history = history
        self._clock = clock
        self._tell = tell
        self._saved: dict[str, float] = {}

    def connected(self, node: str) -> None:
        self.links.add(node)

    def disconnected(self, node: str) -> None:
        self.links.discard(node)

    def report(self, node: str, report: NodeReport) -> None:
        """Keep the newest report of a node; one that lends more wakes workloads that did not fit."""
        before = self.reports.get(node)
        self.reports[node] = ReportEntry(report, self._clock())
        if _lends_more(before.report if before else None, report):
            self._tell(facts.MoreToLend(node))

    def decision(self, node: str, decision: Decision) -> None:
        """An agent's decision joins ours for those who watch."""
        self._history.record(decision)

    def checkpoint(self, saved: CheckpointSaved) -> None:
        """Remember the newest checkpoint of a pod we know."""
        record = self._cache.record(saved.pod_uid)
        if record is not None:
            self._saved[saved.pod_uid] = max(saved.saved_at_seconds, self._saved.get(saved.pod_uid, 0.0))
        for uid in [uid for uid in self._saved if self._cache.record(uid) is None]:
            del self._saved[uid]

    def costs(self, node: str) -> tuple[EvictionCost, ...]:
        """What losing each best-effort pod of the node would cost its job."""
        pods = self._cache.on_node(node)
        gangs = {pod.gang.key: f"gang/{pod.gang.key}" for pod in pods if pod.gang is not None}
        surplus = {key: self._cache.surplus(subject) for key, subject in gangs.items()}
        return eviction_costs(pods, surplus, self._saved, self._clock())


def _lends_more(before: NodeReport | None, after: NodeReport) -> bool:
    known = {decision.name: decision.value for decision in before.reclaimable} if before else {}
    return any(decision.value > known.get(decision.name, 0) for decision in after.reclaimable)
