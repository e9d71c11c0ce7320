"""The chaos story in a tree of queues that are changed, closed, deleted and made again while pods run: no charge is left.

Each Binding is checked against the maximum of its queue and of those above it as they are written by then.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from chaos_api import POD_CPU, Job, ended
from dream_loop import dream
from test_chaos import Story, problems

from model.queue import ROOT_QUEUE
from model.resources import BATCH_CPU
from scheduler.core.ledger.claim import ClaimKind

BATCH_BAND = 5000


def quota(**pods: int) -> dict[str, Any]:
    """So many pods' batch-cpu of each kind of quota."""
    return {kind: {"resources": {BATCH_CPU: number * POD_CPU}} for kind, number in pods.items()}


QUEUES: dict[str, dict[str, Any]] = {
    "prod": {"weight": 2, "quota": quota(guaranteed=20, soft=30)},
    "research": {"quota": quota(soft=20, hard=40)},
    "shared": {"quota": quota(hard=50)},
    "east": {"parent": "shared", "quota": quota(guaranteed=8, hard=30)},
    "west": {"parent": "shared", "order": "StrictFIFO"},
}
LEAVES = ("prod", "research", "east", "west")
CHANGES: tuple[dict[str, Any], ...] = (
    {"quota": quota(hard=4)},
    {"quota": quota(guaranteed=12)},
    {"state": "Closed"},
    {"state": "Hold"},
    {"weight": 9, "quota": quota()},
    {"order": "BestEffortFIFO"},
)


class QueueStory(Story):
    """Jobs of the batch band, each in a queue; `told` counts what became of queues."""

    def __init__(self, seed: int, gangs: int) -> None:
        super().__init__(seed, gangs)
        self.told: Counter[str] = Counter()
        self._write_queues()

    async def settle(self) -> None:
        """As for nodes and PodGroups: all queues are there, as they were at first."""
        self._write_queues()
        await super().settle()

    async def end(self) -> None:
        """No job is left."""
        for name in sorted(self.api.jobs):
            self.api.finish(name)
        await self.settle()

    async def _turn(self) -> None:
        if self.random.random() < 0.15:
            self._meddle()
        await super()._turn()

    def _write_queues(self) -> None:
        for name, spec in QUEUES.items():
            self.api.add_queue(name, spec)

    def _meddle(self) -> None:
        """A queue is made again or written as at first, changed, or deleted, with whatever is in it."""
        name = self.random.choice(sorted(QUEUES))
        there = self.api.queues.get(name)
        if there is None or there.spec != QUEUES[name]:
            self.api.add_queue(name, QUEUES[name])
            self.told["made again" if there is None else "mended"] += 1
        elif self.random.random() < 0.4:
            self.api.lose_queue(name)
            self.told["deleted"] += 1
        else:
            self.api.add_queue(name, QUEUES[name] | self.random.choice(CHANGES))
            self.told["changed"] += 1

    def _job(self, size: int) -> Job:
        job = super()._job(size)
        return msgspec.structs.replace(
            job, priority=BATCH_BAND + job.priority, queue=self.random.choice((*LEAVES, "default"))
        )


def wrong_charges(story: QueueStory) -> dict[tuple[str, str], tuple[int, int]]:
    """Queue and resource → charged and real, where these differ. Real is what is bound, and kept for who waits."""
    cycle, ledger, api = story.scheduler.cycle, story.scheduler.cache.ledger, story.api
    charged = cycle.quotas.quota
    assert charged is not None
    real: Counter[tuple[str, str]] = Counter()
    for pod in api.pods.values():
        if pod.spec.node_name and not ended(pod):
            queue = api.jobs[(pod.metadata.labels or {})["job"]].queue
            for node in charged.tree.path(queue):
                real.update({(node, BATCH_CPU): POD_CPU, (node, "pods"): 1})
    for claim in ledger.claims(ClaimKind.NOMINATED):
        for claimed in claim.pods:
            for node in charged.tree.path(claim.queue):
                real.update({(node, resource): amount for resource, amount in claimed.pod_class.request})
    wanted = {(node, resource) for node in (ROOT_QUEUE, "default", *QUEUES) for resource in (BATCH_CPU, "pods")}
    pairs = {(node, resource): charged.used(node, ("", resource)) for node, resource in wanted | real.keys()}
    return {key: (amount, real[key]) for key, amount in pairs.items() if amount != real[key]}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_no_charge_is_left_in_a_queue(seed: int) -> None:
    """At rest with work left, and with none; gangs are whole, and each wait says why."""
    story = QueueStory(seed, gangs=100)
    dream(story.run())
    assert problems(story) == []
    assert wrong_charges(story) == {}
    assert any(story.scheduler.cache.ledger.used(name) for name in LEAVES)
    dream(story.end())
    assert wrong_charges(story) == {}
    assert story.api.evictions > 10
    assert all(story.told[what] > 3 for what in ("made again", "mended", "deleted", "changed")), story.told
