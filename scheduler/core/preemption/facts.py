"""Facts that preemption is given, and its answers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from model.budget import DisruptionBudget
from model.placement import EvictionPlan
from model.pod.pod import Pod
from model.priority import PreemptionPolicy
from model.reason import Reason
from model.workload import WorkloadId
from scheduler.core.placement.working_snapshot import Nominated
from scheduler.core.preemption.queue_rules import QueueRules


class GangFacts(msgspec.Struct, frozen=True):
    """A running gang: `bound` members have a node and are not going, or have succeeded; `whole`: all go or none."""

    min_member: int
    bound: int
    whole: bool = False

    @property
    def surplus(self) -> int:
        """How many members may be evicted one by one before the gang is under its minimum."""
        return 0 if self.whole else max(0, self.bound - self.min_member)


class PreemptionFacts(msgspec.Struct, frozen=True):
    """What is known besides the residents themselves.

    `saved` is when a pod (by uid) last saved a checkpoint, `evicted` when a job (by subject) last lost a pod, in Unix
    seconds. `in_flight` are subjects whose plan is being carried out. `queues` are the rules between queues, None where
    there is but one. With `prompt` only those go whose grace period is short enough to wait for. A gang that is not in
    `gangs` counts as pods without one. `pods` are the preemptor's waiting pods by uid. `trimmed`: of other queues' work
    only as much is legal as these may lose together, the cheapest first; else each choice is judged by itself.
    """

    pods: Mapping[str, Pod] = {}
    budgets: tuple[DisruptionBudget, ...] = ()
    saved: Mapping[str, float] = {}
    gangs: Mapping[WorkloadId, GangFacts] = {}
    in_flight: frozenset[WorkloadId] = frozenset()
    evicted: Mapping[WorkloadId, float] = {}
    queues: QueueRules | None = None
    prompt: bool = False
    trimmed: bool = False


class Preemptor(msgspec.Struct, frozen=True):
    """The workload that asks for room; `below_prod` where any of its waiting pods is of the mid, batch or free band.

    `queued`: a queue that somebody wrote governs it. Beside work of such queues its `priority` counts, beside all other
    `outer_priority` (None: the priority, too).
    """

    subject: WorkloadId
    priority: int
    policy: PreemptionPolicy = PreemptionPolicy.LOWER
    created_seconds: float = 0.0
    below_prod: bool = False
    queued: bool = False
    outer_priority: int | None = None

    @property
    def outer(self) -> int:
        return self.priority if self.outer_priority is None else self.outer_priority


class Tally(msgspec.Struct, frozen=True):
    """Pods by what became of them, each in one place: of `considered`, so many were out for each of `excluded`.

    `kept` might have gone and need not. `violations` of the victims break a disruption budget.
    """

    considered: int = 0
    excluded: tuple[tuple[str, int], ...] = ()
    kept: int = 0
    violations: int = 0


class PreemptionPlan(msgspec.Struct, frozen=True):
    """Room is made, or comes by itself: `eviction` may be without victims. `nominated` keeps it for the preemptor."""

    eviction: EvictionPlan
    nominated: Nominated
    tally: Tally = Tally()


class NoPreemption(msgspec.Struct, frozen=True):
    """Nobody is evicted, and why. `lacks_quota`: its queue would lack quota still if all went that may."""

    reason: Reason
    detail: str = ""
    tally: Tally = Tally()
    lacks_quota: bool = False
