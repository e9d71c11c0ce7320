"""Kubernetes' QoS class of a pod; it decides which cgroup the pod lives under."""

from __future__ import annotations

from enum import StrEnum


class KubernetesQoS(StrEnum):
    """Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/"""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"
