"""Workloads of suspended jobs as the API server has them, and those that are admitted by a write on its way."""

from __future__ import annotations

from kube import objects
from kube.dialects.suspended.workload import GROUP, workload
from kube.informer import Change, ChangeKind
from model.suspended.workload import ConditionName, WorkloadAdmission, WorkloadObject
from model.workload import Gang, GangMembership, GangSource, GangSpec, MatchPolicy, TopologyLevel, WorkloadId
from scheduler.ports import NamedObject

_PREFIX, _HELD = "workload:", "not-admitted:"
"""No PodGroup is called so."""


class SuspendedCache:
    """By `namespace/name` of the Workload."""

    def __init__(self) -> None:
        self._known: dict[str, WorkloadObject] = {}
        self._owned: dict[str, str] = {}
        self._assumed: dict[str, WorkloadAdmission] = {}
        self._unready: dict[str, None] = {}

    def apply(self, change: Change[objects.Workload]) -> WorkloadObject:
        """Take in one change; returns the Workload as it is, or was."""
        found = workload(change.object)
        before = self._known.pop(found.key, None)
        if before is not None:
            self._owned.pop(before.owner, None)
        if change.kind is not ChangeKind.DELETED:
            self._known[found.key] = found
            self._owned[found.owner] = found.key
        other_life = before is not None and before.uid != found.uid
        if change.kind is ChangeKind.DELETED or other_life or found.status.reserving or found.status.finished:
            self._assumed.pop(found.key, None)
        self._judge(found.key)
        return found

    def get(self, key: str) -> WorkloadObject | None:
        """The Workload of that key."""
        return self._known.get(key)

    def named(self, namespace: str, name: str) -> WorkloadObject | None:
        """That of the job of this name, or of its own name."""
        if found := self._known.get(f"{namespace}/{name}"):
            return found
        own = (each for each in self._known.values() if (each.namespace, each.owner_name) == (namespace, name))
        return min(own, key=lambda each: (each.status.finished, -each.created_seconds), default=None)

    def submission_key(self, subject: WorkloadId) -> str:
        """`namespace/name` of the LocalQueue of a job by its gang; empty where there is no such Workload."""
        found = self._known.get(workload_key(subject.gangs[0])) if subject.gangs else None
        return f"{found.namespace}/{found.queue}" if found is not None else ""

    def assume(self, key: str, admission: WorkloadAdmission) -> None:
        """It is being admitted."""
        self._assumed[key] = admission
        self._judge(key)

    def unassume(self, key: str) -> None:
        """Its admission was not written."""
        self._assumed.pop(key, None)
        self._judge(key)

    def unready(self) -> str:
        """The first that was admitted and whose pods are not all ready; empty without one."""
        return next(iter(self._unready), "")

    def _judge(self, key: str) -> None:
        found = self._known.get(key)
        if found is not None and self.admission(key) is not None and not found.status.holds(ConditionName.PODS_READY):
            self._unready.setdefault(key)
        else:
            self._unready.pop(key, None)

    def admission(self, key: str) -> WorkloadAdmission | None:
        """What it was admitted for, while its pods may run: not without its job, of which pods that stay count on."""
        found = self._known.get(key)
        if found is None or not found.owner:
            return None
        return self._assumed.get(key) or (found.status.admission if found.status.admitted else None)

    def waits(self, key: str) -> bool:
        """Whether it is to be admitted."""
        found = self._known.get(key)
        return found is not None and found.waiting and key not in self._assumed

    def waiting(self, gang: str) -> WorkloadObject | None:
        """The Workload of a gang (by its key) that is to be admitted."""
        key = workload_key(gang)
        return self._known[key] if is_workload(gang) and self.waits(key) else None

    def membership(self, namespace: str, name: str) -> GangMembership | None:
        """The gang of pods that say they are of that Workload; None where there is none."""
        if f"{namespace}/{name}" not in self._known:
            return None
        return GangMembership(namespace, f"{_PREFIX}{name}", GangSource.WORKLOAD, GangSpec(1))

    def held(self, owner: str) -> GangMembership | None:
        """The gang of a pod of that job (by uid) which says nothing of its Workload: nobody admitted it."""
        found = self._known.get(self._owned.get(owner, "")) if owner else None
        if found is None or found.status.finished:
            return None
        told = f"its {found.owner_kind} waits whole, and Workload {found.key} says nothing of an admission of this pod"
        return GangMembership(found.namespace, f"{_HELD}{found.name}", GangSource.WORKLOAD, GangSpec(0, problem=told))

    def gang(self, key: str) -> Gang | None:
        """The gang of a Workload by the gang's key: all of it where it waits, any pod where it is admitted."""
        found = self._known.get(workload_key(key))
        if found is None or not is_workload(key):
            return None
        namespace, _, name = key.partition("/")
        return Gang(namespace, name, self._spec(found), found.uid, created_seconds=found.created_seconds)

    def _spec(self, found: WorkloadObject) -> GangSpec:
        if self.waits(found.key):
            return GangSpec(
                found.least,
                match=MatchPolicy.ONLY_WAITING,
                topology=_topology(found),
                priority=found.counts_as,
                whole=True,
                tasks=_tasks(found),
                raises=True,
                queue_priority=True,
            )
        if self.admission(found.key) is None:
            return GangSpec(0, problem=f"Workload {found.key} is not admitted, so that its pods do not run")
        match = MatchPolicy.WAITING_AND_RUNNING
        priority = found.counts_as
        return GangSpec(1, match=match, priority=priority, raises=True, queue_priority=True, whole=True)


def _topology(found: WorkloadObject) -> tuple[TopologyLevel, ...]:
    """As its first pod set that asks for one says: all its pods lie together."""
    told = next((pods for pods in found.pod_sets if pods.required or pods.preferred), None)
    if told is None:
        return ()
    return tuple(TopologyLevel(key, must) for key, must in ((told.required, True), (told.preferred, False)) if key)


def _tasks(found: WorkloadObject) -> tuple[tuple[str, int], ...]:
    """How many pods of each set it needs, where it may start with less than all of several."""
    partial = len(found.pod_sets) > 1 and found.least < found.count
    return tuple((pods.name, pods.least) for pods in found.pod_sets) if partial else ()


def gang_key(key: str) -> str:
    """The key of a Workload's gang."""
    namespace, _, name = key.partition("/")
    return f"{namespace}/{_PREFIX}{name}"


def is_workload(key: str) -> bool:
    """Whether a gang's key is that of a Workload's."""
    return key.partition("/")[2].startswith(_PREFIX)


def workload_key(key: str) -> str:
    """The key of the Workload of such a gang."""
    namespace, _, name = key.partition("/")
    return f"{namespace}/{name.removeprefix(_PREFIX)}"


def named_object(found: WorkloadObject) -> NamedObject:
    """What writes and Events are about."""
    return NamedObject(found.namespace, found.name, found.uid, group=GROUP)
