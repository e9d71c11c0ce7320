"""Evictions that a node's agent may ask for: policy `sublet-agent-own-pods` of deploy/, for a pod as it is stored.

The two must say the same: the policy is asked first and may not know a pod yet that was made a moment ago.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from admission.core.podfields import LABEL_EVICTION_ENABLED, LABEL_PRIORITY_CLASS, LABEL_QOS
from model.qos import PriorityBand, QoSClass

_RANGES = (range(3000, 4000), range(5000, 6000))
"""koord-free and koord-batch; what lies between them is online."""


class StoredPod(msgspec.Struct, frozen=True):
    """Of a pod what decides; `node` is empty until it is bound, `priority` None where it has no number."""

    namespace: str
    name: str
    uid: str = ""
    node: str = ""
    labels: Mapping[str, str] = {}
    priority: int | None = None


def refusal(pod: StoredPod, node: str) -> str:
    """Why the agent of `node` may not evict it, with object, field and fix; empty where it may.

    An empty `node` is a token of before Kubernetes 1.30, which tells no node: then the class decides alone.
    """
    where = f"Pod {pod.namespace}/{pod.name}"
    if not _is_an_agents_business(pod):
        return (
            f"{where}: metadata.labels[{LABEL_QOS}] is {pod.labels.get(LABEL_QOS) or 'none'}, and neither "
            f"metadata.labels[{LABEL_PRIORITY_CLASS}] nor spec.priority says koord-batch or koord-free: an agent may "
            f"evict such pods and those of class BE alone; label it {LABEL_EVICTION_ENABLED}=true to allow it"
        )
    if node and pod.node != node:
        bound = f"is {pod.node}" if pod.node else "is empty"
        fix = f"leave it to the agent of node {pod.node}" if pod.node else "no agent may evict it before it is bound"
        return f"{where}: spec.nodeName {bound}: the agent of node {node} may not evict a pod of another node; {fix}"
    return ""


def _is_an_agents_business(pod: StoredPod) -> bool:
    """A label beats the number, as everywhere; whoever made the pod may say that the agent may."""
    if QoSClass.of(pod.labels.get(LABEL_QOS)) is QoSClass.BE or pod.labels.get(LABEL_EVICTION_ENABLED) == "true":
        return True
    if named := PriorityBand.of(pod.labels.get(LABEL_PRIORITY_CLASS)):
        return named in (PriorityBand.BATCH, PriorityBand.FREE)
    return any((pod.priority or 0) in each for each in _RANGES)
