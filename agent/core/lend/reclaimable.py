"""Reclaimable: batch and mid resources that a node may lend now, by zone, and what is to be written to the Node.

One function for the agent's tick, the simulation and the replay. Facts that are missing or too old lend nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agent.core.lend.batch import batch, batch_in_zones
from agent.core.lend.high_priority import high_priority_pods, kept, kept_by_pods
from agent.core.lend.lending_scope import Lendable, SystemUse, lendables, node_scope, system_use
from agent.core.lend.mid import MidFacts, mid
from agent.core.lend.normalization import Ratio, normalization_ratio
from agent.core.lend.prepare import origin, prepared, prepared_in_zone
from agent.core.observe.exclusive_cpu import idle_millis
from model.decision import Decision
from model.node import Node
from model.nodecolocation import NodeColocation
from model.nodemetric import NodeMetric
from model.pod.pod import Pod
from model.qos import PriorityBand
from model.reason import Reason
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY, ResourceVector
from model.strategy import ColocationStrategy, NormalizationStrategy
from model.topology import CpuBasics, KubeletPolicy, Zone

_ABOVE_BATCH = (PriorityBand.PROD, PriorityBand.MID)
_ABOVE_MID = (PriorityBand.PROD,)
_NO_NORMALIZATION = NormalizationStrategy()


class LendingFacts(msgspec.Struct, frozen=True):
    """All that lending depends on besides settings; None is what is not known.

    `now` is Unix time, `pods_age_seconds` how long the source of the pods was silent, `cpu` what the machine's CPUs
    are, `kubelet_policy` whether the kubelet gives CPUs away, `colocation` what the Node's annotations say,
    `settings_known` whether the documents that may limit lending were looked up, `settings_deleted` whether their
    ConfigMap was there and is not any more.
    """

    node: Node | None
    pods: tuple[Pod, ...] | None
    metric: NodeMetric | None
    now: float
    pods_age_seconds: float = 0.0
    zones: tuple[Zone, ...] = ()
    cpu: CpuBasics | None = None
    kubelet_policy: KubeletPolicy = KubeletPolicy.NONE
    colocation: NodeColocation = NodeColocation()
    settings_known: bool = True
    settings_deleted: bool = False


class ZoneLending(msgspec.Struct, frozen=True):
    """batch-cpu and batch-memory of one NUMA zone, as computed and as written; `prepared` is empty for a reset."""

    id: int
    name: str
    decisions: tuple[Decision, ...]
    prepared: tuple[Decision, ...] = ()


class NodeLending(msgspec.Struct, frozen=True):
    """`reclaimable` is batch-cpu, batch-memory, mid-cpu, mid-memory, in this order, always all four.

    `prepared` is what is written to the Node in the same order, empty when its keys are to be removed. `origin` is
    batch before other schedulers' allocations, None where the Node does not speak of them. `normalization_ratio`
    belongs in the Node's annotation, None leaves what stands there. `degraded` is why nothing is lent, None when
    lending.
    """

    reclaimable: tuple[Decision, ...]
    zones: tuple[ZoneLending, ...] = ()
    prepared: tuple[Decision, ...] = ()
    origin: ResourceVector | None = None
    normalization_ratio: float | None = None
    degraded: Reason | None = None

    @property
    def final(self) -> tuple[Decision, ...]:
        """All four as they are written, zeroes where nothing is."""
        written = {decision.name: decision for decision in self.prepared}
        return tuple(written.get(decision.name, decision) for decision in self.reclaimable)


class _Known(msgspec.Struct, frozen=True):
    """Facts that are complete and fresh."""

    node: Node
    pods: tuple[Pod, ...]
    metric: NodeMetric
    used: Usage
    system: Usage
    at_seconds: float


def lending(
    facts: LendingFacts, strategy: ColocationStrategy, normalization: NormalizationStrategy = _NO_NORMALIZATION
) -> NodeLending:
    """Every lent amount with its terms; zeroes with the reason where facts are missing or too old."""
    known = _known(facts, strategy)
    ratio = _ratio(facts, normalization)
    resources = lendables(strategy)
    if isinstance(known, Reason):
        return _withheld(facts, resources, ratio, known)
    batches, zones = _batch(facts, known, resources)
    decisions = (*batches, *_mid(facts, known, resources, strategy))
    third_party = facts.colocation.third_party
    return NodeLending(
        reclaimable=decisions,
        zones=tuple(
            ZoneLending(zone.id, zone.name, own, prepared_in_zone(own, ratio.used))
            for zone, own in zip(facts.zones, zones, strict=True)
        ),
        prepared=prepared(decisions, ratio.used, third_party or ResourceVector()),
        origin=origin(decisions, ratio.used, third_party),
        normalization_ratio=ratio.written,
    )


def _known(facts: LendingFacts, strategy: ColocationStrategy) -> _Known | Reason:
    """The facts, or why they do not allow to lend."""
    node, pods, metric = facts.node, facts.pods, facts.metric
    if not facts.settings_known:
        return Reason.SETTINGS_UNREAD
    if facts.settings_deleted:
        return Reason.SETTINGS_DELETED
    if not strategy.enable:
        return Reason.LENDING_DISABLED
    if facts.colocation.paused:
        return Reason.FLEET_PAUSED
    if node is None or pods is None:
        return Reason.PODS_UNKNOWN
    if metric is None or metric.updated_seconds is None or metric.node is None or metric.system is None:
        return Reason.NODE_METRICS_MISSING
    if facts.now - metric.updated_seconds > strategy.degrade_seconds:
        return Reason.NODE_METRICS_STALE
    if facts.pods_age_seconds > strategy.degrade_seconds:
        return Reason.PODS_STALE
    return _Known(node, pods, metric, metric.node, metric.system, metric.updated_seconds)


def _ratio(facts: LendingFacts, normalization: NormalizationStrategy) -> Ratio:
    labels = facts.node.labels if facts.node else {}
    return normalization_ratio(normalization, labels, facts.cpu, facts.colocation.normalization_ratio)


def _withheld(facts: LendingFacts, resources: tuple[Lendable, ...], ratio: Ratio, reason: Reason) -> NodeLending:
    subject = f"node/{facts.node.name}" if facts.node else "node"

    def zero(subject: str, name: str, resource: Lendable) -> Decision:
        return Decision(subject, name, 0, resource.unit, reason, (), at_seconds=facts.now)

    return NodeLending(
        reclaimable=(
            *(zero(subject, resource.batch, resource) for resource in resources),
            *(zero(subject, resource.mid, resource) for resource in resources),
        ),
        zones=tuple(
            ZoneLending(
                zone.id,
                zone.name,
                tuple(zero(f"{subject}/zone/{zone.name}", resource.batch, resource) for resource in resources),
            )
            for zone in facts.zones
        ),
        normalization_ratio=ratio.written,
        degraded=reason,
    )


def _batch(
    facts: LendingFacts, known: _Known, resources: tuple[Lendable, ...]
) -> tuple[tuple[Decision, ...], tuple[tuple[Decision, ...], ...]]:
    """Batch of the node, and of each zone."""
    use = system_use(known.system, known.metric.host_applications, _ABOVE_BATCH)
    held = high_priority_pods(known.pods, known.metric, facts.kubelet_policy)
    whole, by_resource = [], []
    for resource in resources:
        scope = node_scope(resource, known.node, facts.colocation, use)
        claimed = kept_by_pods(resource, held)
        whole.append(batch(resource, scope, kept(resource, claimed), known.at_seconds))
        if facts.zones:
            by_resource.append(batch_in_zones(resource, scope, claimed, facts.zones, known.at_seconds))
    return tuple(whole), tuple(zip(*by_resource, strict=True))


def _mid(
    facts: LendingFacts, known: _Known, resources: tuple[Lendable, ...], strategy: ColocationStrategy
) -> tuple[Decision, ...]:
    use = system_use(known.system, known.metric.host_applications, _ABOVE_MID)
    used = {pod.key: pod.usage.cpu_millis for pod in known.metric.pods}
    idle = idle_millis(known.pods, facts.kubelet_policy, {pod.uid: used.get(pod.key, 0) for pod in known.pods})
    beside = _beside_system(known.pods, known.metric, use)
    inputs = MidFacts(known.used, beside, known.metric.prod_reclaimable, known.pods, idle)
    return tuple(
        mid(resource, node_scope(resource, known.node, facts.colocation, use), inputs, strategy, known.at_seconds)
        for resource in resources
    )


def _beside_system(pods: Iterable[Pod], metric: NodeMetric, use: SystemUse) -> Usage:
    """Use of pods, what they request where that is not measured, and host applications that are not in `use`."""
    measured = {one.key: one for one in metric.pods}
    cpu = memory = 0
    for pod in pods:
        if pod.terminal:
            continue
        own, requests = measured.pop(pod.key, None), pod.spec.requests
        if own is None or CPU in own.missing:
            cpu += sum(requests[name] for name in (CPU, MID_CPU, BATCH_CPU))
        else:
            cpu += own.usage.cpu_millis
        if own is None or MEMORY in own.missing:
            memory += sum(requests[name] for name in (MEMORY, MID_MEMORY, BATCH_MEMORY))
        else:
            memory += own.usage.memory_bytes
    left = [*(one.usage for one in measured.values()), *(one.usage for one in metric.host_applications)]
    cpu += sum(one.cpu_millis for one in left) - use.host_applications.cpu_millis
    memory += sum(one.memory_bytes for one in left) - use.host_applications.memory_bytes
    return Usage(cpu, memory)
