"""Gang groups of Koordinator, one workload each.

A gang belongs to the group that it lists itself, as in Koordinator (coscheduling/core/gang.go, GangGroupId). Where a
listed gang lists another group, the one that lists it is held and says so: neither is placed half, and no gang can be
made to wait by another that names it without being named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from model.pod.pod import Pod
from model.workload import WorkloadId

_NO_GROUPS: Mapping[str, WorkloadId] = {}
_MOST_NAMING = 16
"""Of those that list a gang which does not list them: all that changes for them is what they are told, and whoever
makes gangs makes thousands that list one.
"""


def group_of(subject: WorkloadId) -> WorkloadId | None:
    """The subject of a gang group, None for what is named by the pod itself: its gang alone, or a lone pod."""
    return subject if subject.grouped else None


def subject_of(pod: Pod, groups: Mapping[str, WorkloadId] = _NO_GROUPS) -> WorkloadId:
    """The gang group or gang of a pod, or the pod alone; `groups` are by gang key."""
    own = pod.own_workload
    return groups.get(pod.spec.gang.key, own) if pod.spec.gang is not None else own


class GroupIndex:
    """Groups by gang key, of gangs that are in a group; each change says which subjects are to be looked at."""

    def __init__(self) -> None:
        self._ids: dict[str, WorkloadId] = {}
        self._named_by: dict[str, dict[str, None]] = {}

    @property
    def ids(self) -> Mapping[str, WorkloadId]:
        """Gang key → its group; for `subject_of`."""
        return self._ids

    def subject(self, key: str) -> WorkloadId:
        """The workload in which a gang is placed."""
        found = self._ids.get(key)
        return WorkloadId.gang(key) if found is None else found

    def define(self, key: str, groups: Iterable[str] = ()) -> set[WorkloadId]:
        """A gang has arrived, changed or gone (no groups): the workloads concerned, its former one included."""
        before, after = self.subject(key), WorkloadId.gang(key, *groups)
        if after != before:
            self._move(key, before, after)
        return {before, after, *self.naming(key)}

    def naming(self, key: str) -> set[WorkloadId]:
        """Subjects whose groups list a gang, some of them where they are many: what they are told may be another where
        it comes, goes or lists others. One that it lists as well is its own subject.
        """
        return {self.subject(other) for other in islice(self._named_by.get(key, ()), _MOST_NAMING)}

    def _move(self, key: str, before: WorkloadId, after: WorkloadId) -> None:
        for named in before.gangs:
            namers = self._named_by.get(named, {})
            namers.pop(key, None)
            if not namers:
                self._named_by.pop(named, None)
        self._ids.pop(key, None)
        if not after.grouped:
            return
        self._ids[key] = after
        for named in after.gangs:
            self._named_by.setdefault(named, {})[key] = None
