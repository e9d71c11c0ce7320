"""Random walks: work comes, ends, and takes back what others borrowed, by the functions of queues alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import pytest
from queue_builders import CPU, GPU, cell, inclusive, queue

from model.queue import Cell, Queue
from scheduler.core.queues.headroom import Quota
from scheduler.core.queues.shares import fair_shares, over_committed
from scheduler.core.queues.tree import tree_of

Vector = Mapping[Cell, int]
LEAVES = ("a1", "a2", "b1", "b2", "c")
KINDS: tuple[Vector, ...] = ({CPU: 1}, {GPU: 1}, {CPU: 1, GPU: 1})
SINGLE = KINDS[:2]


class World:
    """Jobs that run and that wait, by queue; the whole cluster is one node."""

    def __init__(self, queues: list[Queue], capacity: dict[Cell, int]) -> None:
        self.tree = tree_of(queues)
        self.capacity = capacity
        self.running: dict[str, list[Vector]] = {}
        self.waiting: dict[str, list[Vector]] = {}
        self.evictions = 0

    def books(self) -> Quota:
        used, demand = self._sum(self.running), self._sum(self.running, self.waiting)
        return Quota(
            self.tree, self.capacity, inclusive(self.tree, used), fair_shares(self.tree, self.capacity, demand)
        )

    @staticmethod
    def _sum(*sources: Mapping[str, list[Vector]]) -> dict[str, dict[Cell, int]]:
        total: dict[str, dict[Cell, int]] = {}
        for source in sources:
            for name, jobs in source.items():
                here = total.setdefault(name, {})
                for job in jobs:
                    for each, amount in job.items():
                        here[each] = here.get(each, 0) + amount
        return total

    def turn(self) -> Quota:
        """Admit, or take back, until nothing moves any more; what is evicted waits again."""
        quota = self.books()
        moved = True
        while moved:
            moved = False
            for name in sorted(self.waiting, key=lambda name: (quota.dominant_share(name).value, name)):
                for job in self._heads(name):
                    while job in self.waiting[name] and self._admit(quota, name, job):
                        moved = True
        return quota

    def _heads(self, name: str) -> list[Vector]:
        heads: list[Vector] = []
        for job in self.waiting[name]:
            if job not in heads:
                heads.append(job)
        return heads

    def _admit(self, quota: Quota, name: str, job: Vector) -> bool:
        if quota.short(name, job) and not self._take_back(quota, name, job):
            return False
        quota.charge(name, job)
        self.waiting[name].remove(job)
        self.running.setdefault(name, []).append(job)
        return True

    def _take_back(self, quota: Quota, name: str, job: Vector) -> bool:
        """Evict what is needed, or nothing."""
        contested = quota.contested(name, job)
        taken: list[tuple[str, Vector]] = []
        for victim, work in self._victims(quota, name, job, contested):
            quota.charge(victim, work, -1)
            taken.append((victim, work))
            if not quota.short(name, job):
                self._evict(quota, name, job, contested, taken)
                return True
        for victim, work in taken:
            quota.charge(victim, work)
        return False

    def _victims(
        self, quota: Quota, name: str, job: Vector, contested: tuple[Cell, ...]
    ) -> Iterator[tuple[str, Vector]]:
        """Again and again: who may not be taken from at first may be once a sibling of the requester has lost."""
        left = {victim: list(jobs) for victim, jobs in sorted(self.running.items())}
        found = True
        while found:
            found = False
            for victim, jobs in left.items():
                for work in list(jobs):
                    if quota.may_reclaim(name, job, victim, contested):
                        break
                    if quota.may_lose(victim, work, name, contested):
                        jobs.remove(work)
                        found = True
                        yield victim, work

    def _evict(
        self, quota: Quota, name: str, job: Vector, contested: tuple[Cell, ...], taken: list[tuple[str, Vector]]
    ) -> None:
        for victim, work in taken:
            self.running[victim].remove(work)
            self.waiting.setdefault(victim, []).append(work)
            self.evictions += 1
            assert all(quota.used(victim, each) >= quota.guaranteed(victim, each) for each in contested if each in work)
        for node in quota.tree.apart(name, taken[0][0])[0]:
            for each in contested:
                own = quota.entitled(node, each)
                assert own is not None and quota.used(node, each) + job.get(each, 0) <= own


def check(world: World, quota: Quota) -> None:
    """What must hold once nothing moves any more."""
    shares = quota.shares
    for each in (CPU, GPU):
        assert sum(shares[top][each] for top in quota.tree.children[""]) <= world.capacity[each]
    promised_too_much = over_committed(quota.tree, shares)
    for name, jobs in world.waiting.items():
        for job in SINGLE:
            if job not in jobs:
                continue
            assert quota.short(name, job)  # work-conserving: nothing idle that it may have
            ((each, amount),) = job.items()
            nodes = quota.tree.path(name)[:-1]
            if promised_too_much or any(quota.used(n, each) + amount > quota.guaranteed(n, each) for n in nodes):
                continue
            loans = {leaf: taken for leaf, taken in quota.lending(each).borrowed.items() if leaf != name}
            assert not any(job in world.running.get(leaf, ()) for leaf in loans), (name, each, loans)


def drawn(chance: Random) -> tuple[list[Queue], dict[Cell, int]]:
    """A tree of two orgs and a lone queue, with guarantees that mostly fit."""
    quotas = {
        name: [
            cell(
                chance.choice((0, 0, 1, 2, 3)),
                chance.choice((None, None, 2, 4, 6)),
                chance.choice((None, None, None, 5, 9)),
            )
            for _ in range(2)
        ]
        for name in (*LEAVES, "A", "B")
    }
    parents = {"a1": "A", "a2": "A", "b1": "B", "b2": "B"}
    queues = [queue(name, parents.get(name, ""), chance.randint(1, 3), *quotas[name]) for name in ("A", "B", *LEAVES)]
    return queues, {CPU: chance.randint(8, 24), GPU: chance.randint(4, 16)}


def walk(seed: int, steps: int) -> World:
    """`steps` events, a turn after one to eight of them; now and then the cluster or the quotas change."""
    chance = Random(seed)
    world = World(*drawn(chance))
    done = 0
    while done < steps:
        for _ in range(chance.randint(1, 8)):
            done += 1
            name = chance.choice(LEAVES)
            dice = chance.random()
            if dice < 0.55 and len(world.waiting.setdefault(name, [])) < 6:
                world.waiting[name].append(chance.choice(KINDS))
            elif dice < 0.97:
                for jobs in (world.running.get(name), world.waiting.get(name) if dice < 0.6 else None):
                    if jobs:
                        jobs.pop(chance.randrange(len(jobs)))
            elif dice < 0.99:
                world.capacity = {
                    each: max(1, amount + chance.randint(-3, 3)) for each, amount in world.capacity.items()
                }
            elif dice < 0.995:
                queues, capacity = drawn(chance)
                world.tree, world.capacity = tree_of(queues), capacity
        check(world, world.turn())
    return world


@pytest.mark.parametrize("seed", range(3))
def test_nobody_stays_under_its_guarantee_while_another_borrows(seed: int) -> None:
    """After every turn: what is idle is used, and who is under its guarantee has taken back what others borrow."""
    world = walk(seed, 300)
    assert world.evictions > 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10, 14))
def test_nobody_stays_under_its_guarantee_in_a_million_steps(seed: int) -> None:
    """A quarter of a million steps from each of four seeds."""
    assert walk(seed, 250_000).evictions > 1000


SIZES: dict[str, tuple[list[Queue], tuple[int, ...], tuple[int, ...]]] = {
    # queues, sizes of a's jobs, sizes of b's
    "equal weights, units": ([queue("a"), queue("b")], (1,), (1,)),
    "an odd unit": ([queue("a", weight=2), queue("b")], (1,), (1,)),
    "large against small": ([queue("a"), queue("b")], (3, 4), (1, 2)),
    "both large": ([queue("a"), queue("b")], (4,), (3,)),
    "nominal": ([queue("a", cpu=cell(nominal=7)), queue("b", cpu=cell(nominal=5))], (2, 3), (3, 4)),
    "guarantees": ([queue("a", cpu=cell(6)), queue("b", cpu=cell(3))], (2,), (5,)),
    "more nominal than there is": ([queue("a", cpu=cell(nominal=9)), queue("b", cpu=cell(nominal=9))], (2,), (3,)),
}


@pytest.mark.parametrize("name", SIZES)
def test_two_queues_never_take_turns_with_the_same_room(name: str) -> None:
    """Volcano issue 561: over 1,000 turns of the same demand, what was reclaimed is never reclaimed back."""
    queues, ours, theirs = SIZES[name]
    world = World(queues, {CPU: 13, GPU: 0})
    world.running = {"a": [{CPU: ours[at % len(ours)]} for at in range(13 // max(ours))], "b": []}
    world.waiting = {"a": [{CPU: size} for size in ours * 9], "b": [{CPU: size} for size in theirs * 9]}
    history = []
    for _ in range(1000):
        before = world.evictions
        world.turn()
        history.append(world.evictions - before)
    assert sum(history[1:]) == 0
    assert len(world.running["b"]) > 0
