"""What queues cost: the order of jobs beside a plain sort of its keys, and decisions beside those without queues."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator, Sequence

import msgspec

from bench.schedule.cluster import residents, synthetic_gangs, synthetic_nodes
from bench.schedule.decider import Decider
from bench.schedule.effort import SchedulingEffort, tell
from model.node import Node
from model.pod.pod import Pod
from model.queue import Cell, Queue, QuotaCell
from model.resources import CPU, MEMORY, PODS
from model.workload import Workload, WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.assembly import Assembly, Candidate
from scheduler.core.placement.place import Placed
from scheduler.core.queueing.backlog import Backlog
from scheduler.core.queueing.order import AgeingPolicy, HeadKey, Ranking, Tournament, in_order
from scheduler.core.queues.tree import QueueTree, tree_of
from scheduler.settings import SchedulerSettings
from scheduler.steps.queue_quotas import QueueQuotas

NOW = 2_000.0
_TOP, _MIDDLE = 10, 5
RESIDENT_SHARE = 0.4
_MOST_PODS = 40_000
_GUARANTEED: dict[Cell, int] = {("", CPU): 8_000, ("", MEMORY): 32 << 30, ("", PODS): 10}


class Ordering(msgspec.Struct, frozen=True):
    """Milliseconds round by round: the tournament, and `sorted` by the path's shares (floats) and the job's own key."""

    jobs: int
    queues: int
    shares: str
    ours_ms: tuple[float, ...]
    sort_ms: tuple[float, ...]


TURNS, STEPS = "turns", "steps"


class QueuedSpeed(msgspec.Struct, frozen=True):
    """Pods placed in a second of CPU, with queues and without any, round by round.

    `what`: TURNS are the scheduler's own, from the coming of the pods on, STEPS what of one turn looks at queues
    (order, quota, books) and what stands between that (placement, record).
    """

    what: str
    nodes: int
    members: int
    decisions: int
    queues: int
    with_queues: tuple[float, ...]
    without: tuple[float, ...]


def measure_order(effort: SchedulingEffort) -> Iterator[Ordering]:
    """Jobs of three priorities over the leaves of a tree, with shares that all differ, and with equal ones.

    Shares are whole numbers of the size that `Quota.share_key` gives.
    """
    queues = three_levels(effort.queues, quota=False)
    tree, names = tree_of(queues), leaves(queues)
    jobs = _jobs(effort.queued_jobs, names)
    chance = random.Random(1)
    different = {name: chance.randrange(1, 2**108) for name in (*tree.top_down, "")}
    for told, shares in (("different", different), ("equal", dict.fromkeys(different, 0))):
        tell(f"ordering {len(jobs)} jobs of {len(names)} queues with {told} shares")
        rounds = [(_ordered_ms(jobs, tree, shares), _sorted_ms(jobs, tree, shares)) for _ in range(effort.rounds)]
        yield Ordering(len(jobs), len(names), told, tuple(a for a, _ in rounds), tuple(b for _, b in rounds))


def measure_queued(effort: SchedulingEffort) -> Iterator[QueuedSpeed]:
    """The same workloads on the same cluster in the same round, all of one queue or each of one of many."""
    nodes = synthetic_nodes(effort.queued_nodes)
    pods = list(residents(nodes, 1, RESIDENT_SHARE))
    queues = three_levels(effort.queues)
    for members in effort.queued_gangs:
        number = decisions(effort, members)
        jobs = synthetic_gangs(number, members, 2)
        tell(f"deciding on {number} gangs of {members} with {effort.queues} queues and without")
        rounds = [_round(nodes, pods, jobs, queues, turn) for turn in range(effort.rounds)]
        ours, without = zip(*rounds, strict=True)
        yield QueuedSpeed(STEPS, len(nodes), members, number, effort.queues, ours, without)


def decisions(effort: SchedulingEffort, members: int) -> int:
    """How many gangs of that size there is room for."""
    return max(1, min(effort.decisions, _MOST_PODS // members, effort.queued_nodes * 8 // members))


def three_levels(count: int, *, quota: bool = True) -> list[Queue]:
    """So many leaves below 50 queues below 10, or fewer; each leaf is guaranteed 8 CPUs, and may have the cluster."""
    top, middle = min(_TOP, count), min(_TOP * _MIDDLE, count)
    cells = {cell: QuotaCell(amount, amount * 2, amount * 40_000) for cell, amount in _GUARANTEED.items()}
    found = [Queue(f"top-{at:02}", weight=1 + at % 3) for at in range(top)]
    found += [Queue(f"middle-{at:02}", f"top-{at % top:02}", weight=1 + at % 2) for at in range(middle)]
    return found + [
        Queue(f"leaf-{at:03}", f"middle-{at % middle:02}", 1, cells if quota else {}) for at in range(count)
    ]


def leaves(queues: Sequence[Queue]) -> list[str]:
    """Those that take work."""
    return [queue.name for queue in queues if queue.name.startswith("leaf-")]


def _jobs(count: int, queues: Sequence[str]) -> list[Candidate]:
    chance = random.Random(2)
    found = []
    for number in range(count):
        priority, eligible = chance.randrange(3) * 1000, chance.random() * 1000
        name = f"ns/{number}"
        job = Workload(name, chance.choice(queues), priority, (), uid=f"uid-{number}", eligible_seconds=eligible)
        found.append(Candidate(WorkloadId.pod(name), job, ()))
    return found


def _ordered_ms(jobs: Sequence[Candidate], tree: QueueTree, shares: dict[str, int]) -> float:
    gc.collect()
    begun = time.perf_counter()
    tournament = Tournament(shares.__getitem__, tree, revision=lambda: 0)
    number = sum(1 for _ in in_order(jobs, tournament, Ranking(NOW, AgeingPolicy())))
    taken = time.perf_counter() - begun
    assert number == len(jobs)
    return taken * 1000


def _sorted_ms(jobs: Sequence[Candidate], tree: QueueTree, shares: dict[str, int]) -> float:
    ranking = Ranking(NOW, AgeingPolicy())

    def key(job: Candidate) -> tuple[bool, float, float, float, HeadKey]:
        own = ranking.within_queue(job)
        leaf, middle, top, _ = tree.path(job.workload.queue)
        return (own[0], about[top], about[middle], about[leaf], own)

    gc.collect()
    begun = time.perf_counter()
    about = {name: float(share) for name, share in shares.items()}
    sorted(jobs, key=key)
    return (time.perf_counter() - begun) * 1000


def _round(
    nodes: Sequence[Node], pods: Sequence[Pod], jobs: Sequence[Candidate], queues: Sequence[Queue], turn: int
) -> tuple[float, float]:
    """With queues and without; each second round the other way about."""
    names = leaves(queues)
    theirs = [_in_queue(job, names[at % len(names)]) for at, job in enumerate(jobs)]
    sides = [QueuedDecider(nodes, pods, queues, theirs).rate, QueuedDecider(nodes, pods, (), jobs).rate]
    if turn % 2:
        without, with_queues = sides[1](), sides[0]()
    else:
        with_queues, without = sides[0](), sides[1]()
    return with_queues, without


def _in_queue(job: Candidate, queue: str) -> Candidate:
    return msgspec.structs.replace(job, workload=msgspec.structs.replace(job.workload, queue=queue))


class QueuedDecider:
    """A decider with the steps of the cycle that look at queues: the order, what a queue lets be placed, its books."""

    def __init__(
        self, nodes: Sequence[Node], pods: Sequence[Pod], queues: Sequence[Queue], jobs: Sequence[Candidate]
    ) -> None:
        self.decider = Decider(nodes, pods)
        self._jobs = jobs
        settings = SchedulerSettings()
        cache, backlog = ClusterCache(settings.served), Backlog(settings.backoff, settings.hold_grace_seconds)
        cache.ledger = self.decider.ledger
        self.quotas = QueueQuotas(cache, backlog, settings.queues)
        for job in jobs:
            backlog.update(job.subject, Assembly(job), NOW)
        self._queues = tuple(queues)
        self.quotas.begin(self._queues, self.decider.snapshot, NOW)  # the turn that hears of the queues

    def rate(self) -> float:
        """Pods placed in a second of CPU, from the begin of a turn that knows the queues."""
        gc.collect()
        begun = time.process_time()
        self.quotas.begin(self._queues, self.decider.snapshot, NOW)
        pods = 0
        for job in self.quotas.ordered(self._jobs, Ranking(NOW, AgeingPolicy())):
            if self.quotas.refusal(job) is None:
                outcome = self.decider.decide(self.quotas.within(job))
                pods += len(outcome.assignments) if isinstance(outcome, Placed) else 0
        return pods / (time.process_time() - begun)
