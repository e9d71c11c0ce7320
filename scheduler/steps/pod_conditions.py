"""Conditions of waiting pods: the message of PodScheduled=False, and the node they are nominated to."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from model.estimates.start_estimate import with_estimate, without_estimate
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.pod_record import PodRecord
from scheduler.core.placement.explain import Verdict
from scheduler.steps.turn import PodConditionWrite

_NUMBERS = re.compile(r'(?<![\w."/-])\d[\d.]*')
"""Not within a name: another queue is another word."""
_NUMBERS_STAND_SECONDS = 60.0
"""So long a pod may say what it lacked when it was told: numbers that change with each turn are not news to it, and
thousands that wait alike would be written in each.
"""


class PodConditions:
    """`node_of` is the node on which room is kept for a pod (uid) of a workload, empty without one."""

    def __init__(self, cache: ClusterCache, node_of: Callable[[str, WorkloadId], str]) -> None:
        self._cache = cache
        self._node_of = node_of

    def tell(self, verdict: Verdict, *, quiet: bool = False) -> list[PodConditionWrite]:
        """Every pod of the verdict gets the same message and its nomination, unless that is what it says already.

        With `quiet` a pod that was told something keeps its message. A Workload is told when it is expected to start,
        too, once that was estimated; what it was told before stands until then.
        """
        starts = self._cache.starts.words(verdict.subject)
        writes: list[PodConditionWrite] = []
        for uid in verdict.uids:
            record = self._cache.pods.record(uid)
            if record is None:
                continue
            node = self._node_of(uid, verdict.subject)
            moved = node != record.nominated and not record.stand_in
            before = record.condition_message
            wanted = with_estimate(verdict.message, starts) if record.stand_in else verdict.message
            if record.stand_in and starts is None and without_estimate(before) == verdict.message:
                wanted = before
            news = before != wanted and not (quiet and before)
            if news or moved:
                said = wanted if news else before
                nominated = node if moved else None
                record.condition_message, record.nominated, first = said, node, not record.condition_message
                record.told_seconds = verdict.decision.at_seconds
                if record.stand_in and any(each.pod == record.named for each in writes):
                    continue  # one object stands for all of them
                event = news and without_estimate(before) != verdict.message
                writes.append(PodConditionWrite(record.named, said, first=first, nominated=nominated, event=event))
        return writes

    def renominate(self, uid: str, subject: WorkloadId) -> list[PodConditionWrite]:
        """A pod whose nomination is over, and that is not told anything else."""
        record = self._cache.pods.record(uid)
        node = self._node_of(uid, subject)
        if (
            record is None
            or record.stand_in
            or record.pod.spec.node_name
            or not record.condition_message
            or node == record.nominated
        ):
            return []
        record.nominated = node
        return [PodConditionWrite(record.named, record.condition_message, first=False, nominated=node, event=False)]


def says_as_much(record: PodRecord, message: str, now: float) -> bool:
    """Whether a pod says so already, or said it a moment ago with other numbers."""
    if record.condition_message == message:
        return True
    recent = now - record.told_seconds < _NUMBERS_STAND_SECONDS
    return recent and _words(record.condition_message) == _words(message)


@lru_cache(4096)
def _words(message: str) -> str:
    return _NUMBERS.sub("#", message)
