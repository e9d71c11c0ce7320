"""All filters about other pods in one answer: what keeps a pod from which node, given who is where."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import msgspec
import numpy as np

from scheduler.core.filters.pod_filter import FilteredRows, FilterRequest, FilterResult
from scheduler.core.filters.podaffinity import affinity, anti_affinity, existing
from scheduler.core.filters.ports import ports
from scheduler.core.filters.spread import spread
from scheduler.core.snapshot.pod_index import PodIndex
from scheduler.core.snapshot.podclass import NO_INTERPOD, InterPod, PodClass, PodTraits
from scheduler.core.snapshot.snapshot import Amounts, Mask, NodeTraits


class Obstacles(msgspec.Struct, frozen=True, eq=False):
    """`reason_of` indexes `reasons` by row, −1 where nobody is in the way: the first filter's word, as kube-scheduler.

    `resolvable` says of each reason whether fewer residents could clear it. `most` is how many more a row takes at
    most (None: as many as there is room for). `apart`: placing one may change the answer for other rows, so place one
    and ask again; the next answer may be more lenient.
    """

    reason_of: Amounts
    reasons: tuple[str, ...] = ()
    resolvable: tuple[bool, ...] = ()
    most: Amounts | None = None
    apart: bool = False

    @property
    def refused(self) -> Mask:
        """Rows that are out."""
        return np.asarray(self.reason_of >= 0)

    @property
    def hopeless(self) -> Mask:
        """Rows that are out whichever pods are evicted."""
        return np.asarray(np.array([*(not each for each in self.resolvable), False], bool)[self.reason_of])


@lru_cache(maxsize=64)
def no_obstacles(size: int) -> Obstacles:
    """Nobody in anybody's way on `size` rows."""
    reason_of = np.full(size, -1, np.int64)
    reason_of.setflags(write=False)
    return Obstacles(reason_of)


def obstacles(pod_index: PodIndex, traits: NodeTraits, pod_class: PodClass, pod_traits: PodTraits) -> Obstacles:
    """What keeps one more pod of the class, seen by others as `pod_traits`, from which nodes."""
    asked = _filters(pod_class.interpod, objected=bool(pod_index.objections(pod_traits)))
    if not asked:
        return no_obstacles(len(traits.labels))
    request = FilterRequest(pod_index, traits, pod_class, pod_traits)
    return _combined(len(traits.labels), [filter_(request) for filter_ in asked])


def _filters(interpod: InterPod, *, objected: bool) -> list[Callable[[FilterRequest], FilterResult]]:
    """Those that have something to ask, in kube-scheduler's order."""
    if interpod == NO_INTERPOD:
        return [existing] if objected else []
    wanted = (
        (ports, interpod.ports),
        (spread, any(constraint.hard for constraint in interpod.spread)),
        (affinity, interpod.affinity.pods),
        (anti_affinity, interpod.affinity.anti_pods),
        (existing, objected),
    )
    return [filter_ for filter_, needed in wanted if needed]


def _combined(size: int, answers: list[FilterResult]) -> Obstacles:
    refusals = [refusal for answer in answers for refusal in answer.refusals if refusal.rows.any()]
    limits = [answer.most for answer in answers if answer.most is not None]
    reasons = tuple(dict.fromkeys(refusal.reason for refusal in refusals))
    return Obstacles(
        _first(size, refusals, reasons),
        reasons,
        tuple(any(refusal.resolvable for refusal in refusals if refusal.reason == reason) for reason in reasons),
        np.minimum.reduce(limits) if limits else None,
        any(answer.apart for answer in answers),
    )


def _first(size: int, refusals: list[FilteredRows], reasons: tuple[str, ...]) -> Amounts:
    """By row, the reason of the first refusal, −1 where there is none."""
    reason_of = np.full(size, -1, np.int64)
    for refusal in reversed(refusals):
        reason_of[refusal.rows] = reasons.index(refusal.reason)
    return reason_of
