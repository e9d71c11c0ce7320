"""`sublet simulate cluster`: the scheduler's own cycle over objects from files; what it writes is answered at once.

A binding is made, a condition and a PodGroup's status are taken on. A pod that is to be evicted stays, unless the run
goes on until everything is settled: then it goes, and back-offs pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from cli.simulate.cluster_objects import OTHERS, UPSTREAM_GROUP, Admission, budget, checked
from cli.simulate.cluster_settings import NODE_CONFIG, configured
from cli.simulate.manifests import GivenObject, Manifests
from kube import objects
from kube.informer import Change, ChangeKind
from model.condition import ConditionStatus, ConditionType
from model.decision import Decision
from model.fault import ConfigurationFault
from model.pod.status import PodPhase
from model.reason import Reason
from model.workload import WorkloadId
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cycle import Cycle
from scheduler.settings import SchedulerSettings
from scheduler.steps.turn import Eviction, GangStatusWrite, PodConditionWrite, Turn
from view.cluster_outcome import GangOut, Nomination, Outcome, Pending, SimulatedPlacement, SimulatedVictim

_PREEMPTOR = re.compile(r"preemptor: (.+), triggerPod: ")
_ROUNDS = 1000
"""Of waiting and evicting: each ends with something gone or placed, so this only bounds a mistake of ours."""


def decide(found: Manifests, now: float, settings: SchedulerSettings, *, settle: bool = False) -> Outcome:
    """What the scheduler does with everything given, at Unix time `now`. Raises ConfigurationFault."""
    run = _Run(found, now, settings)
    run.quieten()
    rounds = 0
    while settle and rounds < _ROUNDS and run.wait():
        rounds += 1
        run.quieten()
    return run.outcome()


class _Run:
    def __init__(self, found: Manifests, now: float, settings: SchedulerSettings) -> None:
        self._settings = settings = configured(settings, found)[0]
        self._now = now
        admission = Admission(found, now)
        given = {item.label: item for item in found.of("Pod")}
        admitted = {label: admission.pod(item) for label, item in sorted(given.items())}
        checked(found, {label: msgspec.structs.replace(given[label], object=pod) for label, pod in admitted.items()})
        self._pods = {pod.metadata.uid: pod for pod in admitted.values()}
        self._groups = {
            f"{item.object.metadata.namespace}/{item.object.metadata.name}": msgspec.structs.replace(
                item.object, metadata=admission.named(item.object.metadata)
            )
            for item in found.of("PodGroup")
        }
        self._upstream_groups = [admission.group(item) for item in found.of(UPSTREAM_GROUP)]
        self._cache = ClusterCache(
            settings.served, settings.load, settings.gangs, settings.largest_cpu_ratio, settings.plain
        )
        self._cycle = Cycle(self._cache, settings)
        self._placed: dict[str, str] = {}
        self._victims: dict[str, SimulatedVictim] = {}
        self._warned: dict[str, float] = {}
        self._decisions: dict[str, Decision] = {}
        self._inbox: list[facts.Fact] = list(self._first(found))

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
            inbox, self._inbox = self._inbox, []
            turn = self._cycle.turn(inbox, self._now)
            self._answer(turn)
            more = turn.more or bool(self._inbox)

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
        return Outcome(
            placements=tuple(
                sorted((SimulatedPlacement(key, node) for key, node in self._placed.items()), key=_by_pod)
            ),
            nominations=tuple(
                sorted(
                    (Nomination(_key(pod), pod.status.nominated_node_name) for pod in waiting if _nominated(pod)),
                    key=_by_pod,
                )
            ),
            victims=tuple(sorted(self._victims.values(), key=_by_pod)),
            pending=tuple(sorted(map(self._pending, waiting), key=_by_pod)),
            gangs=_gangs(self._cache),
        )

    def _first(self, found: Manifests) -> Iterable[facts.Fact]:
        """Everything as the API server would list it, pods last."""
        configs = [item.object for item in found.of("ConfigMap") if item.object.metadata.name == NODE_CONFIG]
        yield from (facts.ObjectSeen(Change(ChangeKind.ADDED, config)) for config in configs)
        for kind in OTHERS:
            yield from (facts.ObjectSeen(Change(ChangeKind.ADDED, item.object)) for item in found.of(kind))
        yield from (facts.ObjectSeen(Change(ChangeKind.ADDED, group)) for group in self._upstream_groups)
        for item in found.of("PodDisruptionBudget"):
            yield facts.ObjectSeen(Change(ChangeKind.ADDED, budget(item, self._pods.values())))
        yield from (facts.NodeSeen(Change(ChangeKind.ADDED, item.object)) for item in found.of("Node"))
        yield from (facts.PodGroupSeen(Change(ChangeKind.ADDED, group)) for group in self._groups.values())
        yield from (facts.PodSeen(Change(ChangeKind.ADDED, pod)) for pod in self._pods.values())

    def _answer(self, turn: Turn) -> None:
        """As an API server that grants everything."""
        for refusal in turn.refusals:
            raise ConfigurationFault(refusal.kind, refusal.message)
        self._decisions.update((decision.subject, decision) for decision in turn.decisions)
        for note in turn.pod_conditions:
            self._note(note)
        for notice in turn.notices:
            self._warned.pop(notice.pod.uid, None)
            if notice.deadline_seconds is not None:
                self._warned[notice.pod.uid] = notice.deadline_seconds
        for eviction in turn.evictions:
            node = self._pods[eviction.pod.uid].spec.node_name
            self._victims[eviction.pod.uid] = _victim(eviction, node)
        for status in turn.gang_statuses:
            self._gang(status)
        for batch in turn.batches:
            for bind in batch.binds:
                self._bind(bind.pod.uid, bind.placement.node)
            self._inbox.append(facts.BatchDone(batch.subject))

    def _bind(self, uid: str, node: str) -> None:
        pod = self._pods[uid]
        bound = objects.Condition(ConditionType.POD_SCHEDULED, ConditionStatus.TRUE)
        status = msgspec.structs.replace(pod.status, conditions=[*_others(pod), bound], nominated_node_name="")
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        self._placed[_key(pod)] = node
        self._become(msgspec.structs.replace(pod, spec=spec, status=status))

    def _note(self, note: PodConditionWrite) -> None:
        pod = self._pods[note.pod.uid]
        told = objects.Condition(ConditionType.POD_SCHEDULED, ConditionStatus.FALSE, Reason.UNSCHEDULABLE, note.message)
        node = pod.status.nominated_node_name if note.nominated is None else note.nominated
        status = msgspec.structs.replace(pod.status, conditions=[*_others(pod), told], nominated_node_name=node)
        self._become(msgspec.structs.replace(pod, status=status))

    def _become(self, pod: objects.Pod) -> None:
        self._pods[pod.metadata.uid] = pod
        self._inbox.append(facts.PodSeen(Change(ChangeKind.MODIFIED, pod)))

    def _gang(self, note: GangStatusWrite) -> None:
        group = self._groups.get(note.gang.key)
        if group is not None:
            self._groups[note.gang.key] = msgspec.structs.replace(group, status=_group_status(note))
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
        record = self._cache.record(pod.metadata.uid)
        subject = self._cache.subject_of(record.pod) if record else None
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


def _group_status(note: GangStatusWrite) -> objects.PodGroupStatus:
    told = note.status
    counts = (told.phase, told.scheduled, told.running, told.succeeded, told.failed)
    begun = datetime.fromtimestamp(told.start_seconds, UTC) if told.start_seconds else None
    return objects.PodGroupStatus(*counts, told.occupied_by, begun)


def _nominated(pod: objects.Pod) -> bool:
    return bool(pod.status.nominated_node_name)


def _others(pod: objects.Pod) -> list[objects.Condition]:
    return [one for one in pod.status.conditions or () if one.type != ConditionType.POD_SCHEDULED]


def _by_pod(row: SimulatedPlacement | Nomination | SimulatedVictim | Pending) -> str:
    return row.pod


def _victim(eviction: Eviction, node: str) -> SimulatedVictim:
    """The preemptor stands in the message that the pod gets."""
    named = _PREEMPTOR.search(eviction.message)
    return SimulatedVictim(eviction.pod.key, node, named[1] if named else "", eviction.reason)


def _gangs(cache: ClusterCache) -> tuple[GangOut, ...]:
    """Every gang that has a PodGroup or a pod, by name."""
    return tuple(_gang_out(cache, key) for key in sorted(cache.gang_keys() | cache.gangs.keys))


def _gang_out(cache: ClusterCache, key: str) -> GangOut:
    (part,), record = cache.parts(WorkloadId.gang(key)), cache.gangs.get(key)
    return GangOut(key, record.written_status.phase if record else "", part.members.satisfied, part.spec.min_member)
