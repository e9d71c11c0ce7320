"""Measured use of nodes, from NodeMetrics and agents' reports; costs nothing where neither is there."""

from __future__ import annotations

from kube import objects
from kube.dialects.koordinator import nodemetric, usagethresholds
from model.node import Node
from model.nodemetric import NodeMetric
from model.report import NodeReport
from scheduler.cache.loads import Loads
from scheduler.core.ledger.charge import Charge
from scheduler.core.ledger.ledger import Ledger
from scheduler.core.load.arrays import LoadArrays
from scheduler.core.load.node import REPORT_SECONDS
from scheduler.core.load.policy import LoadPolicy

_UNREAD = NodeMetric()


class MeasuredLoads:
    """`now` is Unix seconds by our clock; the pods on the nodes are followed from the first measurement on."""

    def __init__(self, policy: LoadPolicy, ledger: Ledger) -> None:
        self._loads = Loads(policy)
        self._ledger = ledger
        self._follows = False

    def configure(self, policy: LoadPolicy, now: float) -> None:
        """Other settings hold for what is measured and estimated."""
        if policy == self._loads.policy:
            return
        self._loads.configure(policy)
        for charge in self._ledger.charges() if self._follows else ():
            self.put(charge, now)

    def put(self, charge: Charge, now: float) -> None:
        """The pod is on its node, or about to be."""
        if self._follows and charge.pod is not None:
            self._loads.put(charge.pod, charge.pod_class, charge.node, now)

    def remove(self, uid: str) -> None:
        self._loads.remove(uid)

    def node(self, node: Node) -> None:
        """The node's own limits. Raises ConfigurationFault naming node and annotation."""
        self._loads.limits(node.name, usagethresholds.load_limits(node.annotations, f"Node {node.name}"))

    def forget(self, node: str) -> None:
        """The node is gone."""
        self._loads.forget(node)

    def metric(self, source: objects.NodeMetric, now: float, *, gone: bool) -> None:
        """Raises ConfigurationFault naming object and field; the NodeMetric then counts as one that says nothing."""
        name = source.metadata.name
        if gone:
            self._loads.metric(name, None, now)
            return
        self._follow(now)
        self._loads.metric(name, _UNREAD, now)
        found = nodemetric.node_metric(source)
        interval = nodemetric.report_policy(source).report_seconds or REPORT_SECONDS
        self._loads.metric(name, found, now, interval)

    def report(self, node: str, report: NodeReport, now: float) -> None:
        """What the node's agent says over the link."""
        self._follow(now)
        self._loads.report(node, report, now)

    def arrays(self, names: tuple[str, ...], now: float) -> LoadArrays | None:
        """The loads of these nodes in this order, None where none has a NodeMetric or a report."""
        return self._loads.arrays(names, now) if self._follows else None

    def _follow(self, now: float) -> None:
        if not self._follows:
            self._follows = True
            for charge in self._ledger.charges():
                self.put(charge, now)
