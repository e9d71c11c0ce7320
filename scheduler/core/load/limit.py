"""The load filter: no pod where the node would use more than its limits allow.

Source: Koordinator plugins/loadaware/load_aware.go (Filter, filterNodeUsage).
"""

from __future__ import annotations

import msgspec
import numpy as np

from model.qos import PriorityBand
from model.resources import CPU, MEMORY
from scheduler.core.load.arrays import LoadArrays, capacities
from scheduler.core.load.estimate import estimate
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import Amounts, ClusterSnapshot

EXPIRED = "node(s) nodeMetric expired"
EXCEEDED = "node(s) {} usage exceed threshold"
AGGREGATED_EXCEEDED = "node(s) {} aggregated usage exceed threshold"
REASONS = (
    EXPIRED,
    *(words.format(resource) for resource in (CPU, MEMORY) for words in (EXCEEDED, AGGREGATED_EXCEEDED)),
)
UNLIMITED = 1 << 40


class LoadRoom(msgspec.Struct, frozen=True, eq=False):
    """`reason_of` indexes `reasons`, −1 where a pod may go; `most`: so many more before a limit refuses."""

    reason_of: Amounts
    most: Amounts
    reasons: tuple[str, ...] = REASONS


def load_room(arrays: LoadArrays | None, snapshot: ClusterSnapshot, pod_class: PodClass) -> LoadRoom | None:
    """None where nothing is limited for the class: no limit is set, or none holds for it."""
    if arrays is None or pod_class.estimate.unlimited or not (arrays.limits.any or arrays.policy.filter_expired):
        return None
    limits = arrays.limits
    by_prod = np.asarray(limits.prod.any(axis=1))
    if pod_class.estimate.band is not PriorityBand.PROD:
        by_prod = np.zeros_like(by_prod)
    percents = np.where(by_prod[:, None], limits.prod, limits.usage)
    used = np.where(by_prod[:, None], arrays.prod.used, arrays.limited.used)
    measured = np.isfinite(np.where(by_prod, arrays.prod.seconds, arrays.limited.seconds))
    expired = np.where(by_prod, arrays.expired(arrays.prod), arrays.expired(arrays.limited))
    expired &= arrays.policy.filter_expired
    reason_of = np.full(len(expired), -1, np.int64)
    most = np.full(len(expired), UNLIMITED, np.int64)
    usage = estimate(pod_class, arrays.policy)
    checked = measured & ~expired
    for index, (resource, each) in enumerate(((CPU, usage.cpu_millis), (MEMORY, usage.memory_bytes))):
        total = capacities(snapshot, resource)
        fitting = _fitting(used[:, index], percents[:, index], total, max(each, 1))
        fitting = np.where(checked & (percents[:, index] > 0) & (total > 0), fitting, UNLIMITED)
        reason = 1 + 2 * index + (limits.aggregated & ~by_prod)
        reason_of = np.where((fitting < 1) & (reason_of < 0), reason, reason_of)
        most = np.minimum(most, fitting)
    if not arrays.policy.place_when_expired:
        reason_of, most = np.where(expired, 0, reason_of), np.where(expired, 0, most)
    return LoadRoom(reason_of, most)


def _fitting(used: Amounts, percents: Amounts, total: Amounts, each: int) -> Amounts:
    """How many more pods, of `each`, keep round(100 · use / total) within the percentage (exact, half rounds up)."""
    spare = (2 * percents + 1) * total - 200 * used - 1
    return np.asarray((spare // (200 * each)).clip(min=0))
