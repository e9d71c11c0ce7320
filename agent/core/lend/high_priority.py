"""High-priority pods: what pods above batch keep of a resource, each pod counted once.

Source: Koordinator pkg/slo-controller/noderesource/plugins/batchresource; differences in docs/adr/0007.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from agent.core.lend.lending_scope import Lendable
from agent.core.observe.exclusive_cpu import exclusive_millis
from model.nodemetric import NodeMetric
from model.pod.pod import Pod
from model.qos import KubernetesQoS, PriorityBand
from model.report import Usage
from model.resources import BATCH_MEMORY, CPU, MEMORY, ResourceVector
from model.strategy import CalculatePolicy
from model.topology import KubeletPolicy

_BELOW = (PriorityBand.BATCH, PriorityBand.FREE)
_NOT_MEASURED = "high-priority not measured"
_DANGLING = "dangling metrics"
_UNREQUESTED = "best effort beyond requests"
_MEASURED = {
    CalculatePolicy.USAGE: "high-priority used",
    CalculatePolicy.REQUEST: "high-priority requested",
    CalculatePolicy.MAX_USAGE_REQUEST: "high-priority used or requested",
}
_NOTES = {
    _MEASURED[CalculatePolicy.USAGE]: "measured usage",
    _MEASURED[CalculatePolicy.REQUEST]: "requests, measured or not",
    _MEASURED[CalculatePolicy.MAX_USAGE_REQUEST]: "the larger of usage and request of each pod",
    _NOT_MEASURED: "requests count where usage is unknown or CPU is exclusive",
    _DANGLING: "usage of pods that are not listed as running",
    _UNREQUESTED: "memory in use that no request for batch-memory stands for",
}


class HighPriorityPod(msgspec.Struct, frozen=True, gc=False):
    """One pod above batch. `requests` is None for a metric whose pod is not live.

    `usage` is None where nothing is measured; `missing` names resources that were not, where others were.
    `unrequested`: a pod of batch or below, with what it uses beyond what it asked for of what is lent.
    """

    requests: ResourceVector | None
    usage: Usage | None
    missing: tuple[str, ...] = ()
    exclusive_cpu: bool = False
    zones: tuple[int, ...] = ()
    unrequested: bool = False


class KeptByPod(msgspec.Struct, frozen=True, gc=False):
    """What one holder keeps of one resource, under which term, and in which zones (empty: in all)."""

    term: str
    amount: int
    zones: tuple[int, ...]


class KeptAmount(msgspec.Struct, frozen=True):
    """The claims of one term together."""

    term: str
    amount: int
    pods: int

    @property
    def note(self) -> str:
        return f"{_NOTES[self.term]}; pods: {self.pods}"


def high_priority_pods(
    pods: Iterable[Pod], metric: NodeMetric, policy: KubeletPolicy = KubeletPolicy.NONE
) -> list[HighPriorityPod]:
    """All live pods above batch, then metrics of such pods that are not live (unlisted, or finished meanwhile).

    A pod that the kubelet keeps outside the best-effort root holds what it asked for there, whatever it calls itself.
    Memory of a pod inside it that it did not ask for is nobody's to lend: CPU is taken back at once, memory is not.
    """
    measured = {pod.key: pod for pod in metric.pods}
    found = []
    for pod in pods:
        if pod.terminal:
            continue
        own = measured.pop(pod.key, None)
        if pod.colocation.band not in _BELOW or pod.status.kubernetes_qos is not KubernetesQoS.BEST_EFFORT:
            usage, missing = (own.usage, own.missing) if own else (None, ())
            exclusive = exclusive_millis(pod, policy)
            requests = _at_least(pod.spec.requests, exclusive)
            found.append(HighPriorityPod(requests, usage, missing, exclusive > 0, pod.colocation.numa_zones))
        elif own is not None and MEMORY not in own.missing:
            beyond = own.usage.memory_bytes - pod.spec.requests[BATCH_MEMORY]
            if beyond > 0:
                found.append(HighPriorityPod(None, Usage(0, beyond), zones=pod.colocation.numa_zones, unrequested=True))
    found.extend(HighPriorityPod(None, own.usage) for own in measured.values() if own.band not in _BELOW)
    return found


def _at_least(requests: ResourceVector, cpu_millis: int) -> ResourceVector:
    """The requests, and no less CPU than the pod has for itself."""
    return requests if requests[CPU] >= cpu_millis else ResourceVector({**requests.amounts, CPU: cpu_millis})


def kept_by_pods(resource: Lendable, held: Iterable[HighPriorityPod]) -> list[KeptByPod]:
    """What each holder keeps of a resource under its policy."""
    return [_claim(resource, holder) for holder in held]


def _claim(resource: Lendable, holder: HighPriorityPod) -> KeptByPod:
    """What a pod leaves idle of exclusive CPU is not lent. Of a dangling metric counts what is there.

    What was lent to a mid pod was promised to it, and is not promised to a batch pod as well where requests count.
    """
    used = 0 if holder.usage is None else resource.of(holder.usage)
    if holder.requests is None:
        return KeptByPod(_UNREQUESTED if holder.unrequested else _DANGLING, used, holder.zones)
    requested = holder.requests[resource.native] + holder.requests[resource.mid]
    measured = _MEASURED[resource.policy]
    if resource.policy is CalculatePolicy.REQUEST:
        return KeptByPod(measured, requested, holder.zones)
    if holder.usage is None or resource.native in holder.missing:
        return KeptByPod(_NOT_MEASURED, requested, holder.zones)
    if resource.policy is CalculatePolicy.MAX_USAGE_REQUEST:
        return KeptByPod(measured, max(used, requested), holder.zones)
    if holder.exclusive_cpu and resource.native == CPU:
        return KeptByPod(_NOT_MEASURED, requested, holder.zones)
    return KeptByPod(measured, used, holder.zones)


def kept(resource: Lendable, claimed: Iterable[KeptByPod]) -> tuple[KeptAmount, ...]:
    """The claims summed by term; the policy's own term is always there."""
    sums: dict[str, list[int]] = {_MEASURED[resource.policy]: [0, 0]}
    for claim in claimed:
        total = sums.setdefault(claim.term, [0, 0])
        total[0] += claim.amount
        total[1] += 1
    return tuple(KeptAmount(term, amount, pods) for term, (amount, pods) in sums.items())


def kept_in_zones(
    resource: Lendable, claimed: Iterable[KeptByPod], zones: Sequence[int]
) -> tuple[tuple[KeptAmount, ...], ...]:
    """The same for each zone: a claim is split evenly over its own zones that exist, or over all.

    A share is rounded up to a fraction of the base unit, and all terms of a zone together to the unit.
    """
    found: list[list[KeptByPod]] = [[] for _ in zones]
    for claim in claimed:
        places = [place for place, zone in enumerate(zones) if zone in claim.zones] or range(len(zones))
        part = KeptByPod(claim.term, -(-claim.amount * resource.fractions // len(places)), ())
        for place in places:
            found[place].append(part)
    return tuple(tuple(_whole(resource, kept(resource, parts))) for parts in found)


def _whole(resource: Lendable, parts: Iterable[KeptAmount]) -> Iterator[KeptAmount]:
    """Fractions to units: each term is what it adds to the rounded sum, so that splitting terms rounds up only once."""
    exact = told = 0
    for part in parts:
        exact += part.amount
        amount = -(-exact // resource.fractions) - told
        told += amount
        yield KeptAmount(part.term, amount, part.pods)
