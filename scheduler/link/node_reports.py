"""Reports of agents over the link, and what is sent to them: the newest of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from model.decision import Decision
from model.pod.pod import Pod
from model.report import CheckpointSaved, EvictionCost, NodeReport
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.saved_work import job_of
from scheduler.core.preemption.eviction_cost import eviction_costs
from scheduler.history import DecisionHistory
from scheduler.ports import Clock


class ReportEntry(msgspec.Struct, frozen=True):
    """A node's newest report and when it came (Unix seconds, our clock)."""

    report: NodeReport
    received_seconds: float


class NodeReports:
    """Reports outlive their link: how old they are says what they are worth. They do not outlive their node.

    `saved` hears of each new checkpoint: job, reason (`notice` or `interval`) and status, as Meter has them.
    """

    def __init__(
        self,
        cache: ClusterCache,
        history: DecisionHistory,
        clock: Clock,
        saved: Callable[[str, str, str], None] = lambda job, reason, status: None,
    ) -> None:
        self.reports: dict[str, ReportEntry] = {}
        self.links: set[str] = set()
        self._cache = cache
        self._history = history
        self._clock = clock
        self._saved = saved

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

    def checkpoints(self, told: Iterable[tuple[str, CheckpointSaved]]) -> None:
        """Remember the newest saved states of pods, each told by its node; one from the future is of just now.

        A pod's checkpoint is one of its job, from which all members go on. A job is gone through once, however many of
        its members told something: it may have thousands.
        """
        news: dict[WorkloadId, set[str]] = {}
        for node, saved in told:
            record = self._cache.pods.record(saved.pod_uid)
            if record is not None and record.pod.spec.node_name == node:
                subject = self._cache.gangs.subject_of(record.pod)
                if self._newer(record.pod, subject, min(saved.state_seconds, self._clock())):
                    news.setdefault(subject, set()).add(record.pod.uid)
        for subject, uids in news.items():
            members = {each.uid for part in self._cache.parts(subject) for each in part.members.placed}
            self._cache.work.share(frozenset(members | uids))

    def _newer(self, pod: Pod, subject: WorkloadId, at: float) -> bool:
        """Whether that is news of the pod."""
        if not self._cache.work.report(pod.uid, at):
            return False
        told = pod.colocation.eviction.standing
        on_notice = told is not None and at >= told.since_seconds
        self._saved(job_of(pod, subject), "notice" if on_notice else "interval", "complete")
        return True

    def costs(self, node: str) -> tuple[EvictionCost, ...]:
        """What losing each best-effort pod of the node would cost its job."""
        pods = tuple(record.pod for record in self._cache.pods.on_node(node))
        gangs = {pod.spec.gang.key for pod in pods if pod.spec.gang is not None}
        surplus = {key: self._cache.surplus(key) for key in gangs}
        return eviction_costs(pods, surplus, self._cache.saved, self._clock())
