"""Five hundred gangs, failing writes, lost nodes, lists from scratch and crashes in mid-gang: nothing is left half done."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from chaos_api import POD_CPU, ChaosApi
from scheduler_fakes import FakeAnnouncer, FakeClock, FakeMeter

from scheduler.cache import ClusterCache
from scheduler.core.parking import BackoffPolicy
from scheduler.cycle import Cycle
from scheduler.history import DecisionHistory
from scheduler.loop import Loop
from scheduler.publish import Outlets, Publisher
from scheduler.settings import Settings

SETTINGS = Settings(backoff=BackoffPolicy(0.001, 0.01), hold_grace_seconds=0.0)
NODES, PODS_A_NODE = 12, 8


class Incarnation:
    """One life of the scheduler process."""

    def __init__(self, api: ChaosApi, clock: FakeClock) -> None:
        self.api = api
        self.cache = ClusterCache(SETTINGS.served, SETTINGS.load, SETTINGS.gangs)
        cycle, history = Cycle(self.cache, SETTINGS), DecisionHistory(0)
        publisher = Publisher(Outlets(api, api, api, FakeAnnouncer()), FakeMeter(), clock, SETTINGS)
        self.loop = Loop(cycle, publisher, history, FakeMeter(), clock, SETTINGS)
        for fact in api.relist():
            self.loop.tell(fact)

    async def turn(self, cancelled_after: int | None = None) -> None:
        """One turn and its writes; or only so many steps of them, as a crash leaves it."""
        for fact in self.api.news():
            self.loop.tell(fact)

        async def once() -> None:
            async with asyncio.TaskGroup() as group:
                self.loop.step(group)

        running = asyncio.create_task(once())
        if cancelled_after is None:
            await running
            return
        for _ in range(cancelled_after):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


class Story:
    """Drives one random history; `settle` ends the failures and lets everything come to rest."""

    def __init__(self, seed: int, gangs: int) -> None:
        self.random = Random(seed)
        self.api, self.clock = ChaosApi(self.random), FakeClock()
        self.left = gangs
        self.serial = 0
        for index in range(NODES):
            self.api.add_node(f"n{index:02}", PODS_A_NODE)
        self.scheduler = Incarnation(self.api, self.clock)

    async def run(self) -> None:
        self.api.odds = 0.1
        while self.left:
            self.random.choices((self._submit, self._finish, self._lose, self.api.run_kubelets), weights=(10, 6, 1, 4))[
                0
            ]()
            await self._turn()
        await self.settle()

    async def settle(self) -> None:
        """No more failures; nodes are back, timeouts pass."""
        self.api.odds = 0.0
        for index in range(NODES):
            if f"n{index:02}" not in self.api.nodes:
                self.api.add_node(f"n{index:02}", PODS_A_NODE)
        for _ in range(60):
            self.clock.now += 100.0
            self.api.run_kubelets()
            await self.scheduler.turn()

    def _submit(self) -> None:
        self.left -= 1
        self.serial += 1
        size = self.random.choice((1, 2, 3, 4, 8, 16))
        minimum = self.random.choice((size, size, max(1, size // 2)))
        self.api.add_gang(f"g{self.serial}", size, minimum, self.clock.now)

    def _finish(self) -> None:
        if self.api.groups:
            self.api.finish_gang(self.random.choice(sorted(self.api.groups)))

    def _lose(self) -> None:
        if len(self.api.nodes) > NODES // 2:
            self.api.lose_node(self.random.choice(sorted(self.api.nodes)))
        else:
            index = next(index for index in range(NODES) if f"n{index:02}" not in self.api.nodes)
            self.api.add_node(f"n{index:02}", PODS_A_NODE)

    async def _turn(self) -> None:
        self.clock.now += self.random.choice((0.0, 0.001, 0.05, 2.0))
        fate = self.random.random()
        if fate < 0.05:
            await self.scheduler.turn(cancelled_after=self.random.randrange(1, 12))
            self.scheduler = Incarnation(self.api, self.clock)
            return
        if fate < 0.1:
            for fact in self.api.relist():
                self.scheduler.loop.tell(fact)
        await self.scheduler.turn()


def problems(story: Story) -> list[str]:
    """What must not be at rest."""
    api, found = story.api, list[str]()
    for name, group in sorted(api.groups.items()):
        pods = api.members(name)
        bound, minimum = sum(bool(pod.spec.node_name) for pod in pods), group.spec.min_member
        if 0 < bound < minimum:
            found.append(f"gang {name} is bound by {bound} of {minimum}")
    for name, pod in sorted(api.pods.items()):
        if not pod.spec.node_name and not pod.status.conditions:
            found.append(f"pod {name} waits and nothing says why")
    used = {node: amounts["pods"] for node, amounts in story.scheduler.cache.ledger.nodes.items()}
    real = {node: api.used(node) // POD_CPU for node in api.nodes if api.used(node)}
    if used != real:
        found.append(f"charged {used}, real {real}")
    return found


@pytest.mark.parametrize("seed", range(4))
def test_no_partial_gang_no_leaked_assumption_and_every_wait_explained(seed: int) -> None:
    """125 gangs a seed; over-commitment is checked at each binding."""
    story = Story(seed, gangs=125)
    asyncio.run(story.run())
    assert problems(story) == []
