"""Gangs as the API server defines them: PodGroups of both kinds, their groups, and what was told about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from kube import objects
from kube.dialects.gangs import networktopology, podgroups
from kube.dialects.gangs.membership import USUAL, GangDefaults
from kube.dialects.gangs.volcano import GROUP as VOLCANO
from kube.dialects.gangs.volcano import volcano_gang
from kube.informer import Change, ChangeKind
from model.pod.pod import Pod
from model.priority import PriorityClass
from model.workload import Gang, GangMembership, GangSource, GangSpec, GangTimes, WorkloadId
from scheduler.cache.nested_groups import NestedGroups
from scheduler.core.gangs.groups import GroupIndex, group_of
from scheduler.core.gangs.minimum import GangPart, part_of
from scheduler.core.gangs.phase import GangStatus
from scheduler.core.gangs.roster import Roster
from scheduler.core.gangs.volcano_phase import VolcanoPhase, VolcanoStatus, proves
from scheduler.ports import NamedObject

log = structlog.get_logger()

AnyPodGroup = objects.PodGroup | objects.UpstreamPodGroup | objects.VolcanoPodGroup

_SOURCES = (GangSource.POD_GROUP, GangSource.UPSTREAM, GangSource.VOLCANO)
"""Those that have an object."""
_UNADMITTED = (VolcanoPhase.UNSET, VolcanoPhase.PENDING)
_VOLCANO_PHASES = {member.value: member for member in VolcanoPhase}


class GangRecord(msgspec.Struct):
    """A PodGroup as far as we know: `written_status` is its status, `written_times` its annotations of ours, `problems`
    unreadable ones, `conditions` those of scheduling.k8s.io's kind, `volcano_status` that of Volcano's.
    """

    gang: Gang
    written_status: GangStatus = GangStatus()
    written_times: GangTimes = GangTimes()
    problems: tuple[str, ...] = ()
    conditions: tuple[objects.Condition, ...] = ()
    volcano_status: VolcanoStatus = VolcanoStatus()

    @property
    def named(self) -> NamedObject:
        group = VOLCANO if self.gang.source is GangSource.VOLCANO else ""
        return NamedObject(self.gang.namespace, self.gang.name, self.gang.uid, group=group)

    @property
    def times(self) -> GangTimes:
        """Our own, as far as we know."""
        if self.gang.source is GangSource.UPSTREAM:
            return GangTimes(podgroups.partially_bound_since(self.conditions))
        if self.gang.source is GangSource.VOLCANO:
            return podgroups.times_with(proves(self.volcano_status, self.gang.spec.min_member), self.written_times)
        return podgroups.times_with(self.written_status.phase, self.written_times)


class GangCache:
    """By gang `namespace/name`; where several kinds of PodGroup have one name, the first of `_SOURCES` counts."""

    def __init__(self, defaults: GangDefaults = USUAL) -> None:
        self.defaults = defaults
        self.index = GroupIndex()
        self.layers: Mapping[str, networktopology.Layer] = {}
        self.classes: Mapping[str, PriorityClass] = {}
        self._records: dict[GangSource, dict[str, GangRecord]] = {source: {} for source in _SOURCES}
        self._ran: set[str] = set()
        self._nested = NestedGroups()
        self.workloads: Callable[[str], Gang | None] = lambda key: None

    def get(self, key: str) -> GangRecord | None:
        return next((records[key] for records in self._records.values() if key in records), None)

    def subject_of(self, pod: Pod) -> WorkloadId:
        """Its gang group or gang, or the pod alone."""
        return self.index.subject(pod.spec.gang.key) if pod.spec.gang else WorkloadId.pod(pod.key)

    def job(self, key: str) -> tuple[WorkloadId | None, int | None]:
        """The group that a gang is in, None for itself alone, and its own word on priority."""
        return group_of(self.index.subject(key)), self.priority(key)

    def priority(self, key: str) -> int | None:
        """The gang's own word on the priority of its pods; None where theirs counts."""
        record = self.get(key)
        return self._prioritised(record.gang.spec).priority if record else None

    def priority_of(self, pod: Pod) -> int | None:
        """The priority of a pod by its gang's word; None where its own counts."""
        gang = self._gang(pod.spec.gang.key) if pod.spec.gang else None
        spec = self._prioritised(gang.spec) if gang else None
        return None if spec is None or spec.priority is None else spec.priority_of(pod.spec.priority)

    def queue(self, key: str) -> str:
        """The queue that the gang's object names; empty where its pods decide."""
        record = self.get(key)
        return record.gang.queue if record else ""

    def unadmitted(self) -> tuple[GangRecord, ...]:
        """PodGroups of Volcano that wait for room in their queue, oldest first; those with a problem wait for its
        end.
        """
        found = self._records[GangSource.VOLCANO].values()
        waiting = [each for each in found if each.volcano_status.phase in _UNADMITTED and not each.gang.spec.problem]
        waiting.sort(key=lambda each: (each.gang.created_seconds, each.gang.key))
        return tuple(each for each in waiting if self.get(each.gang.key) is each)

    def admitted(self) -> Iterable[Gang]:
        """Gangs of Volcano whose pods may be made, and do not run yet."""
        records = self._records[GangSource.VOLCANO].values()
        return (each.gang for each in records if each.volcano_status.phase is VolcanoPhase.INQUEUE)

    def of_class(self) -> frozenset[str]:
        """The gangs that take their priority from a PriorityClass by its name."""
        return frozenset(key for key in self.keys if (found := self.get(key)) and found.gang.spec.priority_class)

    @property
    def keys(self) -> frozenset[str]:
        """All gangs that have a PodGroup."""
        return frozenset(key for records in self._records.values() for key in records)

    def composite(self, change: Change[objects.CompositePodGroup]) -> None:
        """A composite group came, went or changed: what follows `nest_again` tells."""
        self._nested.composite(change)

    def seen(self, change: Change[Any]) -> tuple[set[WorkloadId], GangRecord | None]:
        """Subjects that may come out differently, and the record where its definition is news and has a problem."""
        record = self._read(change.object)
        if not isinstance(change.object, objects.UpstreamPodGroup):
            return self._seen(change, record)
        own, deep = record.gang.spec.problem, self._nested.group(change, record.gang)
        if deep and change.kind is not ChangeKind.DELETED:
            record.gang = self._nested.nested(record.gang.key)
        subjects, invalid = self._seen(change, record)
        # What its tree lacks may come at any moment: its pods are told, and no Event says that it is invalid.
        return subjects, invalid if own else None

    def _seen(self, change: Change[Any], record: GangRecord) -> tuple[set[WorkloadId], GangRecord | None]:
        gang, records = record.gang, self._records[record.gang.source]
        before = records.pop(gang.key, None)
        if change.kind is not ChangeKind.DELETED:
            records[gang.key] = record
            if before is None or before.problems != record.problems:
                for problem in record.problems:
                    log.warning("annotation ignored", error=problem)
        elif self.get(gang.key) is None:
            self._ran.discard(gang.key)
        known = change.kind is not ChangeKind.DELETED and before is not None
        if known and before is not None and _defined(before.gang) == _defined(gang):
            return set(), None
        current = self.get(gang.key)
        subjects = self.index.define(gang.key, current.gang.spec.groups if current else ())
        return subjects, record if gang.spec.problem and change.kind is not ChangeKind.DELETED else None

    def nest_again(self) -> set[WorkloadId]:
        """Subjects of PodGroups that go with others by now, or no more; asked once for all changes of a turn."""
        touched = set[WorkloadId]()
        for key in self._nested.renewed():
            record = self._records[GangSource.UPSTREAM][key]
            gang = self._nested.nested(key)
            if gang.spec != record.gang.spec:
                record.gang = gang
                touched |= self.index.define(key, gang.spec.groups) if self.get(key) is record else set()
        return touched

    def joined(self, membership: GangMembership, *, first: bool) -> set[WorkloadId]:
        """A pod came, went or changed: the subjects concerned. The `first` pod of a gang without object defines it; the
        others are nothing to those that list it and that it does not list.
        """
        key = membership.key
        if first and self.get(key) is None:
            return self.index.define(key, membership.spec.groups if membership.spec is not None else ())
        return {self.index.subject(key)}

    def emptied(self, key: str) -> set[WorkloadId]:
        """The gang's last pod went: a gang without object is gone with it, which concerns these."""
        if self.get(key) is not None:
            return set()
        self._ran.discard(key)
        return self.index.define(key)

    def parts(
        self,
        subject: WorkloadId,
        members: Callable[[str], Roster],
        counted: Callable[[str], Roster],
        labels: Callable[[], frozenset[str]],
    ) -> tuple[GangPart, ...]:
        """The gangs of a subject; `members` of a gang by key, or one that is `counted`, which is all that is asked of a
        gang that lists another group. `labels` are the keys of labels that nodes carry.
        """

        def those_of(key: str) -> Roster:
            if subject.grouped and self.index.subject(key) != subject:
                return Roster() if self._gang(key) is not None else counted(key)
            return members(key)

        return tuple(self._part(key, those_of(key), labels) for key in subject.gangs)

    def _gang(self, key: str) -> Gang | None:
        """As an object defines it: a PodGroup, or the Workload of a job that waits whole."""
        record = self.get(key)
        return record.gang if record is not None else self.workloads(key)

    def _part(self, key: str, members: Roster, labels: Callable[[], frozenset[str]]) -> GangPart:
        part = part_of(key, members, self._gang(key), ran=key in self._ran)
        if part.ran:
            self._ran.add(key)
        spec = self._prioritised(part.spec)
        if spec.topology:
            levels = networktopology.resolve(spec.topology, self.layers, labels())
            spec = msgspec.structs.replace(spec, topology=levels)
        return part if spec is part.spec else msgspec.structs.replace(part, spec=spec)

    def _prioritised(self, spec: GangSpec) -> GangSpec:
        """With what the class says that it names; a class that does not exist leaves it to the pods."""
        found = self.classes.get(spec.priority_class) if spec.priority_class else None
        if found is not None:
            spec = msgspec.structs.replace(spec, priority=found.value, preemption_policy=found.policy)
        raises = self.defaults.raises and spec.priority is not None
        return msgspec.structs.replace(spec, raises=True) if raises else spec

    def _read(self, source: AnyPodGroup) -> GangRecord:
        if isinstance(source, objects.UpstreamPodGroup):
            told = source.status.conditions if source.status else None
            return GangRecord(podgroups.upstream_gang(source, self.defaults), conditions=tuple(told or ()))
        if isinstance(source, objects.VolcanoPodGroup):
            return _volcano_record(source, self.defaults)
        times, problems = podgroups.read_times(source)
        return GangRecord(podgroups.pod_group(source, self.defaults), _status(source), times, problems)


