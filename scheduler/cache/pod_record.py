"""A pod as the cache keeps it, and what changed in the cache since it was asked last."""

from __future__ import annotations

import msgspec

from kube.dialects.gangs.makers import MadePod
from kube.dialects.unserved import Unserved
from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.cache.refusals import Refusal
from scheduler.core.queueing.news import News
from scheduler.core.snapshot.podclass import PodClass, PodTraits
from scheduler.ports import NamedObject


class PodRecord(msgspec.Struct):
    """A pod, and what its status says as far as we know: the message of PodScheduled=False, and its nominated node.

    `unserved` are queues and groups that it names and nobody serves, those included that a queue serves by now.
    `group_queue` is the queue that its PodGroup or its maker named when it was seen last before it had a node,
    `own_local` the LocalQueue that it names itself. `made`
    is what it says of the object that it was made for, where that decides on its gang. `workload` is the Workload of
    the job that it belongs to, `named_workload` the key of the one that it names, which may not be known yet; a
    `stand_in` is a pod that such a job would have, and no object. `told_seconds` is when (Unix time) we said last why
    it waits, 0 where another did.
    """

    pod: Pod
    pod_class: PodClass
    pod_traits: PodTraits
    condition_message: str = ""
    nominated: str = ""
    unserved: tuple[Unserved, ...] = ()
    group_queue: str = ""
    own_local: str = ""
    made: MadePod | None = None
    workload: NamedObject | None = None
    stand_in: bool = False
    named_workload: str = ""
    told_seconds: float = 0.0

    @property
    def named(self) -> NamedObject:
        if self.stand_in and self.workload is not None:
            return self.workload
        return NamedObject(self.pod.namespace, self.pod.name, self.pod.uid, self.pod.spec.scheduler_name)


class CacheChanges(msgspec.Struct):
    """What changed since the last cycle; `news` may help parked workloads."""

    subjects: set[WorkloadId] = msgspec.field(default_factory=set)
    news: News = News()
    refusals: list[Refusal] = msgspec.field(default_factory=list)
    invalid_gangs: list[tuple[NamedObject, str]] = msgspec.field(default_factory=list)
    unserved: list[tuple[NamedObject, str]] = msgspec.field(default_factory=list)

    def take(self) -> CacheChanges:
        """What was collected, which is forgotten here."""
        taken = CacheChanges(self.subjects, self.news, self.refusals, self.invalid_gangs, self.unserved)
        self.subjects, self.news = set(), News()
        self.refusals, self.invalid_gangs, self.unserved = [], [], []
        return taken
