"""The node that comes nearest to taking a pod, and what it lacks: where a person would begin."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from scheduler.core.filters.fit import Refused, insufficient, shortage, too_small
from scheduler.core.filters.obstacles import Obstacles
from scheduler.core.filters.static import verdicts
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import Amounts, ClusterSnapshot, Mask


class Nearest(msgspec.Struct, frozen=True):
    """`missing` is (resource, amount in base units) on top of what the node has left; `reasons` are all filters'."""

    node: str
    missing: tuple[tuple[str, int], ...] = ()
    reasons: tuple[str, ...] = ()


def nearest(
    snapshot: ClusterSnapshot,
    free: Amounts,
    pod_class: PodClass,
    obstacles: Obstacles | None = None,
    extra: Iterable[Refused] = (),
) -> Nearest | None:
    """Of the nodes that could take the pod with others gone (else: were they larger) the one with least missing.

    Missing is summed as shares of the request, a filter's refusal counts as a whole request; ties go to the first by
    name. None where every node is out whichever pods are evicted.
    """
    refusals = [*_others(obstacles), *extra]
    names, missing = shortage(snapshot, free, pod_class)
    amounts = dict(pod_class.request)
    asked = np.array([float(amounts[name]) for name in names])
    distance = (missing / asked).sum(axis=1) + sum((rows.astype(np.float64) for rows, _ in refusals), np.float64(0))
    row = _least(distance, _possible(snapshot, pod_class, obstacles), too_small(snapshot, pod_class))
    if row is None:
        return None
    lacking = tuple((name, int(amount)) for name, amount in zip(names, missing[row], strict=True) if amount)
    words = (*(insufficient(name) for name, _ in lacking), *(reason for rows, reason in refusals if rows[row]))
    return Nearest(snapshot.names[row], tuple(sorted(lacking)), tuple(sorted(words)))


def _others(obstacles: Obstacles | None) -> list[Refused]:
    if obstacles is None:
        return []
    return [(obstacles.reason_of == index, reason) for index, reason in enumerate(obstacles.reasons)]


def _possible(snapshot: ClusterSnapshot, pod_class: PodClass, obstacles: Obstacles | None) -> Mask:
    admissible = verdicts(snapshot.traits, pod_class.tolerance).admissible
    return admissible if obstacles is None else admissible & ~obstacles.hopeless


def _least(distance: Amounts, possible: Mask, small: Mask) -> int | None:
    for rows in (np.flatnonzero(possible & ~small), np.flatnonzero(possible)):
        if len(rows):
            return int(rows[np.argmin(distance[rows])])
    return None
