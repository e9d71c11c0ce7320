"""PodStatus: how far a pod has come, as the API server tells it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from model.qos import KubernetesQoS


class PodPhase(StrEnum):
    """status.phase; an unset phase is PENDING."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class PodStatus(msgspec.Struct, frozen=True):
    """How far a pod has come; times are Unix seconds, 0 while what they tell of has not happened."""

    phase: PodPhase = PodPhase.PENDING
    """status.phase."""
    kubernetes_qos: KubernetesQoS = KubernetesQoS.BURSTABLE
    """status.qosClass, or what the amounts make it."""
    scheduled_seconds: float = 0.0
    """When it was bound (condition PodScheduled)."""
    initialized_seconds: float = 0.0
    """When its init containers were through (condition Initialized)."""
    started_seconds: float = 0.0
    """When its kubelet took it in (status.startTime)."""
    container_ids: Mapping[str, str] = {}
    """The runtime's ids by container name, without `runtime://`."""
    nominated_node: str = ""
    """status.nominatedNodeName: where room is made for it."""
    disrupted: bool = False
    """It is the victim of a preemption (condition DisruptionTarget)."""
    evicted: bool = False
    """It goes before its end, for whatever reason (the same condition)."""
    rejected: str = ""
    """Why its kubelet refused it (status.reason of such a failed pod), empty for every other pod."""
