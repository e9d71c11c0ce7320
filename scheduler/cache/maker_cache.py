"""Makers of gangs as the API server has them: Jobs, JobSets, LeaderWorkerSets, PyTorchJobs, and the pods they made."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kube.dialects.gangs.maker_objects import MAKERS, maker_id, maker_object
from kube.dialects.gangs.makers import ALL, MadePod, Maker, MakerId, MakerObject, gang_of_made, made_pod
from kube.dialects.gangs.membership import GangDefaults
from kube.dialects.queues.membership import NamedQueues, named_queues
from kube.informer import Change, ChangeKind
from kube.objects import Job, Metadata
from model.workload import GangMembership

_NO_QUEUE = NamedQueues()


class MakerCache:
    """`makers` are the kinds that make gangs here; pods of others are placed one by one."""

    def __init__(self, makers: Collection[Maker] = ALL) -> None:
        self._makers = frozenset(makers)
        self._objects: dict[MakerId, MakerObject] = {}
        self._queues: dict[MakerId, NamedQueues] = {}
        self._pods: dict[MakerId, set[str]] = {}

    def reads(self, item: object) -> bool:
        """Whether objects of this kind belong here."""
        return MAKERS.get(type(item)) in self._makers

    def made(self, metadata: Metadata, defaults: GangDefaults) -> MadePod | None:
        """What a pod says of its maker, of kinds that make gangs here."""
        found = made_pod(metadata, defaults)
        return found if found is not None and found.id.maker in self._makers else None

    def gang(self, made: MadePod) -> GangMembership | None:
        """The gang of such a pod as far as its maker is known."""
        return gang_of_made(made, self._objects.get(made.id))

    def queue(self, made: MadePod) -> NamedQueues:
        """The queue that its maker names."""
        return self._queues.get(made.id, _NO_QUEUE)

    def limit_seconds(self, made: MadePod) -> float | None:
        """How long its maker may run at most."""
        found = self._objects.get(made.id)
        return found.limit_seconds if found is not None else None

    def pods_of(self, key: str) -> tuple[str, ...]:
        """The uids of pods that objects of this name (`namespace/name`) made."""
        return tuple(sorted(uid for maker in Maker for uid in self._pods.get(MakerId(maker, key), ())))

    def keep(self, uid: str, made: MadePod) -> None:
        """A pod is there."""
        self._pods.setdefault(made.id, set()).add(uid)

    def forget(self, uid: str, made: MadePod) -> None:
        """A pod is gone, or has another maker."""
        uids = self._pods.get(made.id, set())
        uids.discard(uid)
        if not uids:
            self._pods.pop(made.id, None)

    def apply(self, change: Change[Any]) -> tuple[str, ...]:
        """Take in one change: the uids of pods whose gang or queue may be another by it."""
        id_ = maker_id(change.object)
        before = self._objects.pop(id_, None), self._queues.pop(id_, None)
        if change.kind is not ChangeKind.DELETED:
            named = named_queues(change.object.metadata)
            found = maker_object(change.object, queued=named not in (_NO_QUEUE, _of_template(change.object)))
            self._objects[id_] = found
            self._queues[id_] = named if named != _NO_QUEUE else NamedQueues(found.queue)
        after = self._objects.get(id_), self._queues.get(id_)
        return () if before == after else tuple(sorted(self._pods.get(id_, ())))


def _of_template(source: object) -> NamedQueues:
    """What the pods of a Job name. A Job without labels of its own gets those of its template from Kubernetes."""
    return named_queues(source.spec.template.metadata) if isinstance(source, Job) else _NO_QUEUE
