"""Evictions on their way, whoever wants them: victims are told, given time, told that they stay, and evicted together.

Preemption, reclaim and the draining of queues take this one path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import is_

import msgspec

from model.placement import EvictionPlan, PlanState, Victim
from model.pod.colocation import StandingNotice
from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.pod_record import PodRecord
from scheduler.cache.saved_work import job_of
from scheduler.core.ledger.charge import Charge
from scheduler.core.preemption.lost_work import lost_seconds
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.preemption.progress import (
    Action,
    Evict,
    Notify,
    Progress,
    Unnotify,
    VictimStates,
    advance,
    waits,
)
from scheduler.ports import NamedObject
from scheduler.steps.turn import Eviction, LostWork, Notice, Turn

PREEMPTED = "PreemptionByScheduler"
QUEUE_STOPPED, LOCAL_QUEUE_STOPPED = "ClusterQueueStopped", "LocalQueueStopped"
"""Reasons of condition DisruptionTarget and of notices: kube-scheduler's, and those of Kueue's condition Evicted."""
REASONS = frozenset({PREEMPTED, QUEUE_STOPPED, LOCAL_QUEUE_STOPPED})
_AGAIN_SECONDS = 60.0


class EvictionWords(msgspec.Struct, frozen=True):
    """Words of an eviction: `reason` and `by` in the notice, `message` in the condition, `note` in the Event."""

    reason: str
    by: str
    message: Callable[[Victim], str]
    note: Callable[[Victim], str]


class _Carried(msgspec.Struct):
    """`notified` are uids of victims that were told in the name of this plan, `seen` of those whose notice was seen on
    the pod since; `asked` is when (Unix seconds) each eviction was asked for, `settled` whose lost work is counted.
    `whole` are the Workloads of admitted jobs as which victims leave, `leaving` uids of pods and Workloads that were.
    `asking` are the jobs of which some victim asks for notice.
    `pods` are the victims as the last step saw them; while they are the same, nothing is to be done `until` then.
    """

    progress: Progress
    words: EvictionWords
    notified: set[str] = msgspec.field(default_factory=set)
    seen: set[str] = msgspec.field(default_factory=set)
    asked: dict[str, float] = msgspec.field(default_factory=dict)
    settled: set[str] = msgspec.field(default_factory=set)
    whole: dict[str, NamedObject] = msgspec.field(default_factory=dict)
    asking: frozenset[WorkloadId] = frozenset()
    leaving: set[str] = msgspec.field(default_factory=set)
    pods: list[Pod | None] = msgspec.field(default_factory=list)
    until: float | None = None
    left_until: float | None = None


class UnderWay:
    """What all who evict have under way: their plans, uids of the victims whose lost work is counted, and by uid the
    notices that were taken back: one may be seen on its pod a little longer, and gives the next plan no deadline.
    """

    def __init__(self) -> None:
        self.plans: dict[int, _Carried] = {}
        self.settled: set[str] = set()
        self.withdrawn: dict[str, StandingNotice] = {}


class Evictions:
    """By whoever wants them, who may want the same pods as others: `under_way` is common to all. Times are Unix
    seconds.
    """

    def __init__(self, cache: ClusterCache, under_way: UnderWay | None = None) -> None:
        self.under_way = under_way or UnderWay()
        self._cache = cache
        self._carried: dict[WorkloadId, _Carried] = {}
        self._keys: frozenset[WorkloadId] | None = None

    def __contains__(self, key: WorkloadId) -> bool:
        return key in self._carried

    def __iter__(self) -> Iterator[WorkloadId]:
        return iter(self._carried)

    @property
    def keys(self) -> frozenset[WorkloadId]:
        """Who wants them, as of this moment."""
        if self._keys is None:
            self._keys = frozenset(self._carried)
        return self._keys

    def begin(self, key: WorkloadId, plan: EvictionPlan, words: EvictionWords) -> None:
        """Carry a plan out from the next step on."""
        whole = dict[str, NamedObject]()
        for victim in plan.victims:
            record = self._cache.pods.record(victim.uid)
            if record is not None and record.workload is not None and self._whole(record.workload):
                whole[victim.uid] = record.workload
        asking = frozenset(victim.subject for victim in plan.victims if victim.notice_seconds > 0)
        carried, self._keys = _Carried(Progress(plan), words, whole=whole, asking=asking), None
        self._carried[key] = self.under_way.plans[id(carried)] = carried

    def step(self, key: WorkloadId, wanted: bool, policy: PreemptionPolicySettings, turn: Turn, now: float) -> bool:
        """One step; its part goes into the turn. Returns whether the plan is over."""
        carried, pods = self._carried[key], self._pods(self._carried[key])
        if wanted and carried.until is not None and now < carried.until and all(map(is_, pods, carried.pods)):
            return False
        carried.pods = pods
        states = self._states(carried, wanted)
        step = advance(carried.progress, states, policy, now)
        carried.progress = step.progress
        asked = frozenset(carried.asked)
        for action in step.actions:
            self._act(turn, carried, action, now)
        turn.plans.extend(_late(carried, asked))
        self._count_ended(turn, carried, states.alive, now)
        if wanted and carried.progress.plan.state is PlanState.RELEASED:
            self._end_whole(turn, carried)
        carried.until, carried.left_until = self._rests(carried, states, now), min(self._left(carried), default=None)
        if carried.progress.over:
            self._keys = None
            del self._carried[key], self.under_way.plans[id(carried)]
            self._forget(carried)
            turn.spared.extend(self._spared(carried))
        return carried.progress.over

    def by(self, key: WorkloadId) -> str:
        """In whose name its victims are told."""
        return self._carried[key].words.by

    def ended(self, key: WorkloadId) -> bool:
        """Whether no victim runs any more."""
        return not self._states(self._carried[key], wanted=True).alive

    def ending(self, now: float) -> list[WorkloadId]:
        """Whose victims would be evicted at this moment, having been given time."""
        return [
            key
            for key, carried in self._carried.items()
            if carried.progress.due_seconds is not None
            and not waits(carried.progress, self._states(carried, wanted=True), now)
        ]

    def next_due(self) -> float | None:
        """Unix time at which victims that were told, or left to end, go in any case."""
        told = (carried.progress.due_seconds for carried in self._carried.values())
        left = (carried.left_until for carried in self._carried.values())
        return min((due for due in (*told, *left) if due is not None), default=None)

    def _pods(self, carried: _Carried) -> list[Pod | None]:
        records = [self._cache.pods.record(victim.uid) for victim in carried.progress.plan.victims]
        return [None if record is None else record.pod for record in records]

    def _rests(self, carried: _Carried, states: VictimStates, now: float) -> float | None:
        """Until when a step does nothing while no victim changes; None where that is not known."""
        if carried.progress.plan.state is not PlanState.TERMINATING:
            return None
        asked, first = carried.asked, now - _AGAIN_SECONDS
        here = states.alive - states.deleting
        staying = (each for each in carried.progress.plan.victims if each.uid in here)
        times = (max(each.left_until_seconds, asked.get(each.uid, first) + _AGAIN_SECONDS) for each in staying)
        return min(times, default=float("inf"))

    def _left(self, carried: _Carried) -> Iterator[float]:
        """Until when victims that are left to end have time."""
        for victim in carried.progress.plan.victims:
            if not victim.left_until_seconds or victim.uid in carried.asked:
                continue
            record = self._cache.pods.record(victim.uid)
            if record is not None and not record.pod.terminal and not record.pod.deleting:
                yield victim.left_until_seconds

    def _states(self, carried: _Carried, wanted: bool) -> VictimStates:
        victims = {victim.uid: self._cache.pods.record(victim.uid) for victim in carried.progress.plan.victims}
        known = {uid: record.pod for uid, record in victims.items() if record is not None}
        standing = {uid: told for uid, pod in known.items() if (told := pod.colocation.eviction.standing) is not None}
        # Whose notice is on the pod no more, though nobody of us took it away, is told again.
        carried.notified -= carried.seen.difference(standing)
        carried.seen = carried.notified.intersection(standing)
        return VictimStates(
            alive=frozenset(uid for uid, pod in known.items() if not pod.terminal),
            deleting=frozenset(uid for uid, pod in known.items() if pod.deleting),
            notified=frozenset(carried.notified),
            saved=self._cache.saved,
            standing={
                uid: told
                for uid, told in standing.items()
                if told.reason in REASONS and told != self.under_way.withdrawn.get(uid)
            },
            wanted=wanted,
        )

    def _act(self, turn: Turn, carried: _Carried, action: Action, now: float) -> None:
        record = self._cache.pods.record(action.victim.uid)
        if record is None:
            return
        match action:
            case Notify(victim, deadline, since):
                carried.notified.add(victim.uid)
                told = StandingNotice(since, deadline, carried.words.reason, carried.words.by)
                turn.notices.append(Notice(victim.node, record.named, told, shown=_shows(record.pod, told)))
            case Unnotify(victim):
                carried.notified.discard(victim.uid)
                others = [other for other in self.under_way.plans.values() if victim.uid in other.notified]
                told = self._told(min(others, key=_deadline, default=carried), victim)
                standing = record.pod.colocation.eviction.standing
                if not others and standing is not None:
                    self.under_way.withdrawn[victim.uid] = standing
                shown = not others or _shows(record.pod, told)
                turn.notices.append(Notice(victim.node, record.named, told, withdrawn=not others, shown=shown))
            case Evict(victim):
                self._evict(turn, carried, victim, record, now)

    def _evict(self, turn: Turn, carried: _Carried, victim: Victim, record: PodRecord, now: float) -> None:
        """Once, and again where the pod is still there a minute later: then as itself, too, since anybody may name a
        job as a pod's owner, and its controller ends those alone that it made.
        """
        if now - carried.asked.get(victim.uid, -_AGAIN_SECONDS) < _AGAIN_SECONDS:
            return
        again = victim.uid in carried.asked
        carried.asked[victim.uid] = now
        lost = self._settle(turn, carried, victim, record.pod, now)
        note = carried.words.note(victim)
        if lost >= 1.0:
            since = "since its checkpoint" if victim.uid in self._cache.saved else "without a checkpoint"
            note += f"; {lost:.0f} s of work {since} are lost"
        leaves = self._cache.leaves_as(record)
        for each in dict.fromkeys((leaves, record.named) if again else (leaves,)):
            carried.leaving.add(each.uid)
            turn.evictions.append(Eviction(each, carried.words.reason, carried.words.message(victim), note))

    def _end_whole(self, turn: Turn, carried: _Carried) -> None:
        """Jobs whose pods all ended before they were evicted: they keep their quota, and make pods anew, until the
        Workload is.
        """
        asked = {carried.whole[uid].key for uid in carried.asked if uid in carried.whole}
        for victim in carried.progress.plan.victims:
            workload = carried.whole.get(victim.uid)
            if workload is not None and workload.key not in asked and self._whole(workload):
                asked.add(workload.key)
                carried.leaving.add(workload.uid)
                words = carried.words
                turn.evictions.append(Eviction(workload, words.reason, words.message(victim), words.note(victim)))

    def _whole(self, workload: NamedObject) -> bool:
        """Whether pods leave by the eviction of this Workload."""
        found = self._cache.suspended.get(workload.key)
        return (
            found is not None and found.uid == workload.uid and self._cache.suspended.admission(found.key) is not None
        )

    def _count_ended(self, turn: Turn, carried: _Carried, alive: frozenset[str], now: float) -> None:
        """Victims that ended by themselves once they were told."""
        for victim in carried.progress.plan.victims:
            if victim.uid in carried.notified and victim.uid not in alive and victim.uid not in carried.settled:
                record = self._cache.pods.record(victim.uid)
                if record is not None:
                    self._settle(turn, carried, victim, record.pod, now)

    def _settle(self, turn: Turn, carried: _Carried, victim: Victim, pod: Pod, now: float) -> float:
        """The victim's lost work in seconds, counted once."""
        lost = lost_seconds(pod.status.started_seconds, self._cache.saved.get(victim.uid), now)
        if victim.uid not in carried.settled and victim.uid not in self.under_way.settled:
            carried.settled.add(victim.uid)
            self.under_way.settled.add(victim.uid)
            job, since = job_of(pod, victim.subject), carried.progress.since.get(victim.uid)
            unsaved = since is not None and self._cache.saved.get(victim.uid, 0.0) < since
            asked = victim.subject in carried.asking
            turn.lost.append(LostWork(victim.subject, job, victim.queue, lost, unsaved and asked))
            self._cache.work.lose(job, lost)
        return lost

    def _forget(self, carried: _Carried) -> None:
        """Of a plan that is over, whose lost work is counted: who is spared may lose more, who is gone may not."""
        if carried.progress.plan.state is PlanState.ABORTED:
            self.under_way.settled -= carried.settled
        shared = self.under_way
        shared.settled = {uid for uid in shared.settled if self._cache.pods.record(uid) is not None}
        shared.withdrawn = {
            uid: told for uid, told in shared.withdrawn.items() if self._cache.pods.record(uid) is not None
        }

    def _told(self, carried: _Carried, victim: Victim) -> StandingNotice:
        plan, words = carried.progress.plan, carried.words
        since = carried.progress.since.get(victim.uid, 0.0)
        return StandingNotice(since, plan.deadline_seconds, words.reason, words.by)

    def _spared(self, carried: _Carried) -> list[str]:
        """Of a plan that is over, the pods and Workloads (uids) whose eviction nobody needs any more."""
        if carried.progress.plan.state is not PlanState.ABORTED:
            return []
        return sorted(carried.leaving.difference(*(other.leaving for other in self.under_way.plans.values())))


