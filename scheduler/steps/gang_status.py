"""Status, times, conditions and Events of PodGroups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from model.workload import Gang, GangSource
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.gang_cache import GangRecord, initially_scheduled, partially_bound
from scheduler.core.gangs.assembly import Hold
from scheduler.core.gangs.minimum import GangPart
from scheduler.core.gangs.phase import carry_over, gang_status, gang_times, times_due
from scheduler.core.gangs.release import Release
from scheduler.core.gangs.volcano_phase import VolcanoPhase, proves, volcano_status
from scheduler.steps.turn import GangCondition, GangEvent, GangStatusWrite, Turn


class GangStatuses:
    """Of the gangs that have a PodGroup; what is told is taken as written.

    `admits` is whether a gang's queue has room for what it needs at least, `in_turn` of which of those that wait that
    is asked.
    """

    def __init__(
        self,
        cache: ClusterCache,
        admits: Callable[[Gang], bool] = lambda gang: True,
        in_turn: Callable[[Sequence[GangRecord]], Sequence[GangRecord]] = lambda waiting: waiting,
    ) -> None:
        self._cache = cache
        self._admits = admits
        self._in_turn = in_turn

    def status(self, part: GangPart, since: float, now: float) -> Turn:
        """What differs by now; `since` is when the gang was found bound in part, 0 where it was not."""
        record, turn = self._cache.gangs.get(part.key), Turn()
        if record is None:
            return turn
        if record.gang.source is GangSource.UPSTREAM:
            turn.conditions += self._conditions(record, part, since, now)
            return turn
        if record.gang.source is GangSource.VOLCANO:
            turn.gang_statuses += self._of_volcano(record, part, since, now)
            return turn
        counted = gang_status(record.written_status.phase, part.spec.min_member, part.members, len(part.members.bound))
        owners = (pod.owner for pod in part.members.counted if pod.owner)
        status = carry_over(counted, record.written_status, owners, now)
        times = times_due(record.written_times, gang_times(record.times, part, since, now), status.phase)
        if status != record.written_status or times is not None:
            record.written_status, record.written_times = status, times or record.written_times
            turn.gang_statuses.append(GangStatusWrite(record.named, status, times))
        return turn

    def admitted(self) -> Turn:
        """PodGroups of Volcano whose queue has room by now: their pods may be made."""
        turn = Turn()
        for record in self._in_turn(self._cache.gangs.unadmitted()):
            if self._admits(record.gang):
                record.volcano_status = msgspec.structs.replace(record.volcano_status, phase=VolcanoPhase.INQUEUE)
                turn.gang_statuses.append(GangStatusWrite(record.named, record.volcano_status))
        return turn

    def _of_volcano(self, record: GangRecord, part: GangPart, since: float, now: float) -> list[GangStatusWrite]:
        """Volcano's counts and phase."""
        before, minimum = record.volcano_status, part.spec.min_member
        status = volcano_status(before.phase, minimum, part.members)
        found = gang_times(record.times, part, since, now)
        times = times_due(record.written_times, found, proves(status, minimum))
        if status == before and times is None:
            return []
        record.volcano_status, record.written_times = status, times or record.written_times
        return [GangStatusWrite(record.named, status, times)]

    def unplaced(self, key: str, message: str, now: float) -> list[GangCondition]:
        """The condition of scheduling.k8s.io's PodGroup whose members do not fit."""
        record = self._cache.gangs.get(key)
        if record is None or record.gang.source is not GangSource.UPSTREAM:
            return []
        condition = initially_scheduled(record, message, placed=False, now=now)
        return [] if condition is None else [GangCondition(record.named, condition)]

    def announced(self, about: Release | Hold) -> list[GangEvent]:
        """An Event on each PodGroup concerned."""
        records = (self._cache.gangs.get(key) for key in about.subject.gangs)
        return [GangEvent(each.named, about.reason.value, about.detail) for each in records if each is not None]

    def _conditions(self, record: GangRecord, part: GangPart, since: float, now: float) -> list[GangCondition]:
        """Of scheduling.k8s.io's PodGroup."""
        found = []
        if part.met and len(part.members.bound) + len(part.members.succeeded) >= part.spec.min_member:
            found.append(initially_scheduled(record, "", placed=True, now=now))
        found.append(partially_bound(record, gang_times(record.times, part, since, now), now))
        return [GangCondition(record.named, condition) for condition in found if condition is not None]
