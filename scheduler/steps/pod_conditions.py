"""Conditions of waiting pods: the message of PodScheduled=False, and the node they are nominated to."""

from __future__ import annotations

from collections.abc import Callable

from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.placement.explain import Verdict
from scheduler.steps.turn import Note


class PodConditions:
    """`node_of` is the node on which room is kept for a pod (uid) of a workload, empty without one."""

    def __init__(self, cache: ClusterCache, node_of: Callable[[str, WorkloadId], str]) -> None:
        self._cache = cache
        self._node_of = node_of

    def tell(self, verdict: Verdict, *, quiet: bool = False) -> list[Note]:
        """Every pod of the verdict gets the same message and its nomination, unless that is what it says already.

        With `quiet` a pod that was told something keeps its message.
        """
        notes: list[Note] = []
        for uid in verdict.uids:
            record = self._cache.record(uid)
            if record is None:
                continue
            node = self._node_of(uid, verdict.subject)
            moved = node != record.nominated
            news = record.told != verdict.message and not (quiet and record.told)
            if news or moved:
                said = verdict.message if news else record.told
                nominated = node if moved else None
                notes.append(Note(record.named, said, first=not record.told, nominated=nominated, event=news))
                record.told, record.nominated = said, node
        return notes

    def renominate(self, uid: str, subject: WorkloadId) -> list[Note]:
        """A pod whose nomination is over, and that is not told anything else."""
        record = self._cache.record(uid)
        node = self._node_of(uid, subject)
        if record is None or record.pod.spec.node_name or not record.told or node == record.nominated:
            return []
        record.nominated = node
        return [Note(record.named, record.told, first=False, nominated=node, event=False)]
