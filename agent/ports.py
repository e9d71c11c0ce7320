"""Ports of the tick, as protocols; edges implement them, tests have fakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from agent.core.evict.decide import EvictionFacts, EvictionMemory, Evictions
from agent.core.evict.eviction_request import EvictionOutcome, EvictionRecord, EvictionRequest
from agent.core.lend.offer import NodeOffer, OfferFacts, may_raise, withheld
from agent.core.lend.reclaimable import LendingFacts, NodeLending
from agent.core.lend.report import condition
from agent.core.lend.unenforced import UnenforcedLimit
from agent.core.limit.brake import Cut
from agent.core.limit.brake import decision as brake_decision
from agent.core.limit.decide import LimitFacts, NodeLimits
from agent.core.limit.plan import Write
from agent.core.limit.release import KnobClaims
from agent.core.limit.shrink import ReclaimAnswer, ReclaimOrder, ShrinkFacts, Shrinking, ShrinkMemory
from agent.core.limit.watch import Kill, Watch
from agent.core.observe.files import NO_MORE, Watched
from agent.core.observe.observation import Knob, KnobReading, Observation, Places
from agent.core.observe.prediction import Prediction, PredictionFacts
from agent.core.observe.usage import NodeUsage, UsageState
from model.decision import Decision
from model.node import Node
from model.nodecolocation import NodeColocation
from model.nodemetric import NodeMetric
from model.nodesettings import NodeSettings
from model.pod.pod import Pod
from model.reason import Reason
from model.report import EvictionCost, NodeReport
from model.resources import CPU, ResourceVector
from model.topology import CpuBasics, KubeletPolicy, PodCpus, Processor, Zone

_NOTHING = ResourceVector()


class ClusterFacts(msgspec.Struct, frozen=True):
    """What the cluster says of this node: its objects, and the settings that follow from its documents.

    `pods` is None until the list was read once, `pods_age_seconds` how long its source was silent about them;
    `settings_known` is False until every document was looked up; `problem` names one that is invalid or not read yet.
    `unsettled`: what limits depend on may ask for less than it seems, since some document never said it, or is gone.
    `settings_deleted`: the ConfigMap was there and is not any more. `unmet` names fields of documents that nobody acts
    on, or only in part. `unread_pods` says of each pod that cannot be read what is wrong with it. `acknowledged` are
    our amounts that the API server took last, by resource, `zones_on_node` those of each zone, None until they were
    read or written. `processors` are the CPUs that work is spread over, `given_away` those that the kubelet gave to
    single pods.
    """

    node: Node | None
    pods: tuple[Pod, ...] | None
    settings: NodeSettings = NodeSettings()
    settings_known: bool = True
    colocation: NodeColocation = NodeColocation()
    zones: tuple[Zone, ...] = ()
    cpu: CpuBasics | None = None
    problem: str = ""
    pods_age_seconds: float = 0.0
    processors: tuple[Processor, ...] = ()
    given_away: tuple[PodCpus, ...] = ()
    kubelet_policy: KubeletPolicy = KubeletPolicy.NONE
    costs: Mapping[str, EvictionCost] = {}
    unsettled: bool = False
    settings_deleted: bool = False
    unmet: tuple[str, ...] = ()
    unread_pods: tuple[str, ...] = ()
    acknowledged: Mapping[str, int] = {}
    zones_on_node: Mapping[int, ResourceVector] | None = None

    def for_prediction(self, now: float) -> PredictionFacts | None:
        """What production's peak is about; None while node or pods are unknown."""
        if self.node is None or self.pods is None:
            return None
        allocatable = self.colocation.raw_allocatable or self.node.allocatable
        return PredictionFacts(self.node.name, allocatable, self.pods, now, self.kubelet_policy)

    def for_limits(self) -> LimitFacts:
        """What limits depend on beside the observation."""
        raw = self.colocation.raw_allocatable
        doubt = Reason.SETTINGS_DELETED if self.settings_deleted else Reason.CONFIGURATION_INVALID
        return LimitFacts(
            suppress=self.settings.suppress,
            eviction=self.settings.eviction,
            pods=self.pods,
            processors=self.processors,
            given_away=self.given_away,
            kubelet_policy=self.kubelet_policy,
            reserved_cpus=self.colocation.reserved_cpus,
            system_cpus=self.colocation.system_cpus,
            normalization_ratio=self.colocation.normalization_ratio,
            unsettled=doubt if self.unsettled else None,
            reserved_millis=self.colocation.reserved[CPU],
            raw_allocatable_millis=raw[CPU] if raw is not None and CPU in raw else None,
            host_applications=self.settings.host_applications,
            burst=self.settings.burst,
            memory_qos=self.settings.memory_qos,
            cpu_qos=self.settings.cpu_qos,
            uclamp=self.settings.uclamp,
            oom_scores=self.settings.oom_scores,
        )

    def for_evictions(
        self,
        best_effort_millis: int | None,
        lent: tuple[Decision, ...],
        ordered: tuple[EvictionOutcome, ...],
        kills: tuple[Kill, ...],
        shrinking: Shrinking,
    ) -> EvictionFacts:
        """What evicting depends on beside the observation."""
        return EvictionFacts(
            node=self.node,
            pods=self.pods,
            strategy=self.settings.eviction,
            best_effort_millis=best_effort_millis,
            lent=lent,
            costs=self.costs,
            outcomes=ordered,
            kills=kills,
            shrinking=shrinking,
        )

    def for_shrinking(self, answers: tuple[ReclaimAnswer, ...]) -> ShrinkFacts:
        """What shrinking depends on beside the observation."""
        return ShrinkFacts(self.settings.eviction, self.pods, answers)

    def for_lending(self, metric: NodeMetric | None, now: float, barred: ResourceVector = _NOTHING) -> LendingFacts:
        """What lending depends on, with use as the node itself measured it; what no pod may have is reserved."""
        reserved = self.colocation.reserved.maximum(barred)
        colocation = msgspec.structs.replace(self.colocation, reserved=reserved)
        return LendingFacts(
            node=self.node,
            pods=self.pods,
            metric=metric,
            now=now,
            pods_age_seconds=self.pods_age_seconds,
            zones=self.zones,
            cpu=self.cpu,
            kubelet_policy=self.kubelet_policy,
            colocation=colocation,
            settings_known=self.settings_known,
            settings_deleted=self.settings_deleted,
        )

    def for_offer(
        self, usage: NodeUsage | None, admitted: ResourceVector, now: float, reason: Reason | None
    ) -> OfferFacts:
        """What the offer depends on beside what may be lent; `reason` is why there is none, at monotonic `now`."""
        return OfferFacts(
            node=self.node,
            pods=self.pods,
            admitted=admitted,
            acknowledged=self.acknowledged,
            zones_on_node=self.zones_on_node,
            may_grow=may_raise(usage),
            monotonic_seconds=now,
            withheld=reason,
        )