def _deadline(carried: _Carried) -> float:
    return carried.progress.plan.deadline_seconds


def _late(carried: _Carried, asked: frozenset[str]) -> Iterator[EvictionPlan]:
    """The plan of those who were left to end and go after all; `asked` went before."""
    late = tuple(
        msgspec.structs.replace(victim, left_until_seconds=0.0)
        for victim in carried.progress.plan.victims
        if victim.left_until_seconds and victim.uid in carried.asked and victim.uid not in asked
    )
    if late:
        yield msgspec.structs.replace(carried.progress.plan, victims=late)


def told_pods(cache: ClusterCache) -> dict[str, list[Charge]]:
    """Pods with a notice of ours that do not end yet, by the name in it."""
    found: dict[str, list[Charge]] = {}
    for charge in sorted(cache.ledger.charges(), key=lambda charge: charge.uid):
        standing = charge.pod.colocation.eviction.standing if charge.pod is not None else None
        if charge.pod is not None and standing is not None and standing.reason in REASONS and not charge.pod.deleting:
            found.setdefault(standing.by, []).append(charge)
    return found


def taken_back(cache: ClusterCache, charges: Iterable[Charge]) -> Turn:
    """Notices that no plan stands behind, such as those of a scheduler before this one."""
    turn = Turn()
    for charge in charges:
        record = cache.pods.record(charge.uid)
        standing = record.pod.colocation.eviction.standing if record is not None else None
        if record is not None and standing is not None:
            turn.notices.append(Notice(charge.node, record.named, standing, withdrawn=True))
    return turn


def _shows(pod: Pod, notice: StandingNotice) -> bool:
    """Whether the pod is to say so: another's notice of an earlier deadline is the one that matters to it."""
    standing = pod.colocation.eviction.standing
    foreign = standing is not None and standing.reason not in REASONS
    return not (foreign and standing is not None and standing.deadline_seconds <= notice.deadline_seconds)
