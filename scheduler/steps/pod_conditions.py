"""Conditions of waiting pods: the message of PodScheduled=False, and the node they are nominated to."""

from __future__ import annotations

from collections.abc import Callable

from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.placement.explain import Verdict
from scheduler.steps.turn import PodConditionWrite


class PodConditions:
    """`node_of` is the node on which room is kept for a pod (uid) of a workload, empty without one."""

    def __init__(self, cache: ClusterCache, node_of: Callable[[str, WorkloadId], str]) -> None:
        self._cache = cache
        self._node_of = node_of

    def tell(self, verdict: Verdict, *, quiet: bool = False) -> list[PodConditionWrite]:
        """Every pod of the verdict gets the same message and its nomination, unless that is what it says already.

        With `quiet` a pod that was told something keeps its message.
        """
        writes: list[PodConditionWrite] = []
        for uid in verdict.uids:
            record = self._cache.record(uid)
            if record is None:
                continue
            node = self._node_of(uid, verdict.subject)
            moved = node != record.nominated and not record.stand_in
            news = record.condition_message != verdict.message and not (quiet and record.condition_message)
            if news or moved:
                said = verdict.message if news else record.condition_message
                nominated = node if moved else None
                record.condition_message, record.nominated, first = said, node, not record.condition_message
                if record.stand_in and any(each.pod == record.named for each in writes):
                    continue  # one object stands for all of them
                writes.append(PodConditionWrite(record.named, said, first=first, nominated=nominated, event=news))
        return writes

    def renominate(self, uid: str, subject: WorkloadId) -> list[PodConditionWrite]:
        """A pod whose nomination is over, and that is not told anything else."""
        record = self._cache.record(uid)
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