def _volcano_record(source: objects.VolcanoPodGroup, defaults: GangDefaults) -> GangRecord:
    times, problems = podgroups.read_times(source)
    gang, told = volcano_gang(source, defaults), source.status or objects.VolcanoPodGroupStatus()
    status = VolcanoStatus(
        _VOLCANO_PHASES.get(told.phase, VolcanoPhase.UNSET), told.running, told.succeeded, told.failed
    )
    phase = proves(status, gang.spec.min_member)
    noted = podgroups.times_with(phase, times)
    gang = msgspec.structs.replace(
        gang, phase=phase, partial_seconds=noted.partial_seconds, whole_seconds=noted.whole_seconds
    )
    return GangRecord(gang, written_times=times, problems=problems, volcano_status=status)


def _defined(gang: Gang) -> tuple[object, ...]:
    """What of a gang its object defines."""
    return (gang.spec, gang.uid, gang.queue, gang.min_resources)


def initially_scheduled(record: GangRecord, message: str, *, placed: bool, now: float) -> objects.Condition | None:
    """The condition that scheduling.k8s.io's PodGroup is to get, None where it has it; taken as written."""
    stamp = _stamp(now)
    return _taken(record, podgroups.initially_scheduled(record.conditions, placed, message, stamp))


def partially_bound(record: GangRecord, times: GangTimes, now: float) -> objects.Condition | None:
    """As `initially_scheduled`, of what is noted on a gang that is bound in part or is not any more."""
    partial = times.partial_seconds > 0
    return _taken(record, podgroups.partially_bound(record.conditions, partial, _stamp(times.partial_seconds or now)))


def _taken(record: GangRecord, condition: objects.Condition | None) -> objects.Condition | None:
    if condition is not None:
        others = (item for item in record.conditions if item.type != condition.type)
        record.conditions = (*others, condition)
    return condition


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _status(source: objects.PodGroup) -> GangStatus:
    status = source.status or objects.PodGroupStatus()
    counts = (status.scheduled, status.running, status.succeeded, status.failed)
    begun = objects.unix_seconds(status.schedule_start_time)
    return GangStatus(podgroups.phase(status), *counts, status.occupied_by, begun)
