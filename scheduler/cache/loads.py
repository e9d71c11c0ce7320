"""Loads of nodes, present and expected, kept up to date from NodeMetrics, agents' reports and pods."""

from __future__ import annotations

import msgspec

from model.loadlimits import LoadLimits
from model.nodemetric import NodeMetric
from model.pod.pod import Pod
from model.qos import PriorityBand
from model.report import NodeReport
from scheduler.core.load.arrays import LoadArrays, load_arrays, with_changed_rows
from scheduler.core.load.estimate import estimate, estimated_until
from scheduler.core.load.node import REPORT_SECONDS, Assigned, Measured, NodeLoad, from_metric, from_report, node_load
from scheduler.core.load.policy import LoadPolicy
from scheduler.core.snapshot.podclass import PodClass


class _Node(msgspec.Struct):
    """What is known of one node; `unfilled`: its NodeMetric does not say what it uses; `pods` by uid."""

    metric: Measured | None = None
    unfilled: bool = False
    live: Measured | None = None
    limits: LoadLimits = LoadLimits()
    pods: dict[str, Assigned] = msgspec.field(default_factory=dict)

    @property
    def empty(self) -> bool:
        return not (self.documented or self.pods) and self.limits == LoadLimits()

    @property
    def documented(self) -> bool:
        """Whether there is a NodeMetric or a report, whatever it says."""
        return self.unfilled or self.metric is not None or self.live is not None


class Loads:
    """`now` is Unix seconds by our clock. `arrays` computes nodes again that changed since the last one, no others."""

    def __init__(self, policy: LoadPolicy) -> None:
        self.policy = policy
        self._nodes: dict[str, _Node] = {}
        self._node_of: dict[str, str] = {}
        self._changed: set[str] = set()
        self._documented: set[str] = set()
        self._names: tuple[str, ...] = ()
        self._rows: dict[str, int] = {}
        self._arrays: LoadArrays | None = None

    def configure(self, policy: LoadPolicy) -> None:
        """Other settings hold; the pods on the nodes are to be put again."""
        self.policy = policy
        self._arrays = None

    def metric(
        self, node: str, metric: NodeMetric | None, now: float, interval_seconds: float = REPORT_SECONDS
    ) -> None:
        """The node's NodeMetric, None where it is gone; `interval_seconds` is how often it is written."""
        found = from_metric(metric, now, interval_seconds) if metric is not None else None
        known = self._change(node)
        known.metric, known.unfilled = found, metric is not None and found is None
        self._settle(node)

    def report(self, node: str, report: NodeReport, now: float) -> None:
        """What the node's agent says over the link."""
        self._change(node).live = from_report(report, now, self.policy)
        self._settle(node)

    def limits(self, node: str, limits: LoadLimits) -> None:
        """The node's own limits; unset ones leave the settings in force."""
        known = self._nodes.get(node)
        if limits != (known.limits if known else LoadLimits()):
            self._change(node).limits = limits
            self._settle(node)

    def put(self, pod: Pod, pod_class: PodClass, node: str, now: float) -> None:
        """The pod is on the node or is being bound to it; told again when it changes, at no cost where nothing does."""
        if self._node_of.get(pod.uid, node) != node:
            self.remove(pod.uid)
        before = self._nodes[node].pods.get(pod.uid) if node in self._nodes else None
        assigned = self._assigned(pod, pod_class, before, now)
        if assigned != before:
            self._change(node).pods[pod.uid] = assigned
            self._node_of[pod.uid] = node

    def remove(self, uid: str) -> None:
        """The pod ended, or was not bound after all; what it was measured to use shows until the next measurement."""
        node = self._node_of.pop(uid, None)
        if node is not None:
            del self._change(node).pods[uid]
            self._settle(node)

    def forget(self, node: str) -> None:
        """The node is gone, and what was measured of it; its pods stay until they are removed."""
        if node in self._nodes:
            known = self._change(node)
            known.metric, known.unfilled, known.live, known.limits = None, False, None, LoadLimits()
            self._settle(node)

    def arrays(self, names: tuple[str, ...], now: float) -> LoadArrays | None:
        """The loads of these nodes, in this order, to be changed at will; None where no node has metric or report."""
        if not self._documented:
            return None
        if self._arrays is None or names != self._names:
            self._names, self._rows = names, {name: row for row, name in enumerate(names)}
            self._arrays = load_arrays([self._load(name) for name in names], self.policy, now)
        else:
            changed = [(self._rows[name], self._load(name)) for name in sorted(self._changed) if name in self._rows]
            self._arrays = with_changed_rows(self._arrays, changed, now)
        self._changed.clear()
        return self._arrays.copy()

    def _assigned(self, pod: Pod, pod_class: PodClass, before: Assigned | None, now: float) -> Assigned:
        scheduled = pod.status.scheduled_seconds
        at = min(scheduled, now) if scheduled else before.assigned_seconds if before else now
        return Assigned(
            pod.key,
            estimate(pod_class, self.policy),
            at,
            prod=pod.colocation.band is PriorityBand.PROD,
            best_effort=pod.best_effort,
            until_seconds=estimated_until(pod, at, self.policy),
        )

    def _load(self, name: str) -> NodeLoad:
        known = self._nodes.get(name)
        if known is None:
            return NodeLoad()
        found = node_load(known.metric, known.live, tuple(known.pods.values()), self.policy, known.limits)
        return msgspec.structs.replace(found, unfilled=True) if known.unfilled else found

    def _change(self, node: str) -> _Node:
        self._changed.add(node)
        return self._nodes.setdefault(node, _Node())

    def _settle(self, node: str) -> None:
        """Keep book of who has a document, and keep no node of which nothing is known."""
        known = self._nodes[node]
        if known.documented:
            self._documented.add(node)
        else:
            self._documented.discard(node)
        if known.empty:
            del self._nodes[node]
