"""Suspended jobs that find room: admitted whole, and their seats kept until their pods take them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from jobs.core.suspended.policy import SuspendedPolicy
from kube.dialects.gangs.networktopology import HOSTNAME
from kube.dialects.suspended.stand_ins import pod_set_of, stand_in_uid
from model.queue import Cell
from model.reason import Reason
from model.resources import PODS, amount_text
from model.suspended.job import POD_SET, PodTemplate
from model.suspended.workload import ConditionName, PodSetAssignment, WorkloadAdmission, WorkloadObject
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.suspended_cache import gang_key, is_workload, named_object, workload_key
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.claim import Claim, ClaimedPod, ClaimKind, claimed
from scheduler.core.ledger.queue_book import add
from scheduler.core.placement.place import Placed
from scheduler.core.placement.working_snapshot import Assignment, Nominated, WorkingSnapshot
from scheduler.core.queueing.news import News, freed_by
from scheduler.core.queueing.queue_refusal import QueueRefusal
from scheduler.core.snapshot.assignment import NO_ROW
from scheduler.core.snapshot.podclass import PodClass, PodTraits
from scheduler.core.snapshot.snapshot import ClusterSnapshot
from scheduler.steps.asked_amounts import by_resource
from scheduler.steps.turn import Turn, WorkloadAdmissionWrite

_KIND = ClaimKind.ADMITTED
_SEATED = 1 << 31
"""No priority is as high: seats of an admitted job are nobody else's, and evictions alone end it."""
_PODS_A_SECOND = 10.0
"""So slowly controllers make pods at worst."""
_NOWHERE = ""
"""The node of what counts to a queue and has no seat, such as that of a job whose pods are made again elsewhere."""
_NO_SET = ""
"""The pod set of what counts to a queue and is no pod."""


