"""Jobs that wait whole, their Workloads, and what both depend on, as they were seen last."""

from __future__ import annotations

from collections.abc import Callable

from jobs.core.suspended.policy import FlavorPlace, SuspendedFacts
from jobs.core.suspended.training_pods import with_pods
from kube import objects
from kube.dialects.suspended import training_job
from kube.dialects.suspended.flavor_places import flavor_place
from kube.dialects.suspended.packed import untyped
from kube.dialects.suspended.reading import suspended_job
from kube.dialects.suspended.workload import JOB_UID, workload
from kube.informer import Change, ChangeKind
from model.suspended.job import SuspendedJob, SuspendedKind
from model.suspended.workload import WorkloadObject

_KINDS = frozenset(kind.value for kind in SuspendedKind)
_ORPHAN = "Workload"


class SuspendedCache:
    """`add` hears the key (`KIND namespace/name`) of each job that is to be looked at, and of each Workload that was
    made for a job and has none any more.
    """

    def __init__(self, add: Callable[[str], None]) -> None:
        self._add = add
        self._jobs: dict[str, tuple[SuspendedKind, objects.UnreadJob]] = {}
        self._keys: dict[str, str] = {}
        self._workloads: dict[str, objects.Workload] = {}
        self._owners: dict[str, str] = {}
        self._orphans: dict[str, objects.Workload] = {}
        self._orphan_of: dict[str, str] = {}
        self._urgent: set[str] = set()
        self._workload_classes: dict[str, int] = {}
        self._classes: dict[str, objects.PriorityClass] = {}
        self._flavors: dict[str, FlavorPlace] = {}

    def saw_job(self, kind: SuspendedKind, change: Change[objects.UnreadJob]) -> None:
        """Every change of a job of this kind that names a queue."""
        metadata = change.object.metadata
        key = f"{kind} {metadata.namespace}/{metadata.name}"
        if change.kind is ChangeKind.DELETED:
            self._jobs.pop(key, None)
            self._keys.pop(metadata.uid, None)
            self._urgent.discard(key)
            if metadata.uid in self._orphan_of:
                self._add(self._orphan_of[metadata.uid])
        else:
            self._jobs[key] = kind, change.object
            self._keys[metadata.uid] = key
        self._add(key)

    def saw_workload(self, change: Change[objects.Workload]) -> None:
        """Every change of a Workload."""
        metadata = change.object.metadata
        owner = next((each for each in metadata.owner_references or () if each.controller), objects.OwnerReference())
        named = f"{owner.kind} {metadata.namespace}/{owner.name}" if owner.uid and owner.kind in _KINDS else ""
        if not owner.uid:
            self._orphaned(change)
        elif change.kind is ChangeKind.DELETED:
            self._workloads.pop(owner.uid, None)
            self._owners.pop(named, None)
        else:
            self._workloads[owner.uid] = change.object
            if named:
                self._owners[named] = owner.uid
        if key := self._keys.get(owner.uid, named):
            if key in self._jobs:
                self._urgent.add(key)
            self._add(key)

    def _orphaned(self, change: Change[objects.Workload]) -> None:
        """What is known of its job stays until that is gone: a job whose Workload is kept is the last to be deleted."""
        metadata = change.object.metadata
        key, uid = f"{_ORPHAN} {metadata.namespace}/{metadata.name}", (metadata.labels or {}).get(JOB_UID, "")
        if not uid:
            return
        if change.kind is ChangeKind.DELETED:
            self._orphans.pop(key, None)
            self._orphan_of.pop(uid, None)
            self._workloads.pop(uid, None)
            self._owners = {job: owner for job, owner in self._owners.items() if owner != uid}
        else:
            self._orphans[key], self._orphan_of[uid] = change.object, key
            self._add(key)

    def saw_class(self, change: Change[objects.PriorityClass]) -> None:
        """Every change of a PriorityClass."""
        self._classes.pop(change.object.metadata.name, None)
        if change.kind is not ChangeKind.DELETED:
            self._classes[change.object.metadata.name] = change.object
        self._look_at_all()

    def saw_workload_class(self, change: Change[objects.PriorityClass]) -> None:
        """Every change of a WorkloadPriorityClass, which has the value of a PriorityClass."""
        self._workload_classes.pop(change.object.metadata.name, None)
        if change.kind is not ChangeKind.DELETED:
            self._workload_classes[change.object.metadata.name] = change.object.value
        self._look_at_all()

    def saw_flavor(self, change: Change[objects.UntypedObject]) -> None:
        """Every change of a ResourceFlavor."""
        self._flavors.pop(change.object.metadata.name, None)
        if change.kind is not ChangeKind.DELETED:
            self._flavors[change.object.metadata.name] = FlavorPlace(*flavor_place(change.object.spec))
        self._look_at_all()

    def job(self, key: str) -> tuple[SuspendedJob, objects.UntypedObject] | None:
        """The job of a key, with its object; None for one that is gone."""
        found = self._jobs.get(key)
        if found is None:
            return None
        kind, source = found[0], untyped(found[1])
        job = suspended_job(kind, source)
        if kind is SuspendedKind.TRAINING:
            job = with_pods(job, training_job.read(source), self.facts.pod_classes)
        return job, source

    def spec_bytes(self, key: str) -> int:
        """How long the spec of a job is that is known."""
        return len(self._jobs[key][1].spec)

    def take_urgent(self, key: str) -> bool:
        """Whether its Workload says something new, which the author of a job cannot do: others may wait for it."""
        urgent = key in self._urgent
        self._urgent.discard(key)
        return urgent

    def stray(self, key: str) -> SuspendedJob | None:
        """The job of a key that names no queue any more, where its Workload was evicted; None for any other."""
        found = self._workloads.get(self._owners.get(key, ""))
        if found is None or key in self._jobs or not workload(found).status.evicting:
            return None
        kind, _, name = key.partition(" ")
        namespace, _, name = name.partition("/")
        return SuspendedJob(SuspendedKind(kind), namespace, name, self._owners[key])

    def orphan(self, key: str) -> WorkloadObject | None:
        """The Workload of a key, where its job is gone and it was left; None for anything else."""
        found = self._orphans.get(key)
        if found is None or (found.metadata.labels or {}).get(JOB_UID, "") in self._keys:
            return None
        return WorkloadObject(found.metadata.namespace, found.metadata.name, found.metadata.uid)

    def unread(self, key: str) -> SuspendedJob | None:
        """Which job a key is of, and nothing of what it says."""
        if key not in self._jobs:
            return None
        kind, source = self._jobs[key]
        metadata = source.metadata
        return SuspendedJob(kind, metadata.namespace, metadata.name, metadata.uid, metadata.resource_version)

    def workload(self, uid: str) -> tuple[WorkloadObject, objects.Workload] | None:
        """The Workload of the job of that uid, with its object; None without one."""
        found = self._workloads.get(uid)
        return (workload(found), found) if found is not None else None

    @property
    def facts(self) -> SuspendedFacts:
        """What jobs depend on beside their Workloads."""
        usual = sorted(name for name, each in self._classes.items() if each.global_default)
        values = {name: each.value for name, each in self._classes.items()}
        return SuspendedFacts(dict(self._workload_classes), values, usual[0] if usual else "", dict(self._flavors))

    def _look_at_all(self) -> None:
        for key in self._jobs:
            self._add(key)
