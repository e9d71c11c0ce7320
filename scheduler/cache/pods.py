"""Pods as the cache keeps them: by uid, name, gang, node and maker; those with a node are charged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.cache.gang_cache import GangCache
from scheduler.cache.maker_cache import MakerCache
from scheduler.cache.pod_charges import PodCharges
from scheduler.cache.pod_record import CacheChanges, PodRecord
from scheduler.core.estimates.run_book import RunBook
from scheduler.core.gangs.roster import Roster, age, roster

_Key = TypeVar("_Key", WorkloadId, str)
_MOST_HISTORY_CHARACTERS = 16 << 20
"""As text; decoded, and in the answers that are kept, it is some four times as much."""


class Pods:
    """`schedulers` are the spec.schedulerName values that are ours. `changes` hears of what is to be
    looked at again; `forget` is called where much is known of pods that are gone.
    """

    def __init__(
        self,
        schedulers: Collection[str],
        charges: PodCharges,
        gangs: GangCache,
        makers: MakerCache,
        runs: RunBook,
        changes: CacheChanges,
        forget: Callable[[], None],
    ) -> None:
        self._schedulers = frozenset(schedulers)
        self._charges = charges
        self._gangs = gangs
        self._makers = makers
        self._runs = runs
        self._changes = changes
        self._forget = forget
        self._pods: dict[str, PodRecord] = {}
        self._uids: dict[str, str] = {}
        self._members: dict[WorkloadId, set[str]] = {}
        self._on_node: dict[str, set[str]] = {}
        self._history_characters = 0

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def all(self) -> tuple[PodRecord, ...]:
        """Every pod."""
        return tuple(self._pods.values())

    def record(self, uid: str) -> PodRecord | None:
        """A pod by uid, with what it was told."""
        return self._pods.get(uid)

    def find(self, namespace: str, name: str) -> PodRecord | None:
        """A pod by name."""
        return self._pods.get(self._uids.get(f"{namespace}/{name}", ""))

    def owned_by(self, controller: str) -> tuple[Pod, ...]:
        """The pods of a controller (`namespace/name`), oldest first."""
        found = (record.pod for record in self._pods.values() if record.pod.owner == controller)
        return tuple(sorted(found, key=age))

    def made_by(self, maker: str) -> tuple[Pod, ...]:
        """The pods that objects of this name (`namespace/name`) had made, by whichever controller; oldest first."""
        return tuple(sorted((self._pods[uid].pod for uid in self._makers.pods_of(maker)), key=age))

    def on_node(self, node: str) -> list[PodRecord]:
        """The pods that the API server has bound to a node, by uid."""
        return self._records(self._on_node.get(node, ()))

    def of_gang(self, key: str) -> list[PodRecord]:
        """The pods of a gang (`namespace/name`), by uid."""
        return self._records(self._members.get(WorkloadId.gang(key), ()))

    def members(self, key: str) -> Roster:
        """The pods of a gang (`namespace/name`) by how they count."""
        return self.roster(WorkloadId.gang(key))

    def counted(self, key: str) -> Roster:
        """One pod of a gang that counts, where there is one; who has the gang in another group asks no more."""
        found = (self._roster([uid]) for uid in self._members.get(WorkloadId.gang(key), ()))
        return next((each for each in found if each.present), Roster())

    def roster(self, workload: WorkloadId) -> Roster:
        """The same of a gang or of a lone pod."""
        return self._roster(self._members.get(workload, ()))

    def _roster(self, uids: Collection[str]) -> Roster:
        assumed = {uid for uid in uids if self._charges.has(uid)}
        return roster((self._pods[uid].pod for uid in uids), assumed, self._schedulers)

    def exists(self, subject: WorkloadId) -> bool:
        """Whether any pod of the subject is left."""
        if subject.gangs:
            return any(WorkloadId.gang(key) in self._members for key in subject.gangs)
        return subject.name in self._uids

    def gang_keys(self) -> frozenset[str]:
        """All gangs that have pods."""
        return frozenset(key for workload in self._members for key in workload.gangs)

    def put(self, record: PodRecord, before: PodRecord | None, now: float) -> None:
        """A pod came, or is another than `before`."""
        if before is not None:
            self._unindex(before.pod)
            if (before.pod_class, before.pod_traits) != (record.pod_class, record.pod_traits):
                self._past(before)
            if before.made is not None and before.made != record.made:
                self._makers.forget(before.pod.uid, before.made)
        pod = record.pod
        if record.made is not None:
            self._makers.keep(pod.uid, record.made)
        self._pods[pod.uid] = record
        self._uids[pod.key] = pod.uid
        members = self._members.setdefault(pod.own_workload, set())
        self.touch(pod, first=not members)
        members.add(pod.uid)
        if pod.spec.node_name:
            self._on_node.setdefault(pod.spec.node_name, set()).add(pod.uid)
        if pod.spec.node_name and not pod.terminal:
            self._charges.confirm(record, now)
            if not pod.daemon:
                self._runs.on_node(self._gangs.subject_of(pod), pod, record.pod_class, now)
        elif pod.terminal:
            self._charges.free(pod.uid)
            self._runs.left(pod.uid, now)

    def remove(self, uid: str) -> None:
        """A pod is gone."""
        record = self._pods.pop(uid, None)
        if record is None:
            return
        self._unindex(record.pod)
        if record.made is not None:
            self._makers.forget(uid, record.made)
        if self._uids.get(record.pod.key) == uid:
            del self._uids[record.pod.key]
        self._changes.subjects.add(WorkloadId.pod(record.pod.key))
        self._charges.free(uid)
        self._past(record)

    def touch(self, pod: Pod, *, first: bool = False) -> None:
        """Whatever this pod belongs to is to be looked at again; `first` is as `GangCache.joined` has it."""
        if pod.spec.gang is None:
            self._changes.subjects.add(WorkloadId.pod(pod.key))
        else:
            self._changes.subjects |= self._gangs.joined(pod.spec.gang, first=first)

    def _records(self, uids: Iterable[str]) -> list[PodRecord]:
        return [self._pods[uid] for uid in sorted(uids)]

    def _past(self, record: PodRecord) -> None:
        """A class and traits that no pod has any more.

        Answers about nodes are kept by what pods say of themselves, which is as much as their author likes: so they are
        forgotten by its size, and not by their number alone.
        """
        self._history_characters += len(repr((record.pod_class, record.pod_traits)))
        if self._history_characters >= _MOST_HISTORY_CHARACTERS:
            self._history_characters = 0
            self._forget()

    def _unindex(self, pod: Pod) -> None:
        _discard(self._members, pod.own_workload, pod.uid)
        _discard(self._on_node, pod.spec.node_name, pod.uid)
        self.touch(pod)
        if pod.spec.gang is not None and pod.own_workload not in self._members:
            self._changes.subjects |= self._gangs.emptied(pod.spec.gang.key)


def _discard(index: dict[_Key, set[str]], key: _Key, uid: str) -> None:
    """One uid less under the key, which goes with its last."""
    uids = index.get(key, set())
    uids.discard(uid)
    if not uids:
        index.pop(key, None)
