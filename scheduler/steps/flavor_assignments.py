"""Flavor assignments: which flavours of its queue a workload has, of queues that count by flavours (Kueue's)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from model.flavor.assignment import FlavorAssignment, FlavorMode
from model.flavor.resource_flavor import ResourceFlavor
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queues.flavors import FlavorQuestion
from scheduler.core.queues.policy import QueuePolicy
from scheduler.core.queues.tree import QueueTree, tree_of
from scheduler.core.queues.turn_quota import TurnQuota
from scheduler.core.snapshot.podclass import PodClass
from scheduler.steps.asked_amounts import OWN, AskedAmounts, kept_for
from scheduler.steps.flavor_choice import as_bound, as_kept, chosen, flavors_in, with_flavors


class FlavorAssignments:
    """Of one turn; those of workloads that are alike are worked out once while the books stay as they are."""

    def __init__(self, cache: ClusterCache, asked: AskedAmounts, policy: QueuePolicy) -> None:
        self._cache = cache
        self._asked = asked
        self._fair = policy.fair_sharing and bool(policy.fair_preemption_strategies)
        self._tree: QueueTree = tree_of(())
        self._flavors: Mapping[str, ResourceFlavor] = {}
        self._quota: TurnQuota | None = None
        self._chosen: dict[tuple[object, ...], FlavorAssignment] = {}
        self._borrowing: dict[tuple[str, bool, PodClass], tuple[int, bool]] = {}

    def begin(self, tree: QueueTree, flavors: Mapping[str, ResourceFlavor], quota: TurnQuota | None) -> None:
        """Another turn; `quota` None: no queue counts."""
        self._tree, self._flavors, self._quota = tree, flavors, quota
        self._chosen.clear()
        self._borrowing.clear()

    def by_flavor(self, queue: str) -> bool:
        """Whether work of the queue counts by flavour."""
        known = self._tree.queues.get(queue)
        return known is not None and bool(known.flavor_groups)

    def flavored(self, candidate: Candidate, passed: frozenset[str] = frozenset()) -> Candidate:
        """With the flavours that its queue gives it, of those that were not `passed`; as it is where its queue counts
        none, or has none for it.
        """
        if self._quota is None or not self.by_flavor(candidate.governed_by) or flavors_in(candidate):
            return candidate
        for kind in OWN:
            claim = self._cache.ledger.claim(kind, candidate.subject)
            if claim is not None and any(pod.pod_class.flavors for pod in claim.pods):
                return as_kept(candidate, claim, self._flavors)
        if candidate.workload.bound and flavors_in(rest := as_bound(candidate, self._bound(candidate), self._flavors)):
            return rest
        assignment = self.assignment(candidate, passed)
        if assignment.mode is FlavorMode.NO_FIT or (passed and assignment.mode is not FlavorMode.FIT):
            return candidate
        return with_flavors(candidate, assignment, self._flavors)

    def fits_none(self, candidate: Candidate) -> bool:
        """Whether its queue counts by flavour and has none for it; what asks for nothing needs none."""
        if not self.by_flavor(candidate.governed_by) or flavors_in(candidate):
            return False
        return self.assignment(candidate).mode is not FlavorMode.FIT

    def may_evict(self, candidate: Candidate) -> bool:
        """Whether its queue's rules let it take the flavours that it was given by evictions."""
        return not self.by_flavor(candidate.governed_by) or self.assignment(candidate).mode.evicts

    def borrows(self, candidate: Candidate) -> bool:
        """Whether its queue would borrow the flavours; asked of all in the order, of lone pods once a class."""
        quota, lone = self._quota, candidate.workload.gang is None
        if quota is None or not lone or (self._cache.ledger.keeping and self._keeps(candidate)):
            return self.assignment(candidate).borrowing > 0
        alike = candidate.workload.queue, candidate.online, candidate.classes[0]
        known = self._borrowing.get(alike)
        if known is None or known[0] != quota.revision:
            known = self._borrowing[alike] = quota.revision, self.assignment(candidate).borrowing > 0
        return known[1]

    def _keeps(self, candidate: Candidate) -> bool:
        """Whether anything is kept for it that counts to its queue."""
        ledger, subject = self._cache.ledger, candidate.subject
        return any(ledger.claim(kind, subject) is not None for kind in OWN)

    def assignment(self, candidate: Candidate, passed: frozenset[str] = frozenset()) -> FlavorAssignment:
        """The flavours that its queue has for it, of those that were not `passed`."""
        quota, queue = self._quota, candidate.governed_by
        if quota is None:
            return FlavorAssignment(())
        ledger, classes = self._cache.ledger, candidate.classes
        kept = kept_for(ledger, candidate) if ledger.keeping else {}
        if any(own.flavors for own in classes):
            classes = tuple(msgspec.structs.replace(own, flavors=()) if own.flavors else own for own in classes)
        shape = None if candidate.workload.gang is None else _shape(candidate)
        alike = (queue, classes, shape, passed, quota.revision)
        found = None if kept else self._chosen.get(alike)
        if found is None:
            question = FlavorQuestion(quota, queue, self._flavors, passed, self._fair)
            with quota.as_if_gone(kept):
                found = chosen(question, candidate, self._asked.needed(candidate))
            if not kept:
                self._chosen[alike] = found
        return found

    def _bound(self, candidate: Candidate) -> dict[tuple[tuple[str, int], ...], tuple[tuple[str, str], ...]]:
        """What its members with nodes request, and the flavours that they have."""
        placed = (pod for part in self._cache.parts(candidate.subject) for pod in part.members.placed)
        charges = (self._cache.ledger.charge(pod.uid) for pod in placed)
        return {each.pod_class.request: each.pod_class.flavors for each in charges if each is not None}


def _shape(candidate: Candidate) -> tuple[object, ...]:
    """How many pods a gang has, and needs."""
    workload = candidate.workload
    return tuple(pods.count for pods in workload.pod_sets), candidate.needed, workload.gangs
