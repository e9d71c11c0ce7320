"""Suspended jobs that find room: admitted whole, and their seats kept until their pods take them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kube.dialects.suspended.stand_ins import pod_set_of, stand_in_uid
from model.resources import PODS, amount_text
from model.suspended.job import POD_SET
from model.suspended.workload import PodSetAssignment, WorkloadAdmission, WorkloadObject
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.suspended_cache import is_workload, named_object, workload_key
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.claim import Claim, ClaimedPod, ClaimKind, claimed
from scheduler.core.placement.place import Placed
from scheduler.core.placement.working_snapshot import Assignment, Nominated
from scheduler.core.queueing.news import News, freed_by
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import ClusterSnapshot
from scheduler.steps.turn import Turn, WorkloadAdmissionWrite

_KIND = ClaimKind.ADMITTED
_SEATED = 1 << 31
"""No priority is as high: seats of an admitted job are nobody else's, and evictions alone end it."""
_NOWHERE = ""
"""The node of what counts to a queue and has no seat, such as that of a job whose pods are made again elsewhere."""


class SuspendedJobs:
    """What is kept stands in the ledger."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache

    def kept(self, snapshot: ClusterSnapshot) -> tuple[Nominated, ...]:
        """The seats."""
        found = (claim.on(snapshot.rows) for claim in self._cache.ledger.claims(_KIND))
        return tuple(each for each in found if each.assignments)

    def asks(self, candidate: Candidate) -> bool:
        """Whether a candidate stands for a job that waits whole."""
        keys = candidate.subject.gangs
        return len(keys) == 1 and is_workload(keys[0]) and self._cache.suspended.waits(workload_key(keys[0]))

    def admit(self, candidate: Candidate, outcome: Placed, snapshot: ClusterSnapshot, now: float) -> Turn:
        """Its quota and its seats are kept from here on; it is admitted once that is written."""
        key = workload_key(candidate.subject.gangs[0])
        workload = self._cache.suspended.get(key)
        if workload is None:
            raise LookupError(f"Workload {key} was placed but is not in the cache")
        seats = claimed(outcome.assignments, snapshot.names)
        admission = WorkloadAdmission(candidate.governed_by, tuple(_assignments(workload, outcome.assignments)))
        self._keep(candidate.subject, seats, candidate.governed_by)
        self._cache.admit(key, admission, now)
        return Turn(admissions=[WorkloadAdmissionWrite(named_object(workload), admission)])

    def settle(self, subject: WorkloadId) -> News:
        """Seats that its pods have by now are kept no more; what they leave counts to its queue until it ends.

        Returns what is free by that.
        """
        if len(subject.gangs) != 1 or not is_workload(subject.gangs[0]):
            return News()
        before = self._cache.ledger.claim(_KIND, subject)
        self._settle(subject)
        after = self._cache.ledger.claim(_KIND, subject)
        left = set(after.uids) if after is not None else set()
        gone = dict.fromkeys(pod.pod_class for pod in (before.pods if before else ()) if pod.uid not in left)
        news = News()
        for pod_class in gone:
            news |= freed_by(pod_class)
        return news

    def _settle(self, subject: WorkloadId) -> None:
        key = workload_key(subject.gangs[0])
        admission, workload = self._cache.suspended.admission(key), self._cache.suspended.get(key)
        if admission is None or workload is None:
            self._cache.ledger.give_up(_KIND, subject)
            return
        left = Counter({each.name: each.count for each in admission.assignments})
        left.subtract(workload.status.reclaimable)
        left.subtract(self._seated(subject))
        claim = self._cache.ledger.claim(_KIND, subject)
        pods = [] if claim is None else [pod for pod in claim.pods if _takes(left, pod)]
        pods += self._uncounted(workload, admission, left)
        if not pods:
            self._cache.ledger.give_up(_KIND, subject)
        elif claim is None or tuple(pods) != claim.pods:
            self._keep(subject, tuple(pods), admission.queue)

    def _keep(self, subject: WorkloadId, pods: tuple[ClaimedPod, ...], queue: str) -> None:
        self._cache.ledger.keep(Claim(_KIND, subject, _SEATED, pods, queue))

    def _seated(self, subject: WorkloadId) -> Counter[str]:
        """Its pods that are charged, by pod set."""
        pods = (pod for part in self._cache.parts(subject) for pod in part.members.placed)
        return Counter(pod.labels.get(POD_SET, "") for pod in pods if self._cache.ledger.charge(pod.uid) is not None)

    def _uncounted(
        self, workload: WorkloadObject, admission: WorkloadAdmission, left: Counter[str]
    ) -> Iterator[ClaimedPod]:
        """What was admitted and has neither a pod nor a seat."""
        for each in admission.assignments:
            if left[each.name] > 0:
                own = self._cache.class_of_stand_in(workload, each.name)
                pod_class = PodClass(own.request, flavors=_pairs(own, each))
                for index in range(left[each.name]):
                    yield ClaimedPod(stand_in_uid(workload, each.name, f"+{index}"), _NOWHERE, pod_class)


def _takes(left: Counter[str], pod: ClaimedPod) -> bool:
    name = pod_set_of(pod.uid)
    left[name] -= 1
    return left[name] >= 0


def _pairs(own: PodClass, assignment: PodSetAssignment) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, assignment.flavors[name]) for name, _ in own.request if name in assignment.flavors))


def _assignments(workload: WorkloadObject, placed: tuple[Assignment, ...]) -> Iterator[PodSetAssignment]:
    """What each pod set gets."""
    for pods in workload.pod_sets:
        own = [each.pod_class for each in placed if pod_set_of(each.uid) == pods.name]
        amounts: Counter[str] = Counter()
        for pod_class in own:
            amounts.update({name: amount for name, amount in pod_class.request if name != PODS})
        flavors = {name: flavor for pod_class in own[:1] for name, flavor in pod_class.flavors}
        usage = {name: amount_text(amount, name) for name, amount in sorted(amounts.items())}
        yield PodSetAssignment(pods.name, len(own), flavors, usage)