class SuspendedJobs:
    """What is kept stands in the ledger."""

    def __init__(self, cache: ClusterCache, policy: SuspendedPolicy) -> None:
        self._cache = cache
        self._blocks = policy.ready.enabled and policy.ready.block_admission
        self._seat_seconds = policy.seat_seconds
        self._now = 0.0
        self._classes: dict[str, tuple[tuple[PodTemplate, ...], dict[str, PodClass]]] = {}
        """What one pod of each set takes, of Workloads that are admitted: templates are long to read."""

    def lapse(self, now: float) -> News:
        """Seats are given up that no pod has taken for too long: whatever keeps pods of a job from coming, none of a
        higher priority would get there. Returns what is free by that.
        """
        self._now = now
        due = [claim.subject for claim in self._seated_claims() if self._until(claim.subject) <= now]
        news = News()
        for subject in due:
            news |= self.settle(subject)
        return news

    def next_due(self) -> float | None:
        """Unix time at which the next seats are given up."""
        return min((self._until(claim.subject) for claim in self._seated_claims()), default=None)

    def _seated_claims(self) -> Iterator[Claim]:
        return (each for each in self._cache.ledger.claims(_KIND) if any(pod.node != _NOWHERE for pod in each.pods))

    def _until(self, subject: WorkloadId) -> float:
        """Unix time until which its seats are kept; one whose admission is being written has just begun."""
        found = self._cache.suspended.get(workload_key(subject.gangs[0]))
        if found is None:
            return self._now
        since = found.status.since(ConditionName.ADMITTED) if found.status.admitted else self._now
        return since + self._seat_seconds + found.count / _PODS_A_SECOND

    def kept(self, snapshot: ClusterSnapshot) -> tuple[Nominated, ...]:
        """The seats."""
        found = (claim.on(snapshot.rows) for claim in self._cache.ledger.claims(_KIND))
        return tuple(each for each in found if each.assignments)

    def asks(self, candidate: Candidate) -> bool:
        """Whether a candidate stands for a job that waits whole."""
        keys = candidate.subject.gangs
        return len(keys) == 1 and is_workload(keys[0]) and self._cache.suspended.waits(workload_key(keys[0]))

    def blocked(self, candidate: Candidate) -> QueueRefusal | None:
        """Another job was admitted whose pods are not ready yet."""
        if not self._blocks or not self.asks(candidate):
            return None
        other = self._cache.suspended.unready()
        if not other:
            return None
        return QueueRefusal(
            Reason.WAITING_FOR_PODS_READY, f"Workload {other} was admitted, and its pods are not all ready"
        )

    def by_quota(self, working: WorkingSnapshot, candidate: Candidate) -> Placed:
        """All its pods, on no node."""
        sets = zip(candidate.workload.pod_sets, candidate.classes, strict=True)
        pods = tuple(Assignment(uid, NO_ROW, of) for each, of in sets for uid in each.uids)
        return Placed(pods, working.report(candidate.classes[0], PodTraits(), candidate.requester))

    def admit(self, candidate: Candidate, outcome: Placed, snapshot: ClusterSnapshot, now: float) -> Turn:
        """Its quota and its seats are kept from here on; it is admitted once that is written."""
        key = workload_key(candidate.subject.gangs[0])
        workload = self._cache.suspended.get(key)
        if workload is None:
            raise LookupError(f"Workload {key} was placed but is not in the cache")
        seats = claimed(outcome.assignments, (*snapshot.names, _NOWHERE))
        found = _assignments(workload, outcome.assignments, lambda row: self._host(snapshot.names[row]))
        admission = WorkloadAdmission(candidate.governed_by, tuple(found))
        self._keep(candidate.subject, seats, candidate.governed_by)
        self._cache.stand_ins.admit(key, admission, now)
        return Turn(admissions=[WorkloadAdmissionWrite(named_object(workload), admission)])

    def seated(self, working: WorkingSnapshot, candidate: Candidate) -> Placed | None:
        """Pods of an admitted job on its seats: each on one of its own pod set, since those of another may be larger.

        None for anything else, and where no seat is of use any more.
        """
        claim = self._cache.ledger.claim(_KIND, candidate.subject)
        if claim is None:
            return None
        seats, trial, found = _by_set(claim.pods), working.what_if(), list[Assignment]()
        for uid, pod_class, pod_traits in _members(candidate):
            record = self._cache.pods.record(uid)
            left = seats.get(record.pod.labels.get(POD_SET, ""), []) if record is not None else []
            row = _free_row(trial, left, pod_class, pod_traits, candidate) if left else NO_ROW
            if row != NO_ROW:
                left.remove(working.snapshot.names[row])
                found.append(Assignment(uid, row, pod_class, pod_traits))
                trial.put(found[-1:])
        if not found:
            return None
        first = found[0]
        return Placed(tuple(found), working.report(first.pod_class, first.pod_traits, candidate.requester))

    def settle(self, subject: WorkloadId) -> News:
        """Seats that its pods have by now are kept no more; what they leave counts to its queue until it ends.

        Returns what is free by that.
        """
        if len(subject.gangs) != 1 or not is_workload(subject.gangs[0]):
            return News()
        before = self._cache.ledger.claim(_KIND, subject)
        self._settle(subject)
        after = self._cache.ledger.claim(_KIND, subject)
        left = {(pod.uid, pod.node) for pod in after.pods} if after is not None else set()
        gone = dict.fromkeys(
            pod.pod_class for pod in (before.pods if before else ()) if (pod.uid, pod.node) not in left
        )
        news = News()
        for pod_class in gone:
            news |= freed_by(pod_class)
        return news

    def _settle(self, subject: WorkloadId) -> None:
        key = workload_key(subject.gangs[0])
        admission, workload = self._cache.suspended.admission(key), self._cache.suspended.get(key)
        if admission is None or workload is None:
            self._classes.pop(key, None)
            self._cache.ledger.give_up(_KIND, subject)
            return
        claim = self._cache.ledger.claim(_KIND, subject)
        known = {} if claim is None else _by_place(claim.pods)
        placed, taken = self._placed(subject)
        left = _missing(admission, workload.status.reclaimable, placed)
        admitted = self._amounts(workload, admission)
        seats = (pod for each in left for pod in self._left(workload, each, placed[each.name], known))
        pods = list(_within(seats, by_resource([admitted]), by_resource([taken])))
        for pod in pods:
            add(taken, pod.pod_class.cells())
        pods += _rest(workload, _unused(admitted, taken))
        if not pods:
            self._cache.ledger.give_up(_KIND, subject)
        elif claim is None or tuple(pods) != claim.pods:
            self._keep(subject, tuple(pods), admission.queue)

    def _keep(self, subject: WorkloadId, pods: tuple[ClaimedPod, ...], queue: str) -> None:
        self._cache.ledger.keep(Claim(_KIND, subject, _SEATED, pods, queue))

    def _placed(self, subject: WorkloadId) -> tuple[dict[str, Counter[str]], dict[Cell, int]]:
        """Its pods that are charged, by pod set and node, and what they are charged for."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        classes: Counter[PodClass] = Counter()
        for pod in (pod for part in self._cache.parts(subject) for pod in part.members.placed):
            charge = self._cache.ledger.charge(pod.uid)
            if charge is not None:
                found[pod.labels.get(POD_SET, "")][charge.node] += 1
                classes[charge.pod_class] += 1
        taken: dict[Cell, int] = {}
        for pod_class, number in classes.items():
            add(taken, pod_class.cells(number))
        return found, taken

    def _left(
        self,
        workload: WorkloadObject,
        admission: PodSetAssignment,
        placed: Counter[str],
        known: Mapping[tuple[str, str], Sequence[ClaimedPod]],
    ) -> Iterator[ClaimedPod]:
        """What a pod set was admitted for and has no pod (`count`): on its seats that no pod of it has, else as quota.

        It is worked out from what the Workload says, so that whoever starts again keeps the same seats.
        """
        name, left = admission.name, admission.count
        if left <= 0:
            return
        lapsed = self._until(WorkloadId.gang(gang_key(workload.key))) <= self._now
        told = {} if lapsed else admission.seats
        seats = Counter({self._node(host): count for host, count in told.items()}) - placed
        wanted = Counter([*sorted(seats.elements()), *[_NOWHERE] * left][:left])
        kept = {node: known.get((name, node), ())[:number] for node, number in wanted.items()}
        short = any(len(kept[node]) < number for node, number in wanted.items())
        pod_class = self._class_of(workload, admission) if short else PodClass()
        for node, number in wanted.items():
            yield from kept[node]
            for index in range(len(kept[node]), number):
                yield ClaimedPod(stand_in_uid(workload, name, f"{node}+{index}"), node, pod_class)

    def _amounts(self, workload: WorkloadObject, admission: WorkloadAdmission) -> dict[Cell, int]:
        """What it was admitted for, without pods that are not made again."""
        found: dict[Cell, int] = {}
        known = {each.name for each in workload.pod_sets}
        for each in admission.assignments:
            number = each.count - workload.status.reclaimable.get(each.name, 0)
            if number > 0 and each.name in known:
                add(found, self._class_of(workload, each).cells(number))
        return found

    def _class_of(self, workload: WorkloadObject, admission: PodSetAssignment) -> PodClass:
        """What one of its pods takes, of the flavours that it was admitted for."""
        sets, classes = self._classes.setdefault(workload.key, (workload.pod_sets, {}))
        if sets != workload.pod_sets:
            classes = {}
            self._classes[workload.key] = workload.pod_sets, classes
        if admission.name not in classes:
            classes[admission.name] = self._cache.stand_ins.class_of(workload, admission.name)
        own = classes[admission.name]
        return PodClass(own.request, flavors=_pairs(own, admission))

    def _host(self, node: str) -> str:
        """By which a node is written."""
        found = self._cache.nodes.get(node)
        return found.labels.get(HOSTNAME, node) if found is not None else node

    def _node(self, host: str) -> str:
        """The node that is written so; most have the name of their host."""
        if self._host(host) == host:
            return host
        return next((name for name in self._cache.nodes if self._host(name) == host), host)


def _missing(
    admission: WorkloadAdmission, reclaimable: Mapping[str, int], placed: Mapping[str, Counter[str]]
) -> list[PodSetAssignment]:
    """Each pod set with the number that it was admitted for and that has no pod. More pods than that, and those of no
    set that was admitted, use up what others were: whoever writes a pod says of which set it is.
    """
    names = {each.name for each in admission.assignments}
    beyond = sum(found.total() for name, found in placed.items() if name not in names)
    left = {each.name: each.count - reclaimable.get(each.name, 0) for each in admission.assignments}
    for name in left:
        left[name] -= placed[name].total() if name in placed else 0
    beyond -= sum(min(number, 0) for number in left.values())
    found = []
    for each in admission.assignments:
        number = max(left[each.name], 0)
        used = min(number, beyond)
        beyond -= used
        found.append(msgspec.structs.replace(each, count=number - used))
    return found


def _within(seats: Iterable[ClaimedPod], admitted: Mapping[str, int], taken: Mapping[str, int]) -> Iterator[ClaimedPod]:
    """Those that the amounts of what was admitted are left for: a pod that takes more than its own uses up others."""
    left = {name: amount - taken.get(name, 0) for name, amount in admitted.items()}
    for pod in seats:
        asked = {name: amount for name, amount in by_resource([pod.pod_class.cells()]).items() if name != PODS}
        if all(amount <= left.get(name, 0) for name, amount in asked.items()):
            left.update({name: left[name] - amount for name, amount in asked.items()})
            yield pod


def _rest(workload: WorkloadObject, unused: Mapping[Cell, int]) -> Iterator[ClaimedPod]:
    """What pods leave that are smaller than what was admitted: it counts on, as full-sized ones may follow."""
    for (flavor, name), amount in unused.items():
        flavors = ((name, flavor),) if flavor else ()
        uid = stand_in_uid(workload, _NO_SET, f"{flavor}+{name}")
        yield ClaimedPod(uid, _NOWHERE, PodClass(((name, amount),), flavors=flavors))


def _unused(admitted: Mapping[Cell, int], taken: Mapping[Cell, int]) -> dict[Cell, int]:
    """Of each resource no more than is left of it in all flavours: a pod may be on another flavour by now."""
    spare: Counter[str] = Counter()
    for cell in {**admitted, **taken}:
        spare[cell[1]] += admitted.get(cell, 0) - taken.get(cell, 0)
    found: dict[Cell, int] = {}
    for cell, amount in sorted(admitted.items()):
        left = min(amount - taken.get(cell, 0), spare[cell[1]])
        if left > 0 and cell[1] != PODS:
            found[cell] = left
            spare[cell[1]] -= left
    return found


def _members(candidate: Candidate) -> Iterator[tuple[str, PodClass, PodTraits]]:
    sets = zip(candidate.workload.pod_sets, candidate.classes, candidate.member_traits, strict=True)
    for pods, pod_class, every in sets:
        yield from ((uid, pod_class, own) for uid, own in zip(pods.uids, every, strict=True))


def _free_row(
    trial: WorkingSnapshot, nodes: Sequence[str], pod_class: PodClass, pod_traits: PodTraits, candidate: Candidate
) -> int:
    """The first of the nodes that has room for the pod."""
    rows, room = trial.snapshot.rows, trial.room(pod_class, pod_traits, candidate.requester)
    return next((rows[node] for node in nodes if node in rows and room[rows[node]] > 0), NO_ROW)


def _by_set(pods: Iterable[ClaimedPod]) -> dict[str, list[str]]:
    """Nodes by pod set."""
    found: dict[str, list[str]] = defaultdict(list)
    for pod in pods:
        found[pod_set_of(pod.uid)].append(pod.node)
    return found


def _by_place(pods: Iterable[ClaimedPod]) -> dict[tuple[str, str], list[ClaimedPod]]:
    """By pod set and node."""
    found: dict[tuple[str, str], list[ClaimedPod]] = defaultdict(list)
    for pod in pods:
        found[pod_set_of(pod.uid), pod.node].append(pod)
    return found


def _pairs(own: PodClass, assignment: PodSetAssignment) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, assignment.flavors[name]) for name, _ in own.request if name in assignment.flavors))


def _assignments(
    workload: WorkloadObject, placed: tuple[Assignment, ...], host_of: Callable[[int], str]
) -> Iterator[PodSetAssignment]:
    """What each pod set gets; `host_of` names the node of a row."""
    for pods in workload.pod_sets:
        own = [each.pod_class for each in placed if pod_set_of(each.uid) == pods.name]
        amounts: Counter[str] = Counter()
        for pod_class in own:
            amounts.update({name: amount for name, amount in pod_class.request if name != PODS})
        flavors = {name: flavor for pod_class in own[:1] for name, flavor in pod_class.flavors}
        usage = {name: amount_text(amount, name) for name, amount in sorted(amounts.items())}
        rows = (each.row for each in placed if pod_set_of(each.uid) == pods.name and each.row != NO_ROW)
        seats = Counter(map(host_of, rows))
        yield PodSetAssignment(pods.name, len(own), flavors, usage, dict(seats))
