"""Preemption: how long one job's takes on a full cluster, and whether it evicts as few as could be."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence

import msgspec

from bench.schedule.brute import fewest_victims
from bench.schedule.cluster import pod, synthetic_nodes, workload
from bench.schedule.decider import Decider
from bench.schedule.effort import SchedulingEffort, tell
from bench.schedule.greedy_preemption import GreedyPreemption
from bench.schedule.speed import rank_us
from model.node import Node
from model.pod.pod import Pod
from model.resources import CPU, MEMORY, PODS, ResourceVector
from model.workload import GangMembership, GangSource, WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.placement.place import Misfit, Placed, place
from scheduler.core.preemption.facts import GangFacts, NoPreemption, PreemptionFacts, PreemptionPlan
from scheduler.core.preemption.gang_store import GangStore
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.preemption.preempt import preempt

GANGS = (1, 8, 64)
IN_GANGS = (0.0, 0.5)
NOW = 1_000_000.0
_GIB = 1 << 30
_PODS_A_NODE, _GANG_SIZE, _GANG_MINIMUM = 30, 10, 8
_PRIORITY = 7000
_SETTINGS = PreemptionPolicySettings()


class Preemption(msgspec.Struct, frozen=True):
    """Preemptions by gangs of one size, each after the one before was carried out; latencies in ms.

    `in_gangs` is the share of the running pods that are in gangs; `first_ms` is the first of all, which is in the
    percentiles too. `useless` evictions led to no placement. `greedy_ms` is the baseline's time for such a gang.
    """

    nodes: int
    pods: int
    in_gangs: float
    members: int
    planned: int
    refused: int
    victims: int
    useless: int
    first_ms: float
    p50_ms: float
    p99_ms: float
    greedy_ms: float


class Quality(msgspec.Struct, frozen=True):
    """Small cases against every possible set of victims: `equal` had as few, `more` is what was evicted beyond that.

    Sets are compared by the highest priority among them, then by their size.

    `missed` could have been placed and were refused, `useless` evictions led to no placement.
    """

    cases: int
    possible: int
    equal: int
    more: int
    missed: int
    useless: int


def measure_preemption(effort: SchedulingEffort) -> Iterator[Preemption]:
    """On clusters with 30 pods a node: all of them alone, and half of them in gangs of 10 that need 8."""
    for count in effort.preemption_nodes:
        nodes = synthetic_nodes(count)
        for share in IN_GANGS:
            pods = list(full(nodes, 3, share))
            for members in (each for each in GANGS if each <= count):
                tell(f"preempting for gangs of {members}, {count} nodes, {share:.0%} of {len(pods)} pods in gangs")
                yield _measured(nodes, pods, members, effort.preemptions, share)


def full(nodes: Sequence[Node], seed: int, in_gangs: float) -> Iterator[Pod]:
    """Nodes with about a twentieth of their CPU left; four priorities, one of them above the preemptors'."""
    chance = random.Random(seed)
    total = len(nodes) * _PODS_A_NODE
    gangs = int(total * in_gangs) // _GANG_SIZE
    order = list(range(total))
    chance.shuffle(order)
    priorities = [chance.choice((1000, 3000, 5000, 9000)) for _ in range(gangs)]
    for number, place_of in enumerate(order):
        gang = number // _GANG_SIZE if number < gangs * _GANG_SIZE else None
        yield pod(
            f"run-{number}",
            {CPU: chance.choice((1500, 2000, 2500)), MEMORY: 4 * _GIB},
            node=nodes[place_of // _PODS_A_NODE].name,
            gang=None if gang is None else GangMembership("default", f"old-{gang}", GangSource.POD_GROUP),
            priority=chance.choice((1000, 3000, 5000, 9000)) if gang is None else priorities[gang],
            started_seconds=NOW - chance.randrange(1, 500_000),
        )


def _measured(nodes: Sequence[Node], pods: Sequence[Pod], members: int, count: int, share: float) -> Preemption:
    decider, gangs = Decider(nodes, pods), GangStore(_gang_facts(pods))
    homes = {each.uid: WorkloadId.gang(each.spec.gang.key) for each in pods if each.spec.gang is not None}
    taken, victims, useless, refused = [], 0, 0, 0
    for number in range(count):
        job = workload(f"urgent-{number}", members, {CPU: 8000 * (2 + number % 3), MEMORY: 8 * _GIB}, _PRIORITY)
        gc.collect(0)
        begun = time.perf_counter_ns()
        found = _once(decider, job, gangs)
        if isinstance(found, Placed):
            decider.decide(job)
            continue
        taken.append(time.perf_counter_ns() - begun)
        if isinstance(found, NoPreemption):
            refused += 1
            continue
        victims += len(found.eviction.victims)
        for victim in found.eviction.victims:
            _lose(gangs, homes.get(victim.uid))
        useless += 0 if _carried_out(decider, job, found) else len(found.eviction.victims)
    ranked = sorted(taken)
    return Preemption(
        nodes=len(nodes),
        pods=len(pods),
        in_gangs=share,
        members=members,
        planned=len(taken) - refused,
        refused=refused,
        victims=victims,
        useless=useless,
        first_ms=taken[0] / 1e6,
        p50_ms=rank_us(ranked, 50) / 1000,
        p99_ms=rank_us(ranked, 99) / 1000,
        greedy_ms=_greedy_ms(nodes, pods, members),
    )


def _once(
    decider: Decider, job: Candidate, gangs: Mapping[WorkloadId, GangFacts]
) -> PreemptionPlan | NoPreemption | Placed:
    """What a turn does for a head that may not fit."""
    outcome = place(decider.working, job)
    if isinstance(outcome, Placed):
        return outcome
    residents = decider.ledger.residents(decider.snapshot)
    return preempt(decider.working, job, residents, PreemptionFacts(gangs=gangs), _SETTINGS, NOW)


def _carried_out(decider: Decider, job: Candidate, plan: PreemptionPlan) -> bool:
    """The victims go, the next turn begins, the job is placed and stays; another turn begins."""
    decider.forget(victim.uid for victim in plan.eviction.victims)
    placed = not isinstance(decider.decide(job), Misfit)
    decider.renew()
    return placed


def _gang_facts(pods: Sequence[Pod]) -> dict[WorkloadId, GangFacts]:
    sizes: dict[WorkloadId, int] = {}
    for each in pods:
        if each.spec.gang is not None:
            sizes[WorkloadId.gang(each.spec.gang.key)] = sizes.get(WorkloadId.gang(each.spec.gang.key), 0) + 1
    return {subject: GangFacts(_GANG_MINIMUM, size) for subject, size in sizes.items()}


def _lose(gangs: MutableMapping[WorkloadId, GangFacts], key: WorkloadId | None) -> None:
    if key is not None:
        before = gangs[key]
        gangs[key] = msgspec.structs.replace(before, bound=before.bound - 1)


def _greedy_ms(nodes: Sequence[Node], pods: Sequence[Pod], members: int) -> float:
    """Each member costs it about the same: two stand for all of them, since thousands of nodes take it seconds."""
    baseline, tried = GreedyPreemption(nodes, pods), min(members, 2)
    begun = time.perf_counter_ns()
    baseline.preempt({CPU: 16_000, MEMORY: 8 * _GIB}, tried, _PRIORITY)
    return (time.perf_counter_ns() - begun) * members / tried / 1e6


def measure_quality(effort: SchedulingEffort) -> Quality:
    """Clusters of up to 3 nodes and 9 pods, with gangs of up to 3 that do not fit."""
    tell(f"comparing victims with the optimum in {effort.quality_cases} small cases")
    chance, counts = random.Random(5), {"possible": 0, "equal": 0, "more": 0, "missed": 0, "useless": 0}
    for _ in range(effort.quality_cases):
        for name, number in _compared(chance).items():
            counts[name] += number
    return Quality(effort.quality_cases, **counts)


def _compared(chance: random.Random) -> dict[str, int]:
    nodes, pods = _small(chance)
    job = workload("job", chance.randint(1, 3), {CPU: chance.randint(2, 6) * 1000}, _PRIORITY)
    decider = Decider(nodes, pods)
    found = _once(decider, job, {})
    if isinstance(found, Placed):
        return {}
    request = dict(job.classes[0].request)
    best = fewest_victims(nodes, pods, (request, job.pending), _PRIORITY)
    if isinstance(found, NoPreemption):
        return {"possible": int(best is not None), "missed": int(best is not None)}
    number = len(found.eviction.victims)
    useless = 0 if _carried_out(decider, job, found) else number
    fewest = number if best is None else best
    return {"possible": 1, "equal": int(number == fewest), "more": number - fewest, "useless": useless}


def _small(chance: random.Random) -> tuple[list[Node], list[Pod]]:
    nodes: list[Node] = []
    pods: list[Pod] = []
    for number in range(chance.randint(1, 3)):
        amounts = ResourceVector({CPU: 8000, PODS: 110})
        nodes.append(Node(name=f"n{number}", capacity=amounts, allocatable=amounts))
        left = 8
        while left and sum(each.spec.node_name == f"n{number}" for each in pods) < 3:
            cpu = min(left, chance.randint(1, 5))
            priority = chance.choice((1000, 3000, 9000))
            name, started = f"p{len(pods)}", NOW - chance.randrange(1, 1000)
            pods.append(pod(name, {CPU: cpu * 1000}, node=f"n{number}", priority=priority, started_seconds=started))
            left -= cpu
    return nodes, pods
