"""Queues in the cycle over many turns: guarantees hold, nothing is over its maximum, nobody is reclaimed for ever."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from queue_world import cpu, pod, queue
from scheduler_builders import raw_node
from scheduler_fakes import World

from kube import objects

SIZE = 500
NODES = 3
QUEUES = {
    "prod": {"quota": {"soft": cpu(1500), "guaranteed": cpu(1000)}},
    "research": {"quota": {"soft": cpu(1500), "hard": cpu(2500)}},
    "shared": {"weight": 2},
    "east": {"parent": "shared", "quota": {"guaranteed": cpu(500)}},
    "west": {"parent": "shared"},
}
LEAVES = ("prod", "research", "east", "west")
GUARANTEED = {"prod": 1000, "east": 500}
CAPACITY = NODES * 2000


class Cluster:
    """Pods of one size in queues; evicted ones are gone with the next step and come again as new ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World().see(*(raw_node(f"n{i}", batch_cpu="2000") for i in range(NODES)))
        self.world.see(*(queue(name, **spec) for name, spec in QUEUES.items()))
        self.queue_of: dict[str, str] = {}
        self.evictions = Counter[str]()
        self._number = 0

    def submit(self, queue: str) -> None:
        name = f"p{self._number}"
        self._number += 1
        self.queue_of[name] = queue
        self.world.see(self._pod(name))

    def end(self, name: str) -> None:
        gone = self._pod(name)
        self.world.binder.assigned.pop(name, "")
        del self.queue_of[name]
        self.world.gone(gone)

    def _pod(self, name: str) -> objects.Pod:
        """As the API server has it by now."""
        node = self.world.binder.assigned.get(name, "")
        return pod(
            name, self.queue_of[name], node_name=node, created=float(name[1:]), phase="Running" if node else "Pending"
        )

    def settle(self) -> int:
        """Turns until nothing is placed and nobody goes any more; how many pods went."""
        went = 0
        for _ in range(60):
            before = dict(self.world.binder.assigned)
            self.world.turn(after=11.0)
            for name in self.world.binder.assigned.keys() - before.keys():
                self.world.see(self._pod(name))
            evicted = [name for name in self.world.evictor.evicted if name in self.queue_of]
            self.world.evictor.evicted.clear()
            for name in evicted:
                queue = self.queue_of[name]
                self.end(name)
                self.submit(queue)
            went += len(evicted)
            self.evictions.update(evicted)
            if not evicted and before == self.world.binder.assigned:
                return went
        raise AssertionError("the queues do not come to rest")

    def used(self) -> Counter[str]:
        return Counter({q: SIZE * n for q, n in Counter(self.queue_of[n] for n in self.world.binder.assigned).items()})

    def waiting(self) -> Counter[str]:
        return Counter(queue for name, queue in self.queue_of.items() if name not in self.world.binder.assigned)


def step(cluster: Cluster, favourite: str = "") -> None:
    """One pod more or fewer; about twice as many as fit, most of them of the favourite."""
    if cluster.random.random() < (0.8 if len(cluster.queue_of) < 2 * CAPACITY // SIZE else 0.4):
        cluster.submit(favourite if favourite and cluster.random.random() < 0.7 else cluster.random.choice(LEAVES))
    elif cluster.queue_of:
        cluster.end(cluster.random.choice(sorted(cluster.queue_of)))


@pytest.mark.parametrize("seed", range(6))
def test_many_turns(seed: int) -> None:
    """After each step all is at rest, in bounds, and no guarantee waits while there is work for it."""
    cluster = Cluster(seed)
    for moment in range(80):
        step(cluster, LEAVES[(seed + moment // 20) % len(LEAVES)])
        cluster.settle()
        used, waiting = cluster.used(), cluster.waiting()
        assert sum(used.values()) <= CAPACITY
        assert used["research"] <= 2500
        for name, amount in GUARANTEED.items():
            assert not waiting[name] or used[name] + SIZE > amount, (name, used, waiting)
    assert cluster.evictions, "nothing was ever taken back: the case says nothing"


def test_rest_lasts() -> None:
    """A thousand turns over full queues with work waiting: once at rest nobody goes any more."""
    cluster = Cluster(99)
    for name in LEAVES:
        for _ in range(20):
            cluster.submit(name)
    cluster.settle()
    placed = dict(cluster.world.binder.assigned)
    for _ in range(1000):
        cluster.world.turn(after=11.0)
    assert (cluster.world.evictor.evicted, cluster.world.binder.assigned) == ({}, placed)


def test_no_charge_is_left() -> None:
    """When all pods are gone no queue has anything, whatever became of them."""
    cluster = Cluster(7)
    for _ in range(80):
        step(cluster)
        cluster.settle()
    for name in sorted(cluster.queue_of):
        cluster.end(name)
    cluster.settle()
    quota = cluster.world.cycle.quotas.quota
    assert quota is not None
    left = {(name, cell): quota.used(name, cell) for name in ("", *QUEUES) for cell in (("", "pods"),)}
    assert set(left.values()) == {0}
