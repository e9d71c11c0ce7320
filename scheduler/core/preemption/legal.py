"""Legal victims: one rule, applied to all residents at once.

Priority as kube-scheduler (strictly lower), that of a WorkloadPriorityClass in queues alone; but work of the mid, batch
and free bands evicts nobody outside them. PreemptAlways also takes equal priority, of these bands alone. Between queues
their rules decide (`queue_rules`). Koordinator's protection labels are in the pods' flags. Pods that are only assumed
are no victims: their binding is on its way and would arrive after the eviction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec
import numpy as np

from model.priority import SYSTEM_PRIORITY, PreemptionPolicy
from model.queue import DEFAULT_QUEUE, ROOT_QUEUE
from model.reason import Reason
from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.charge import Charge
from scheduler.core.ledger.residents import Flag, Residents
from scheduler.core.preemption.facts import NoPreemption, PreemptionFacts, PreemptionPlan, Preemptor
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.preemption.reclaim import beyond, verdict
from scheduler.core.snapshot.snapshot import Mask

UNNAMED = (ROOT_QUEUE, DEFAULT_QUEUE)
"""Where work is that names no queue: what orders queues says nothing of it."""


class LegalVictims(msgspec.Struct, frozen=True, eq=False):
    """`mask` by slot; `excluded` counts residents on known nodes that are out, each by its first rule. `reclaims`:
    some of those that may go are of other queues and may be taken back.
    """

    mask: Mask
    considered: int
    excluded: tuple[tuple[str, int], ...]
    reclaims: bool = False


def legality(
    residents: Residents, preemptor: Preemptor, facts: PreemptionFacts, policy: PreemptionPolicySettings, now: float
) -> LegalVictims:
    """Residents that may be evicted for the preemptor."""
    present = residents.rows >= 0
    mask, excluded = present.copy(), []
    queues = verdict(residents, facts.queues, preemptor)
    for name, out in (
        ("kept by their queue", queues.kept),
        ("same or higher priority", _too_important(residents, preemptor, policy) & ~queues.regardless),
        ("outside the mid, batch and free bands", _outside(residents, preemptor)),
        ("own members", _number_is(residents, frozenset({preemptor.subject}))),
        ("being deleted, but not gone in time", overdue(residents, policy, now)),
        ("being deleted", (residents.flags & Flag.DELETING) != 0),
        ("not bound yet", (residents.flags & Flag.ASSUMED) != 0),
        ("protected by label", (residents.flags & Flag.PROTECTED) != 0),
        ("too young", _too_young(residents, mask, policy.minimum_runtime_seconds, now)),
        ("job lost pods lately", _number_is(residents, _cooling(facts, policy, now))),
        ("would not be gone in time", _slow(residents, mask, policy) if facts.prompt else np.zeros(len(mask), bool)),
    ):
        excluded.append((name, int(np.count_nonzero(mask & out))))
        mask &= ~out
    reclaimed = mask & queues.reclaimable if facts.trimmed else np.zeros(len(mask), bool)
    more = beyond(residents, reclaimed, facts.queues, facts.gangs)
    excluded.append(("more than their queue may lose", int(np.count_nonzero(more))))
    mask &= ~more
    told = tuple((name, number) for name, number in excluded if number)
    return LegalVictims(mask, int(np.count_nonzero(present)), told, bool((mask & queues.reclaimable).any()))


def decided_by_books(outcome: PreemptionPlan | NoPreemption | None, policy: PreemptionPolicySettings) -> bool:
    """Whether what came of preemption for want of quota holds while queues use what they use: nobody may go for it, or
    all who may are not enough, and time alone makes nobody a victim who is none.
    """
    if outcome is None:
        return True
    if not isinstance(outcome, NoPreemption) or policy.minimum_runtime_seconds or policy.victim_cooldown_seconds:
        return False
    return outcome.lacks_quota or outcome.reason is Reason.PREEMPTION_NO_VICTIMS


def overdue(residents: Residents, policy: PreemptionPolicySettings, now: float) -> Mask:
    """Those being deleted that end too far from now, or were to end too long ago, for anybody to wait for them."""
    longest = policy.longest_wait_seconds

    def holds(slot: int) -> bool:
        pod = residents.pods[slot]
        return pod is not None and pod.ends_seconds > 0 and abs(pod.ends_seconds - now) > longest

    return _where((residents.rows >= 0) & ((residents.flags & Flag.DELETING) != 0), holds)


def _slow(residents: Residents, mask: Mask, policy: PreemptionPolicySettings) -> Mask:
    """Those whose grace period alone is too long to wait for."""

    def holds(slot: int) -> bool:
        pod = residents.pods[slot]
        return pod is not None and pod.spec.grace_seconds > policy.longest_wait_seconds

    return _where(mask, holds)


def numbers_of(residents: Residents, subjects: Collection[WorkloadId]) -> list[int]:
    """The numbers of those of the subjects that have residents."""
    numbers = residents.subject_numbers
    return sorted(numbers[subject] for subject in subjects if subject in numbers)


def _too_important(residents: Residents, preemptor: Preemptor, policy: PreemptionPolicySettings) -> Mask:
    queued = np.array([preemptor.queued and name not in UNNAMED for name in residents.queue_names], bool)
    within = queued[residents.queues]
    priorities = np.where(within, residents.priorities, residents.outer_priorities)
    asking = np.where(within, preemptor.priority, preemptor.outer)
    out = priorities > np.minimum(asking - policy.minimum_priority_difference, SYSTEM_PRIORITY - 1)
    if preemptor.policy is PreemptionPolicy.ALWAYS and preemptor.outer < SYSTEM_PRIORITY:
        equal = (priorities == asking) & (residents.rows >= 0)
        # Whoever may write a pod writes the word, and services without a PriorityClass are all of priority 0.
        equal &= (residents.flags & Flag.BELOW_PROD) != 0
        newer = _where(equal, lambda slot: _created(residents, slot) > preemptor.created_seconds)
        out &= ~newer
    return np.asarray(out)


def _outside(residents: Residents, preemptor: Preemptor) -> Mask:
    """Nobody outside these bands goes for work inside, whatever the numbers: online pods without a class have 0."""
    if not preemptor.below_prod:
        return np.zeros(len(residents.rows), bool)
    return np.asarray((residents.flags & Flag.BELOW_PROD) == 0)


def may_stay_victim(charge: Charge, candidate: Candidate, below_prod: bool) -> bool:
    """Whether a victim that was chosen before may still be one, by the bounds of `legality` that no passing of time
    lifts: online pods are spared by work of the mid, batch and free bands, and a higher priority goes between queues
    alone. `below_prod`: the candidate is of these bands.
    """
    if below_prod and (charge.pod is None or not charge.pod.colocation.below_prod):
        return False
    if charge.governed_by in UNNAMED or candidate.governed_by in UNNAMED:
        return charge.outer_priority <= candidate.workload.outer_priority
    return True


def _created(residents: Residents, slot: int) -> float:
    """0, older than anybody, where the pod itself is not known."""
    pod = residents.pods[slot]
    return pod.created_seconds if pod else 0.0


def _too_young(residents: Residents, mask: Mask, minimum_seconds: float, now: float) -> Mask:
    if minimum_seconds <= 0:
        return np.zeros(len(mask), bool)
    recent = (residents.started > 0) & (now - residents.started < minimum_seconds)
    waiting = _where(mask & (residents.started <= 0), lambda slot: now - _scheduled(residents, slot) < minimum_seconds)
    return np.asarray(recent | waiting)


def _scheduled(residents: Residents, slot: int) -> float:
    pod = residents.pods[slot]
    return pod.status.scheduled_seconds if pod else 0.0


def _cooling(facts: PreemptionFacts, policy: PreemptionPolicySettings, now: float) -> frozenset[WorkloadId]:
    rest = policy.victim_cooldown_seconds
    return frozenset(subject for subject, at in facts.evicted.items() if now - at < rest)


def _number_is(residents: Residents, subjects: frozenset[WorkloadId]) -> Mask:
    found = numbers_of(residents, subjects)
    if not found:
        return np.zeros(len(residents.rows), bool)
    return np.asarray(np.isin(residents.subjects, found) & (residents.rows >= 0))


def _where(mask: Mask, holds: Callable[[int], bool]) -> Mask:
    """The slots of the mask for which it holds."""
    found = np.zeros(len(mask), bool)
    for slot in np.flatnonzero(mask).tolist():
        found[slot] = holds(slot)
    return found
