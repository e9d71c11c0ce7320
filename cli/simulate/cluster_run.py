"""`sublet simulate cluster`: the scheduler's own cycle over objects from files; what it writes is answered at once.

A binding is made, a condition and a PodGroup's status are taken on. A pod that is to be evicted stays, unless the run
goes on until everything is settled: then it goes, and back-offs pass. Without a Node, quota alone decides.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import starmap

import msgspec

from cli.simulate.cluster_given import GivenCluster
from cli.simulate.cluster_jobs import ADMITTED, EVICTED, PENDING, PREEMPTING, Jobs, PodFate
from cli.simulate.cluster_settings import configured
from cli.simulate.cluster_workloads import SimulatedWorkloads
from cli.simulate.manifests import GivenObject, Manifests
from kube import objects
from kube.informer import Change, ChangeKind
from model.condition import ConditionStatus, ConditionType
from model.decision import Decision
from model.fault import ConfigurationFault
from model.placement import EvictionPlan, Placement
from model.pod.status import PodPhase
from model.queue import Cell
from model.reason import Reason, Stage, stage_of
from model.suspended.job import WORKLOAD
from model.workload import GangSource, WorkloadId, WorkloadKind
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.suspended_cache import is_workload
from scheduler.core.gangs.phase import GangStatus
from scheduler.core.queues.shares import QuotaMode
from scheduler.cycle import Cycle
from scheduler.settings import SchedulerSettings
from scheduler.steps.turn import Eviction, GangStatusWrite, PodConditionWrite, Turn
from view.cluster_outcome import GangOut, Nomination, Outcome, Pending, SimulatedPlacement, SimulatedVictim
from view.simulated_queues import PARTS, ServedOut, queue_outs

_PREEMPTOR = re.compile(r"preemptor: (.+), triggerPod: ")
_ROUNDS = 1000
"""Of waiting and evicting: each ends with something gone or placed, so this only bounds a mistake of ours."""


class Extent(msgspec.Struct, frozen=True):
    """How far the run goes: `cycles` turns with one head a queue each, or without a number until nothing moves; with
    `settle` victims go in between.
    """

    settle: bool = False
    cycles: int | None = None


ONE_DECISION = Extent()


def decide(found: Manifests, now: float, settings: SchedulerSettings, extent: Extent = ONE_DECISION) -> Outcome:
    """What the scheduler does with everything given, at Unix time `now`. Raises ConfigurationFault."""
    if extent.cycles is not None:
        settings = msgspec.structs.replace(settings, heads_per_queue=1)
    run = _Run(found, now, settings)
    if extent.cycles is None:
        run.quieten()
    for _ in range(extent.cycles or 0):
        run.cycle()
        if extent.settle:
            run.wait()
    rounds = 0
    while extent.settle and extent.cycles is None and rounds < _ROUNDS and run.wait():
        rounds += 1
        run.quieten()
    return run.outcome()


class _Run:
    def __init__(self, found: Manifests, now: float, settings: SchedulerSettings) -> None:
        self._settings = settings = configured(settings, found)[0]
        self._now = now
        self._cache = ClusterCache(
            settings.served,
            settings.load,
            settings.gangs,
            settings.largest_cpu_ratio,
            settings.plain,
            settings.queues.dialects,
            settings.gang_makers,
            late_by_creation=settings.suspended_jobs.ready.by_creation,
        )
        self._cycle = Cycle(self._cache, settings)
        given = GivenCluster(found, now)
        self._pods = given.pods
        self._groups = given.groups
        self._jobs = Jobs(self._cache, given.templates)
        self._workloads = SimulatedWorkloads(self._cache, given.workloads)
        self._served: list[ServedOut] = []
        self._plans: list[EvictionPlan] = []
        self._cycles = 0
        self._placed: dict[str, str] = {}
        self._victims: dict[str, SimulatedVictim] = {}
        self._warned: dict[str, float] = {}
        self._decisions: dict[str, Decision] = {}
        self._inbox: list[facts.Fact] = list(given.facts())

    def quieten(self) -> None:
        """Turns until one has nothing to write and nothing left to try; who is warned saves nothing and goes late."""
        self._turns()
        while self._warned:
            self._now = max(self._now, *self._warned.values())
            self._warned.clear()
            self._turns()

    def _turns(self) -> None:
        more = True
        while more:
            more = self.cycle()

    def cycle(self) -> bool:
        """One turn; whether another would have something to do."""
        inbox, self._inbox = self._inbox, []
        self._cycles += 1
        turn = self._cycle.turn(inbox, self._now)
        if self._cycles == 1:
            self._jobs.see(self._pods)
            self._jobs.add(self._workloads.pods())
        self._answer(turn)
        return turn.more or bool(self._inbox)

    def wait(self) -> bool:
        """Delete the victims and let the longest back-off pass; False without victims."""
        leaving = self._victims.keys() & self._pods.keys()
        if not leaving:
            return False
        self._now += self._settings.backoff.longest_seconds
        for uid in sorted(leaving):
            self._inbox.append(facts.PodSeen(Change(ChangeKind.DELETED, self._pods.pop(uid))))
        return True

    def outcome(self) -> Outcome:
        waiting = [pod for pod in self._pods.values() if self._waits(pod)]
        fates, queues = self._fates(waiting), self._cycle.settings.queues
        return Outcome(
            placements=tuple(
                sorted((*starmap(SimulatedPlacement, self._placed.items()), *self._workloads.seats()), key=_by_pod)
            ),
            nominations=tuple(
                sorted(
                    (Nomination(_key(pod), pod.status.nominated_node_name) for pod in waiting if _nominated(pod)),
                    key=_by_pod,
                )
            ),
            victims=tuple(sorted(self._victims.values(), key=_by_pod)),
            pending=tuple(
                sorted((*map(self._pending, waiting), *self._workloads.pending(self._decisions)), key=_by_pod)
            ),
            gangs=_gangs(self._cache),
            queues=queue_outs(
                self._cycle.standings(PARTS), self._asked(waiting), proportion=queues.quota_mode is QuotaMode.PROPORTION
            ),
            jobs=self._jobs.jobs(fates),
            workloads=self._jobs.workloads(fates),
            preemptions=self._jobs.preemptions(self._plans),
            served=tuple(self._served),
        )

    def _asked(self, waiting: Iterable[objects.Pod]) -> dict[str, Counter[Cell]]:
        """What waits in each queue and below it, but for what is nominated already."""
        found: dict[str, Counter[Cell]] = defaultdict(Counter)
        records = (None if _nominated(pod) else self._cache.pods.record(pod.metadata.uid) for pod in waiting)
        for record in (*records, *self._workloads.waiting()):
            if record is not None:
                asked = record.pod_class.cells()
                for queue in self._cycle.quotas.tree.path(record.pod.spec.queue):
                    found[queue].update(asked)
        return found

    def _fates(self, waiting: Iterable[objects.Pod]) -> dict[str, PodFate]:
        """By uid, of the pods that are there and of the victims that went."""
        fates = {uid: PodFate(EVICTED, victim.reason) for uid, victim in self._victims.items()}
        for uid, pod in self._pods.items():
            if pod.spec.node_name and uid not in fates:
                record = self._cache.pods.record(uid)
                flavors = record.pod.spec.flavors if record is not None else ()
                fates[uid] = PodFate(ADMITTED, Reason.SCHEDULED.value, flavors)
        for pod in waiting:
            outcome = PREEMPTING if _nominated(pod) else PENDING
            fates[pod.metadata.uid] = PodFate(outcome, self._pending(pod).reason)
        return fates | self._workloads.fates(self._decisions)

    def _answer(self, turn: Turn) -> None:
        """As an API server that grants everything."""
        for refusal in turn.refusals:
            if not refusal.counts:
                raise ConfigurationFault(refusal.kind, refusal.message)
        self._plans += turn.plans
        for decision in turn.decisions:
            self._decisions[decision.subject] = decision
            self._serve(decision)
        for note in turn.pod_conditions:
            self._note(note)
        for notice in turn.notices:
            self._warned.pop(notice.pod.uid, None)
            if not notice.withdrawn:
                self._warned[notice.pod.uid] = notice.told.deadline_seconds
        for eviction in turn.evictions:
            for uid in self._leaving(eviction):
                self._victims[uid] = _victim(eviction, self._pods[uid])
        for status in turn.gang_statuses:
            self._gang(status)
        for batch in turn.batches:
            for bind in batch.binds:
                self._bind(bind.pod.uid, bind.placement)
            self._inbox.append(facts.BatchDone(batch.subject))

    def _leaving(self, eviction: Eviction) -> list[str]:
        """The pods that go: the one that is named, or all of a job whose Workload is."""
        if eviction.pod.uid in self._pods:
            return [eviction.pod.uid]
        told = (eviction.pod.namespace, eviction.pod.name)
        return [
            uid
            for uid, pod in self._pods.items()
            if (pod.metadata.namespace, (pod.metadata.annotations or {}).get(WORKLOAD)) == told
        ]

    def _serve(self, decision: Decision) -> None:
        """Who was tried: admission alone holds up those that are not."""
        kind, _, name = decision.subject.partition("/")
        if stage_of(decision.reason) is Stage.ADMISSION:
            return
        subject = WorkloadId.pod(name) if kind == WorkloadKind.POD else WorkloadId.gang(*name.split(","))
        name, queue = self._workloads.named(subject) or (self._jobs.name_of(subject), self._queue_of(subject))
        self._served.append(ServedOut(self._cycles, queue, name))

    def _queue_of(self, subject: WorkloadId) -> str:
        if subject.gangs:
            members = (pod for part in self._cache.parts(subject) for pod in part.members.counted)
            return next((pod.spec.queue for pod in members), "")
        record = self._cache.pods.find(*subject.name.split("/", 1))
        return record.pod.spec.queue if record is not None else ""

    def _bind(self, uid: str, placement: Placement) -> None:
        pod, node = self._pods[uid], placement.node
        annotations = {**(pod.metadata.annotations or {}), **dict(placement.annotations)}
        pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=annotations))
        bound = objects.Condition(ConditionType.POD_SCHEDULED, ConditionStatus.TRUE)
        status = msgspec.structs.replace(pod.status, conditions=[*_others(pod), bound], nominated_node_name="")
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        self._placed[_key(pod)] = node
        self._become(msgspec.structs.replace(pod, spec=spec, status=status))

    def _note(self, note: PodConditionWrite) -> None:
        pod = self._pods.get(note.pod.uid)
        if pod is None:
            return  # of a Workload
        told = objects.Condition(ConditionType.POD_SCHEDULED, ConditionStatus.FALSE, Reason.UNSCHEDULABLE, note.message)
        node = pod.status.nominated_node_name if note.nominated is None else note.nominated
        status = msgspec.structs.replace(pod.status, conditions=[*_others(pod), told], nominated_node_name=node)
        self._become(msgspec.structs.replace(pod, status=status))

    def _become(self, pod: objects.Pod) -> None:
        self._pods[pod.metadata.uid] = pod
        self._inbox.append(facts.PodSeen(Change(ChangeKind.MODIFIED, pod)))

    def _gang(self, note: GangStatusWrite) -> None:
        group = self._groups.get(note.gang.key)
        if group is not None and isinstance(note.status, GangStatus):
            self._groups[note.gang.key] = msgspec.structs.replace(group, status=_group_status(note.status))
            self._inbox.append(facts.PodGroupSeen(Change(ChangeKind.MODIFIED, self._groups[note.gang.key])))

    def _waits(self, pod: objects.Pod) -> bool:
        ours = pod.spec.scheduler_name in self._cache.schedulers
        return ours and not pod.spec.node_name and pod.status.phase in ("", PodPhase.PENDING)

    def _pending(self, pod: objects.Pod) -> Pending:
        """By the newest decision about its gang or itself; a gated pod by the API server's own condition."""
        told = next(
            (one for one in pod.status.conditions or () if one.type == ConditionType.POD_SCHEDULED), objects.Condition()
        )
        if pod.spec.scheduling_gates:
            return Pending(_key(pod), told.reason, told.message)
        record = self._cache.pods.record(pod.metadata.uid)
        subject = self._cache.gangs.subject_of(record.pod) if record else None
        own = WorkloadId.pod(_key(pod)).text
        decision = self._decisions.get(own) or self._decisions.get(subject.text if subject else own)
        return Pending(_key(pod), decision.reason.value if decision else told.reason, told.message)


