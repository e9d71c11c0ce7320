"""Eviction costs of a node's best-effort pods to the jobs they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from model.pod.pod import Pod
from model.report import EvictionCost


def eviction_costs(
    pods: Iterable[Pod], surplus_of: Mapping[str, int], saved_seconds: Mapping[str, float], now: float
) -> tuple[EvictionCost, ...]:
    """Costs in order of uid.

    `surplus_of` is gang `namespace/name` → members above its minimum, `saved_seconds` pod uid → Unix time of its
    newest checkpoint.
    """
    return tuple(
        EvictionCost(
            pod_uid=pod.uid,
            gang=pod.spec.gang.key if pod.spec.gang else "",
            members_above_minimum=_spare(pod, surplus_of),
            checkpoint_age_seconds=max(0.0, now - saved_seconds[pod.uid]) if pod.uid in saved_seconds else None,
        )
        for pod in sorted(pods, key=lambda pod: pod.uid)
        if pod.best_effort and not pod.terminal and not pod.deleting
    )


def _spare(pod: Pod, surplus_of: Mapping[str, int]) -> int:
    if pod.spec.gang is None or pod.colocation.minimum_member:
        return 0
    return surplus_of.get(pod.spec.gang.key, 0)