class KnobReadings(msgspec.Struct, frozen=True):
    """Knobs and the brake's count, which may be older than they are, never newer.

    `unsaved` is why the state file cannot be written, empty while it can.
    """

    readings: Mapping[Knob, KnobReading]
    brake_cuts: int
    last_cut_monotonic: float | None
    unsaved: str = ""


class WriteOutcome(msgspec.Struct, frozen=True):
    """`error` is empty when the kernel took the value; a memory limit is still on its way then, and `error` is that of
    the try before it.

    `dropped`: not written and nothing is wrong. The brake cut meanwhile, the cgroup is gone, or the agent only
    observes. `cause` is the code of an error.
    """

    write: Write
    error: str = ""
    dropped: bool = False
    cause: Reason | None = None


class TickResult(msgspec.Struct, frozen=True):
    """Everything one tick saw, decided and did; `used` is the state behind `usage`, for statistics on demand.

    `kills`, `ordered` and `reclaimed` are what came of the last resort, of evictions and of reclaim since the tick
    before, `shrink` is what that amounts to.
    """

    observation: Observation
    facts: ClusterFacts
    used: UsageState
    usage: NodeUsage | None
    prediction: Prediction | None
    lending: NodeLending
    limits: NodeLimits
    evictions: Evictions
    evicting: EvictionMemory
    brake_cuts: tuple[Cut, ...]
    kills: tuple[Kill, ...]
    ordered: tuple[EvictionOutcome, ...]
    outcomes: tuple[WriteOutcome, ...]
    report: NodeReport | None
    degraded_reason: str
    unenforced: tuple[UnenforcedLimit, ...] = ()
    offered: NodeOffer = NodeOffer()
    reclaimed: tuple[ReclaimAnswer, ...] = ()
    shrink: ShrinkMemory = ShrinkMemory()

    @property
    def ready(self) -> tuple[str, str, str]:
        """Status, reason and message of the node's condition."""
        errors = [outcome.error for outcome in self.outcomes]
        return condition(self.degraded_reason, self.facts.problem, errors, self.unenforced, self.facts.unmet)

    @property
    def cuts(self) -> tuple[Decision, ...]:
        """What the brake did since the tick before."""
        return tuple(brake_decision(cut) for cut in self.brake_cuts)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Every number of this tick with its terms: the brake's cuts, and what this tick itself decided."""
        return (*self.cuts, *self.own_decisions)

    @property
    def own_decisions(self) -> tuple[Decision, ...]:
        """Without the cuts, which happened before it; limits of single pods where they were to be written."""
        limits = {limit.knob: limit.decision for limit in self.limits.of_all}
        limits |= {outcome.write.knob: outcome.write.decision for outcome in self.outcomes}
        refused = (limit.decision for limit in self.limits.refused)
        requests = (request.decision for request in self.evictions.requests)
        about_lending = (*self.lent_decisions, *self.offered.every_decision)
        return (*about_lending, *limits.values(), *refused, *self.evictions.decisions, *requests)

    @property
    def lent_decisions(self) -> tuple[Decision, ...]:
        """What may be lent, of the node and of its zones, and the prediction behind mid resources."""
        predicted = self.prediction.decisions if self.prediction else ()
        zones = tuple(decision for zone in self.lending.zones for decision in zone.decisions)
        return (*self.lending.reclaimable, *zones, *predicted)

    def withdrawn(self, reason: Reason, later_seconds: float = 0.0) -> TickResult:
        """This tick as it looks so much later, when nothing is offered any more but what running pods hold."""
        observation = msgspec.structs.replace(
            self.observation,
            at_seconds=self.observation.at_seconds + later_seconds,
            monotonic_seconds=self.observation.monotonic_seconds + later_seconds,
        )
        return msgspec.structs.replace(
            self,
            observation=observation,
            lending=withheld(self.lending, reason),
            offered=self.offered.withdrawn(reason),
            outcomes=(),
            degraded_reason=reason.value,
        )


