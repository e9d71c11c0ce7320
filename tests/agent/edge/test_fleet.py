"""The fleet's switch as an agent follows it; whatever it does not know, it does not lend more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.edge.fleet import FleetState, FleetWatch
from tests.agent.edge.test_cluster import NODE, Collections
from tests.kube.conftest import ScriptedServer

MAPS, NODES = "configmaps", "nodes"
LENDS, PAUSED, OBSERVES = FleetState(True, False), FleetState(True, True), FleetState(False, False)
UNKNOWN = FleetState(False, True)


class Rig:
    def __init__(self, api: Collections, watch: FleetWatch, seen: list[FleetState]) -> None:
        self.api = api
        self.watch = watch
        self.seen = seen

    def switch(self, **data: str) -> None:
        self.api.put(MAPS, "fleet", {"metadata": {"namespace": "s"}, "data": data})

    def label(self, **labels: str) -> None:
        self.api.put(NODES, "n", {**NODE, "metadata": {**NODE["metadata"], "labels": labels}})

    async def until(self, state: FleetState) -> None:
        async with asyncio.timeout(20):
            while self.watch.state != state:
                await asyncio.sleep(0.01)


def play(
    folder: Path,
    scene: Callable[[Rig], Awaitable[None]],
    before: FleetState = UNKNOWN,
    prepare: Callable[[Collections], Any] = lambda api: None,
    **more: Any,
) -> None:
    async def run() -> None:
        server, api, seen = ScriptedServer(folder), Collections(), list[FleetState]()
        client = await server.start()
        server.answers = [api]
        api.put(NODES, "n", NODE)
        prepare(api)
        watch = FleetWatch(client, "n", "s/fleet", before, lambda: seen.append(watch.state), **more)
        running = asyncio.create_task(watch.run())
        try:
            await scene(Rig(api, watch, seen))
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await client.close()
            await server.stop()

    asyncio.run(run())


def test_it_follows_switch_and_labels(tmp_path: Path) -> None:
    """Each change is told once."""

    async def scene(rig: Rig) -> None:
        rig.switch(mode="lend")
        await rig.until(LENDS)
        rig.switch(mode="lend", paused="true")
        await rig.until(PAUSED)
        rig.switch(mode="observe", canary="pool=batch")
        await rig.until(OBSERVES)
        rig.label(pool="batch")
        await rig.until(LENDS)
        assert rig.seen == [LENDS, PAUSED, OBSERVES, LENDS]

    play(tmp_path, scene)


def test_a_switch_that_goes_pauses_and_one_that_breaks_stays(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.switch(mode="lend")
        await rig.until(LENDS)
        rig.switch(mode="off")
        rig.label(pool="seen")
        rig.switch(mode="lend", paused="true")
        await rig.until(PAUSED)
        assert rig.seen == [LENDS, PAUSED]
        rig.switch(mode="lend")
        await rig.until(LENDS)
        rig.api.delete(MAPS, "fleet")
        await rig.until(PAUSED)
        rig.switch(mode="off")
        rig.label(pool="seen too")
        rig.switch(mode="observe")
        await rig.until(OBSERVES)
        assert rig.seen == [LENDS, PAUSED, LENDS, PAUSED, OBSERVES], "a broken one in the place of a deleted one pauses"
        rig.switch(mode="lend")
        await rig.until(LENDS)

    play(tmp_path, scene)


BEFORE = {"a new node observes": (UNKNOWN, UNKNOWN), "one that lent goes on enforcing, paused": (PAUSED, PAUSED)}


@pytest.mark.parametrize(("before", "state"), BEFORE.values(), ids=BEFORE)
def test_without_a_word_nothing_is_lent(tmp_path: Path, before: FleetState, state: FleetState) -> None:
    async def scene(rig: Rig) -> None:
        async with asyncio.timeout(20):
            while len(rig.api.selectors) < 2:
                await asyncio.sleep(0.01)
        rig.label(pool="a")
        assert rig.watch.state == state
        rig.switch(mode="lend")
        await rig.until(LENDS)
        assert rig.seen == [LENDS]

    play(tmp_path, scene, before)


def test_the_first_word_counts_only_with_the_nodes_labels(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.switch(mode="observe", canary="!pool")
        async with asyncio.timeout(20):
            while not any("configmaps" in path for path in rig.api.selectors):
                await asyncio.sleep(0.01)
        assert rig.watch.state == UNKNOWN
        rig.api.release(NODES)
        await rig.until(OBSERVES)
        assert rig.seen == [OBSERVES]

    play(tmp_path, scene, prepare=lambda api: api.held.add(NODES))


def test_a_switch_that_is_not_heard_of_pauses(tmp_path: Path) -> None:
    """It may have been turned meanwhile: the right to watch it was lost, or nothing comes through. A word ends that."""

    async def scene(rig: Rig) -> None:
        rig.switch(mode="lend")
        async with asyncio.timeout(20):
            while rig.seen != [PAUSED]:
                await asyncio.sleep(0.01)
        rig.watch.deaf_seconds = 3_600.0
        assert rig.watch.state == LENDS

    play(tmp_path, scene, deaf_seconds=0.0)