def scheduled_by_others(found: Manifests, settings: SchedulerSettings) -> list[GivenObject]:
    """Pods without a node that another scheduler is to place."""
    names = ("", *settings.served)
    spec = [(item, item.object.spec) for item in found.of("Pod")]
    return [item for item, told in spec if not told.node_name and told.scheduler_name not in names]


def _key(pod: objects.Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def _group_status(told: GangStatus) -> objects.PodGroupStatus:
    counts = (told.phase, told.scheduled, told.running, told.succeeded, told.failed)
    begun = datetime.fromtimestamp(told.start_seconds, UTC) if told.start_seconds else None
    return objects.PodGroupStatus(*counts, told.occupied_by, begun)


def _nominated(pod: objects.Pod) -> bool:
    return bool(pod.status.nominated_node_name)


def _others(pod: objects.Pod) -> list[objects.Condition]:
    return [one for one in pod.status.conditions or () if one.type != ConditionType.POD_SCHEDULED]


def _by_pod(row: SimulatedPlacement | Nomination | SimulatedVictim | Pending) -> str:
    return row.pod


def _victim(eviction: Eviction, pod: objects.Pod) -> SimulatedVictim:
    """The preemptor stands in the message that the pod gets."""
    named = _PREEMPTOR.search(eviction.message)
    return SimulatedVictim(_key(pod), pod.spec.node_name, named[1] if named else "", eviction.reason)


def _gangs(cache: ClusterCache) -> tuple[GangOut, ...]:
    """Every gang that has a PodGroup or a pod, by name; Workloads are no such."""
    return tuple(
        _gang_out(cache, key) for key in sorted(cache.pods.gang_keys() | cache.gangs.keys) if not is_workload(key)
    )


def _gang_out(cache: ClusterCache, key: str) -> GangOut:
    (part,), record = cache.parts(WorkloadId.gang(key)), cache.gangs.get(key)
    phase = ""
    if record is not None:
        of_volcano = record.gang.source is GangSource.VOLCANO
        phase = (record.volcano_status.phase if of_volcano else record.written_status.phase).value
    return GangOut(key, phase, part.members.satisfied, part.spec.min_member)
