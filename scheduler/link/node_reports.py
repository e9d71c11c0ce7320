"""Reports of agents over the link, and what is sent to them: the newest of each."""

from __future__ import annotations

import msgspec

from model.decision import Decision
from model.report import CheckpointSaved, EvictionCost, NodeReport
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.preemption.eviction_cost import eviction_costs
from scheduler.history import DecisionHistory
from scheduler.ports import Clock


class ReportEntry(msgspec.Struct, frozen=True):
    """A node's newest report and when it came (Unix seconds, our clock)."""

    report: NodeReport
    received_seconds: float


class NodeReports:
    """Reports outlive their link: how old they are says what they are worth. They do not outlive their node."""

    def __init__(self, cache: ClusterCache, history: DecisionHistory, clock: Clock) -> None:
        self.reports: dict[str, ReportEntry] = {}
        self.links: set[str] = set()
        self._cache = cache
        self._history = history
        self._clock = clock

    def connected(self, node: str) -> None:
        self.links.add(node)

    def disconnected(self, node: str) -> None:
        self.links.discard(node)
        for name in self.reports.keys() - self._cache.nodes.keys() - self.links:
            del self.reports[name]

    def report(self, node: str, report: NodeReport) -> None:
        """Keep the newest report of a node, and what it says of the node's load."""
        now = self._clock()
        self.reports[node] = ReportEntry(report, now)
        self._cache.loads.report(node, report, now)

    def decision(self, node: str, decision: Decision) -> None:
        """An agent's decision joins ours for those who watch: about its node or a cgroup there, nothing else."""
        own = f"node/{node}"
        if decision.subject == own:
            self._history.pass_on(decision)
        elif decision.subject.startswith("cgroup/"):
            self._history.pass_on(msgspec.structs.replace(decision, subject=f"{own}/{decision.subject}"))

    def checkpoint(self, node: str, saved: CheckpointSaved) -> None:
        """Remember the newest checkpoint of a pod that runs on the node; one from the future was saved just now."""
        record = self._cache.record(saved.pod_uid)
        if record is not None and record.pod.spec.node_name == node:
            known = self._cache.saved
            at = min(saved.saved_at_seconds, self._clock())
            known[saved.pod_uid] = max(at, known.get(saved.pod_uid, 0.0))

    def costs(self, node: str) -> tuple[EvictionCost, ...]:
        """What losing each best-effort pod of the node would cost its job."""
        pods = self._cache.on_node(node)
        gangs = {pod.spec.gang.key for pod in pods if pod.spec.gang is not None}
        surplus = {key: self._cache.surplus(key) for key in gangs}
        return eviction_costs(pods, surplus, self._cache.saved, self._clock())
