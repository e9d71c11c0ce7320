"""Estimates of a pod's use before it is measured.

Source: Koordinator plugins/loadaware/estimator/default_estimator.go and pod_assign_cache.go. The request is read under
the name of the pod's band (batch-cpu for a batch pod) but stands for the node's own CPU and memory, against whose
allocatable it is measured. Unlike Koordinator, which takes free pods to use nothing, they count by their native
request.
"""

from __future__ import annotations

from model.pod.pod import Pod
from model.qos import PriorityBand
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY
from scheduler.core.load.policy import LoadPolicy
from scheduler.core.snapshot.podclass import ClassMemo, PodClass

_UNASKED_CPU_MILLIS = 250
_UNASKED_MEMORY_BYTES = 200 << 20
_LARGEST = 1 << 55
"""No pod is taken to use more: percentages of it stay inside int64, whatever factor it names for itself."""
_OF_BAND = {
    PriorityBand.BATCH: (BATCH_CPU, BATCH_MEMORY),
    PriorityBand.MID: (MID_CPU, MID_MEMORY),
}
_ESTIMATES: ClassMemo[Usage] = ClassMemo()


def estimate(pod_class: PodClass, policy: LoadPolicy) -> Usage:
    """The larger of limit and request times the factor, at most the limit; 250 milli and 200 MiB where neither is."""
    return _ESTIMATES.get(pod_class, policy, lambda: _estimated(pod_class, policy))


def _estimated(pod_class: PodClass, policy: LoadPolicy) -> Usage:
    requests, limits = dict(pod_class.request), dict(pod_class.estimate.limits)
    cpu, memory = _OF_BAND.get(pod_class.estimate.band, (CPU, MEMORY))
    own = dict(pod_class.estimate.load.scaling_pct) if policy.custom_estimates else {}
    return Usage(
        _scaled(requests.get(cpu, 0), limits.get(cpu, 0), own.get(CPU, policy.cpu_factor_pct)) or _UNASKED_CPU_MILLIS,
        _scaled(requests.get(memory, 0), limits.get(memory, 0), own.get(MEMORY, policy.memory_factor_pct))
        or _UNASKED_MEMORY_BYTES,
    )


def _scaled(request: int, limit: int, factor_pct: int) -> int:
    """Rounded half up; 0 where nothing is asked."""
    scaled = min((2 * max(request, limit) * factor_pct + 100) // 200, _LARGEST)
    return min(scaled, limit) if limit > 0 else scaled


def estimated_until(pod: Pod, assigned_seconds: float, policy: LoadPolicy) -> float:
    """Unix time until which the estimate stands in for measurements, whatever they say; 0 where nothing says so."""
    scheduled, initialized = policy.after_scheduled_seconds or 0.0, policy.after_initialized_seconds or 0.0
    if policy.custom_estimates:
        own = pod.colocation.load
        scheduled = scheduled if own.after_scheduled_seconds is None else own.after_scheduled_seconds
        initialized = initialized if own.after_initialized_seconds is None else own.after_initialized_seconds
    if initialized > 0 and pod.status.initialized_seconds > 0:
        return pod.status.initialized_seconds + initialized
    return assigned_seconds + scheduled if scheduled > 0 else 0.0
