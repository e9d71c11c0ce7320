"""A small cluster with pods on it, and the question whether somebody else may have their room."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import scheduler_builders as build

from model.node import Node
from model.placement import PlacementState
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.queue import Queue, QuotaCell
from model.resources import CPU, ResourceVector
from model.workload import Gang, WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.ledger import ChargeChange, Ledger, charge_of
from scheduler.core.ledger.live_pod_index import LivePodIndex
from scheduler.core.ledger.residents import Residents
from scheduler.core.placement.working_snapshot import Background, Nominated, WorkingSnapshot
from scheduler.core.preemption.facts import GangFacts, NoPreemption, PreemptionFacts, PreemptionPlan
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.preemption.preempt import preempt
from scheduler.core.preemption.queue_rules import QueueRules
from scheduler.core.queues.shares import ShareRules, fair_shares
from scheduler.core.queues.tree import tree_of
from scheduler.core.queues.turn_quota import TurnQuota
from scheduler.core.snapshot.snapshot import take

NOW = 10_000.0


def node(name: str = "n1", cpu: int = 4, **more: Any) -> Node:
    """A node of so many whole CPUs."""
    amounts = {CPU: 1000 * cpu, "pods": 110} | more.pop("amounts", {})
    return Node(name=name, allocatable=ResourceVector(amounts), **more)


def resident(name: str, on: str = "n1", cpu: float = 4, *, priority: int = 0, group: str = "", **more: Any) -> Pod:
    """A running pod, started at 1000 s."""
    gang = build.in_group(group) if group else None
    fields = {"phase": PodPhase.RUNNING, "started_seconds": 1000.0, "node_name": on, "priority": priority} | more
    return build.pod(name, requests=_cpu(cpu), gang=gang, **fields)


def waiting(name: str = "hp", cpu: float = 3, *, priority: int = 100, **more: Any) -> Pod:
    return build.pod(name, requests=_cpu(cpu), priority=priority, created_seconds=5000.0, **more)


def members(count: int, cpu: float = 3, *, priority: int = 100, **more: Any) -> list[Pod]:
    """Waiting pods of PodGroup `train`."""
    return [waiting(f"w{i}", cpu, priority=priority, gang=build.in_group(), **more) for i in range(count)]


class Arena:
    """Nodes and the pods on them; `assumed` are uids whose binding is on its way, `queues` those of pods, else `q`."""

    def __init__(
        self,
        nodes: Iterable[Node],
        residents: Iterable[Pod] = (),
        assumed: Iterable[str] = (),
        queues: Mapping[str, str] | None = None,
    ) -> None:
        self.nodes = {found.name: found for found in nodes}
        self.pods = tuple(residents)
        self.ledger = Ledger()
        out = frozenset(assumed)
        for pod in self.pods:
            charge = charge_of(pod)
            assert charge is not None
            state = PlacementState.ASSUMED if pod.uid in out else PlacementState.BOUND
            queue = (queues or {}).get(pod.uid, "q")
            self.ledger.apply([ChargeChange(pod.uid, msgspec.structs.replace(charge, state=state, queue=queue))])
        self.snapshot = take(self.nodes, self.ledger.nodes)

    def residents(self) -> Residents:
        return self.ledger.residents(self.snapshot)

    def working(self, *nominated: Nominated) -> WorkingSnapshot:
        return WorkingSnapshot(self.snapshot, nominated, Background(LivePodIndex(self.ledger)))

    def ask(
        self, pods: Iterable[Pod], group: Gang | None = None, *nominated: Nominated, **more: Any
    ) -> PreemptionPlan | NoPreemption:
        """What preemption says to these pending pods."""
        pending = list(pods)
        return self.ask_for(build.candidate(pending, group), pending, *nominated, **more)

    def ask_for(
        self, candidate: Candidate, pods: Iterable[Pod], *nominated: Nominated, **more: Any
    ) -> PreemptionPlan | NoPreemption:
        policy = more.pop("policy", PreemptionPolicySettings())
        facts = PreemptionFacts(pods={pod.uid: pod for pod in pods}, **{"gangs": self.gangs()} | more)
        return preempt(self.working(*nominated), candidate, self.residents(), facts, policy, NOW)

    def gangs(self, minimum: int | None = None) -> dict[str, GangFacts]:
        """Every running gang at its minimum."""
        sizes: dict[str, int] = {}
        for pod in self.pods:
            if pod.spec.gang is not None and not pod.deleting:
                sizes[WorkloadId.gang(pod.spec.gang.key)] = sizes.get(WorkloadId.gang(pod.spec.gang.key), 0) + 1
        return {subject: GangFacts(size if minimum is None else minimum, size) for subject, size in sizes.items()}


def queue_rules(
    own: str, nominal: dict[str, int], *, used: int, asks: int = 1000, guaranteed: int = 0, capacity: int = 4000
) -> QueueRules:
    """Queues with so much CPU of their own (milli-CPU), of which `q`, that of residents, uses so much."""
    cell = ("", CPU)
    tree = tree_of(
        Queue(name, cells={cell: QuotaCell(guaranteed if name == "q" else 0, amount)})
        for name, amount in nominal.items()
    )
    asked, taken = {cell: asks}, {"q": {cell: used}}
    quota = TurnQuota(tree, ShareRules())
    quota.begin({cell: capacity}, lambda: fair_shares(tree, {cell: capacity}, taken | {own: asked}))
    quota.charge("q", taken["q"])
    return QueueRules(quota, own, asked, {}, (cell,))


def victims(outcome: PreemptionPlan | NoPreemption) -> list[str]:
    """Names of the victims; fails where nobody is preempted."""
    assert isinstance(outcome, PreemptionPlan), outcome
    return [victim.pod_key.removeprefix("default/") for victim in outcome.eviction.victims]


def _cpu(cpu: float) -> dict[str, int]:
    return {CPU: int(1000 * cpu)}