class ClusterSource(Protocol):
    """The newest facts of the API server; never waits."""

    def facts(self) -> ClusterFacts: ...


class Observer(Protocol):
    """One pass over the node's files."""

    def places(self, facts: ClusterFacts) -> Places:
        """Which cgroups exist now; the same object as long as nothing changed."""
        ...

    def observe(self, facts: ClusterFacts, knobs: KnobReadings, watched: Watched = NO_MORE) -> Observation:
        """`watched` are cgroups of which this pass reads more, whoever's turn it is."""
        ...


class Executor(Protocol):
    """The single writer of control files."""

    def readings(self, knobs: tuple[Knob, ...], claims: KnobClaims | None = None) -> KnobReadings:
        """What the kernel holds of `knobs`, and of some files with a known original that `claims` leave."""
        ...

    def apply(self, writes: tuple[Write, ...], seen_cuts: int) -> tuple[WriteOutcome, ...]:
        """Write in order; a value above the kernel's is dropped when the brake has cut since `seen_cuts`."""
        ...


class Brake(Protocol):
    """Watches between ticks; only ever lowers."""

    def arm(self, watch: Watch) -> None: ...

    def drain(self) -> tuple[Cut, ...]: ...

    def kills(self) -> tuple[Kill, ...]:
        """What the last resort did since the last call."""
        ...


class Evictor(Protocol):
    """Asks for the end of pods; never waits."""

    def submit(self, requests: tuple[EvictionRequest, ...], record: EvictionRecord) -> None:
        """Queue the requests, once `record` is safe on the disk."""
        ...

    def drain(self) -> tuple[EvictionOutcome, ...]:
        """What came of requests since the last call."""
        ...


class Reclaimer(Protocol):
    """Has the kernel reclaim memory of single pods; never waits."""

    def submit(self, orders: tuple[ReclaimOrder, ...]) -> None: ...

    def drain(self) -> tuple[ReclaimAnswer, ...]:
        """What came of orders since the last call."""
        ...


class TickPorts(msgspec.Struct, frozen=True):
    """Everything a tick reads from and acts on."""

    cluster: ClusterSource
    observer: Observer
    executor: Executor
    brake: Brake
    evictor: Evictor
    reclaimer: Reclaimer


class Sink(Protocol):
    """Takes a finished tick; must not block."""

    def take(self, result: TickResult) -> None: ...
