"""Settings of the scheduler, from a YAML or JSON file; every default is kube-scheduler's or says why not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from jobs.core.policy import JobPolicy
from jobs.core.suspended.policy import SuspendedPolicy
from kube.dialects.gangs.makers import ALL as MAKERS
from kube.dialects.gangs.makers import Maker
from kube.dialects.gangs.membership import GangDefaults
from kube.dialects.queues.dialect import ALL, QueueDialect
from kube.events import EventCapacity
from kube.lease import LeaseSettings
from kube.settingsfile import read_settings
from model.workload import DEFAULT_GANG_TIMEOUT_SECONDS, MatchPolicy
from scheduler.controllers.withdrawal_plan import WithdrawPolicy
from scheduler.core.estimates.start_book import EstimatePolicy
from scheduler.core.gangs.release import ReleasePolicy
from scheduler.core.load.policy import LoadPolicy
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.queueing.attempts import TurnLimits
from scheduler.core.queueing.backoff import BackoffPolicy
from scheduler.core.queueing.order import AgeingPolicy
from scheduler.core.queueing.reservation import ReservePolicy
from scheduler.core.queues.policy import QueuePolicy
from scheduler.core.scores.policy import KUBE_SCHEDULER, PROFILES, SchedulerProfile, served


class QueueSettings(QueuePolicy, frozen=True, forbid_unknown_fields=True):
    """Which queues there are, and how they share."""

    dialects: Annotated[
        tuple[QueueDialect, ...],
        Meta(
            description="Whose objects are read: `sublet` our Queue, `volcano` Volcano's Queue and PodGroup, "
            "`elastic_quota` Koordinator's ElasticQuota."
        ),
    ] = ALL


class SchedulerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one scheduler does; the leader's lease included."""

    scheduler_names: Annotated[
        tuple[str, ...], Meta(description="spec.schedulerName values this scheduler serves.")
    ] = served(PROFILES)
    profiles: Annotated[
        tuple[SchedulerProfile, ...],
        Meta(description="How pods are scored, by their spec.schedulerName; a name in no profile gets the defaults."),
    ] = PROFILES
    load: LoadPolicy = LoadPolicy()
    preemption: PreemptionPolicySettings = PreemptionPolicySettings()
    ageing: AgeingPolicy = AgeingPolicy()
    reservation: ReservePolicy = ReservePolicy()
    release: ReleasePolicy = ReleasePolicy()
    withdraw: WithdrawPolicy = WithdrawPolicy()
    node_objects: Annotated[
        bool,
        Meta(
            description="Make a NodeMetric and a NodeSLO for every Node and keep their specs as slo-controller-config "
            "says, as Koordinator's manager does. Off where that manager runs."
        ),
    ] = True
    largest_cpu_ratio: Annotated[
        float,
        Meta(
            ge=1,
            le=5,
            description="The largest CPU ratio that a Node's annotation is believed where there is no "
            "slo-controller-config, since an agent's token can write that annotation: the largest of `normalization` "
            "in the agents' settings.",
        ),
    ] = 1.0
    gang_timeout_seconds: Annotated[
        float, Meta(gt=0, description="Timeout of a gang that names none (CoschedulingArgs.defaultTimeout).")
    ] = DEFAULT_GANG_TIMEOUT_SECONDS
    gang_match_policy: Annotated[
        MatchPolicy, Meta(description="Match policy of a gang that names none (CoschedulingArgs.defaultMatchPolicy).")
    ] = MatchPolicy.ONCE_SATISFIED
    gang_priority_raises: Annotated[
        bool,
        Meta(
            description="A priority that a PodGroup names (scheduling.k8s.io, Volcano) counts even where it is above "
            "that of its pods, as with Volcano's own scheduler. Whoever may make PodGroups preempts by it, and no "
            "ResourceQuota withholds a class from them.",
        ),
    ] = False
    gang_makers: Annotated[
        tuple[Maker, ...],
        Meta(
            description="Kinds whose pods make gangs by what their object says: `Job` (which names a queue itself), "
            "`JobSet`, `LeaderWorkerSet`, `PyTorchJob`. Pods of a kind that is left out are placed one by one."
        ),
    ] = MAKERS
    queues: QueueSettings = QueueSettings()
    jobs: JobPolicy = JobPolicy()
    suspended_jobs: SuspendedPolicy = SuspendedPolicy()
    backoff: BackoffPolicy = BackoffPolicy()
    estimates: EstimatePolicy = EstimatePolicy()
    debounce_seconds: Annotated[float, Meta(ge=0, le=60, description="Changes this close together make one cycle.")] = (
        0.01
    )
    reread_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=60,
            description="Of a node's NodeMetric and NodeResourceTopology the newest word is read so often at most: the "
            "largest cost a fifth of a second each, and a stolen agent's token may write them all the time.",
        ),
    ] = 5.0
    hold_grace_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=3600,
            description="A gang whose pods are still being created is told so only once that lasts, since a gang of n "
            "members would otherwise cost n² condition writes.",
        ),
    ] = 1.0
    workloads_per_cycle: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Bounds how long one cycle keeps the event loop from leases and streams; two further classes "
            "of a gang, or members with terms about pods, count as one. Where more are ready, an eighth of the "
            "attempts go to who was passed over longest, by namespaces in turn.",
        ),
    ] = 256
    preemptions_per_cycle: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="Workloads for which one cycle evicts somebody. Others that need that wait for the next, as "
            "does batch work behind them; an eighth of the plans go to those passed over longest.",
        ),
    ] = 16
    heads_per_queue: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None,
        Meta(
            description="Workloads of one queue that a cycle tries, which is 1 in Kueue; null: as many as it tries at "
            "all, so that a deep queue is served as fast as many shallow ones.",
        ),
    ] = None
    concurrent_binds: Annotated[int, Meta(ge=1, le=1000, description="Bindings under way at once.")] = 64
    concurrent_writes: Annotated[
        int, Meta(ge=1, le=1000, description="Condition writes under way at once; as many evictions beside them.")
    ] = 8
    concurrent_events: Annotated[int, Meta(ge=1, le=1000, description="Events being posted at once.")] = 8
    waiting_events: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Events that may wait to be posted, some 500 bytes each; beyond that the oldest are dropped, "
            "warnings last.",
        ),
    ] = 10_000
    concurrent_calls: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Bounds the TLS listener, where each agent keeps one call open.")
    ] = 10_000
    decision_history: Annotated[
        int, Meta(ge=0, le=1_000_000, description="Decisions kept for a watcher that asks for the past.")
    ] = 1000
    lease: LeaseSettings = LeaseSettings()

    @property
    def served(self) -> tuple[str, ...]:
        """All scheduler names this scheduler serves, those of profiles included."""
        return tuple(dict.fromkeys((*self.scheduler_names, *served(self.profiles))))

    @property
    def events(self) -> EventCapacity:
        """Room for what is told about pods; repeats are counted of as many as client-go's recorder remembers."""
        return EventCapacity(self.waiting_events, self.concurrent_events, remembered=4096)

    @property
    def turn_limits(self) -> TurnLimits:
        """What one turn does at most."""
        return TurnLimits(self.workloads_per_cycle, self.preemptions_per_cycle, self.heads_per_queue)

    @property
    def gangs(self) -> GangDefaults:
        """What counts for a gang that does not say."""
        return GangDefaults(self.gang_timeout_seconds, self.gang_match_policy, self.gang_priority_raises)

    @property
    def plain(self) -> frozenset[str]:
        """Scheduler names whose pods are placed as kube-scheduler places them."""
        return frozenset(name for profile in self.profiles if profile.plain for name in profile.names)

    def __post_init__(self) -> None:
        """Refuse kube-scheduler's name where no plain profile has it."""
        if KUBE_SCHEDULER in self.scheduler_names and KUBE_SCHEDULER not in self.plain:
            fix = "take it out, or give it a profile with plain: true"
            raise ValueError(f"scheduler_names: {KUBE_SCHEDULER} is kube-scheduler's; {fix}")


def load(path: Path | None) -> SchedulerSettings:
    """The defaults where there is no file. Raises ConfigurationFault."""
    return read_settings(path, SchedulerSettings)
