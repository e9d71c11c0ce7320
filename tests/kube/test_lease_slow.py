"""A lease on an API server that answers late, in time that is told: nobody ever acts beside another, nobody gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, cast

import msgspec
import pytest

from kube.client import KubeClient
from kube.lease import LeaseElector, LeaseSettings
from kube.objects import Lease
from model.fault import KubernetesFault
from tests.scheduler.dream_loop import dream

SETTINGS = LeaseSettings()
LOOK_SECONDS = 0.05


class Store:
    """One Lease with its version, as all API servers see it."""

    def __init__(self) -> None:
        self.body: dict[str, Any] | None = None
        self.version = 0

    def put(self, body: Any) -> None:
        self.version += 1
        self.body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}


class SlowApi:
    """A way to the store: `delay` says how long a request takes on its way in and its answer on the way back.

    A request that nobody waits for any more is carried out all the same. `down` answers 503, `cut` not at all.
    """

    def __init__(
        self, delay: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0), store: Store | None = None
    ) -> None:
        self.delay = delay
        self.store = store or Store()
        self.down = self.cut = False
        self.asked: list[str] = []
        self._served: set[asyncio.Task[bytes]] = set()

    async def get(self, path: str, kind: type[Lease]) -> Lease:
        return msgspec.json.decode(await self._answer("GET", None), type=kind)

    async def create(self, path: str, body: Any) -> bytes:
        return await self._answer("POST", body)

    async def replace(self, path: str, body: Any) -> bytes:
        return await self._answer("PUT", body)

    @property
    def holder(self) -> str:
        return str(self.store.body["spec"]["holderIdentity"]) if self.store.body else ""

    async def _answer(self, method: str, body: Any) -> bytes:
        self.asked.append(method)
        serving = asyncio.create_task(self._serve(method, body))
        self._served.add(serving)
        serving.add_done_callback(lambda task: (self._served.discard(task), task.cancelled() or task.exception()))
        return await asyncio.shield(serving)

    async def _serve(self, method: str, body: Any) -> bytes:
        if self.cut:
            await asyncio.sleep(3600)
        inward, outward = self.delay()
        await asyncio.sleep(inward)
        refused = self._refused(method, body)
        if not refused and method != "GET":
            self.store.put(body)
        answer = msgspec.json.encode(self.store.body)
        await asyncio.sleep(outward)
        if refused:
            raise KubernetesFault(method, f"{refused} refused", status=refused)
        return answer

    def _refused(self, method: str, body: Any) -> int:
        if self.down:
            return 503
        if method == "GET":
            return 0 if self.store.body else 404
        if method == "POST":
            return 409 if self.store.body else 0
        return 0 if body["metadata"]["resourceVersion"] == str(self.store.version) else 409


class Candidate:
    """One process: campaigns, and says at each look whether it would write. `ended` counts how often it lost."""

    def __init__(self, api: SlowApi, name: str, settings: LeaseSettings = SETTINGS) -> None:
        clock = asyncio.get_running_loop().time
        self.elector = LeaseElector(cast(KubeClient, api), settings, name, clock=clock)
        self.ended = 0
        self.running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            await self.elector.acquire()
            await self.elector.hold()
            self.ended += 1


class Watcher:
    """What the candidates would write at each moment: `acting` is (time, who)."""

    def __init__(self, *candidates: Candidate) -> None:
        self.candidates = candidates
        self.acting: list[tuple[float, int]] = []

    async def watch(self, seconds: float) -> float:
        """Look on for so long; the share of it in which somebody acted. Two at a time is what must not be."""
        loop = asyncio.get_running_loop()
        before, looks = len(self.acting), round(seconds / LOOK_SECONDS)
        for _ in range(looks):
            who = [index for index, each in enumerate(self.candidates) if each.elector.leading]
            assert len(who) <= 1, f"two act at {loop.time():g}"
            self.acting.extend((loop.time(), index) for index in who)
            await asyncio.sleep(LOOK_SECONDS)
        return (len(self.acting) - before) / looks


def constant(seconds: float) -> Callable[[], tuple[float, float]]:
    return lambda: (seconds / 2, seconds / 2)


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    dream(scene())


@pytest.mark.parametrize(
    ("seconds", "share"), [(0.0, 1.0), (0.07, 1.0), (2.0, 1.0), (3.8, 1.0), (5.0, 0.95), (8.0, 0.2)]
)
def test_a_slow_server_ends_no_leader(seconds: float, share: float) -> None:
    """For ten minutes, with a standby beside it: one leader, which acts for as long as its renewals are young enough."""

    async def scene() -> None:
        api = SlowApi(constant(seconds))
        first = Candidate(api, "one")
        await Watcher(first).watch(60.0)
        assert api.holder == "one"
        second = Candidate(api, "two")
        assert await Watcher(first, second).watch(600.0) >= share
        assert (api.holder, first.ended, second.ended) == ("one", 0, 0)

    play(scene)


def test_a_renewal_is_one_write() -> None:
    """The version is known from the last answer, so nothing is read."""

    async def scene() -> None:
        api = SlowApi(constant(0.07))
        await Watcher(Candidate(api, "one")).watch(100.0)
        assert api.asked[:2] == ["GET", "POST"] and set(api.asked[2:]) == {"PUT"}
        assert len(api.asked) == pytest.approx(2 + 100 / SETTINGS.retry_seconds, abs=2)

    play(scene)


def test_too_slow_a_server_stops_the_acting_and_not_the_leader() -> None:
    """12 s a request: no renewal is confirmed in time. Nothing is written meanwhile, and all goes on after it."""

    async def scene() -> None:
        api = SlowApi()
        one = Candidate(api, "one")
        watcher = Watcher(one)
        await watcher.watch(20.0)
        api.delay = constant(12.0)
        await watcher.watch(12.0)
        assert await watcher.watch(120.0) == 0.0
        api.delay = constant(0.07)
        await watcher.watch(12.0)
        assert await watcher.watch(60.0) == 1.0 and one.ended == 0

    play(scene)


@pytest.mark.parametrize("fault", ["down", "cut"])
def test_without_an_answer_the_acting_stops_by_the_deadline_and_resumes(fault: str) -> None:
    """An outage of a minute; the other candidate sees the lease unchanged only as long as it is."""

    async def scene() -> None:
        api = SlowApi(constant(0.07))
        one = Candidate(api, "one")
        watcher = Watcher(one)
        await watcher.watch(20.0)
        setattr(api, fault, True)
        since = asyncio.get_running_loop().time()
        await watcher.watch(60.0)
        assert watcher.acting[-1][0] <= since + SETTINGS.renew_deadline_seconds
        setattr(api, fault, False)
        await watcher.watch(SETTINGS.renew_deadline_seconds)
        assert await watcher.watch(20.0) == 1.0 and one.ended == 0

    play(scene)


def test_one_lost_answer_costs_no_moment_of_acting() -> None:
    """A connection that died without a word is one try; others follow on connections of their own."""

    async def scene() -> None:
        api = SlowApi(constant(0.07))
        watcher = Watcher(Candidate(api, "one"))
        await watcher.watch(20.0)
        for outward in (0.0, 3600.0):
            lost = iter([(3600.0 - outward, outward)])
            api.delay = lambda lost=lost: next(lost, (0.03, 0.04))
            assert await watcher.watch(60.0) == 1.0

    play(scene)


def test_who_was_replaced_meanwhile_ends() -> None:
    """Cut off for long enough that the other took it: it finds that name there, and never acted beside it."""

    async def scene() -> None:
        api = SlowApi(constant(0.07))
        one = Candidate(api, "one")
        await Watcher(one).watch(5.0)
        two = Candidate(SlowApi(constant(0.07), api.store), "two")
        watcher = Watcher(one, two)
        await watcher.watch(20.0)
        api.cut = True
        await watcher.watch(60.0)
        assert (api.holder, one.ended) == ("two", 0)
        api.cut = False
        await watcher.watch(60.0)
        assert (api.holder, one.ended, two.ended) == ("two", 1, 0)

    play(scene)


def test_the_same_name_in_another_process_replaces_it_too() -> None:
    """Two that were given one identity: the later one takes over at once, the earlier one ends."""

    async def scene() -> None:
        api = SlowApi()
        one = LeaseElector(cast(KubeClient, api), SETTINGS, "same", clock=asyncio.get_running_loop().time)
        await one.acquire()
        holding = asyncio.create_task(one.hold())
        two = Candidate(api, "same")
        await holding
        assert not one.leading and two.elector.leading

    play(scene)


@pytest.mark.parametrize("left", ["deleted", "released"])
def test_a_lease_without_a_name_is_taken_up_again(left: str) -> None:
    """Somebody deleted it or cleared it, and nobody else came: the leader goes on."""

    async def scene() -> None:
        api = SlowApi()
        one = Candidate(api, "one")
        watcher = Watcher(one)
        await watcher.watch(10.0)
        body = api.store.body
        assert body is not None
        if left == "deleted":
            api.store.body = None
        else:
            api.store.put({**body, "spec": {**body["spec"], "holderIdentity": ""}})
        assert await watcher.watch(30.0) == 1.0 and (api.holder, one.ended) == ("one", 0)

    play(scene)


@pytest.mark.parametrize("seed", range(8))
def test_never_two_act_at_a_time(seed: int) -> None:
    """Three candidates, each with answers that take up to 14 s on either way, and outages of its own."""

    async def scene() -> None:
        random, store = Random(seed), Store()
        ways = [SlowApi(store=store) for _ in range(3)]
        watcher = Watcher(*(Candidate(way, str(index)) for index, way in enumerate(ways)))
        for _ in range(40):
            way, slow = random.choice(ways), random.choice((0.07, 2.0, 5.0, 14.0))
            way.delay = lambda slow=slow: (random.random() * slow, random.random() * slow)
            way.down, way.cut = random.random() < 0.1, random.random() < 0.3
            await watcher.watch(random.choice((5.0, 20.0, 60.0)))
        assert len({index for _, index in watcher.acting}) > 1

    play(scene)


def test_a_deadline_that_is_no_shorter_than_the_lease_is_refused() -> None:
    """Two could lead at a time."""
    with pytest.raises(msgspec.ValidationError, match="renew_deadline_seconds 15 is not below duration_seconds 15"):
        msgspec.convert({"renew_deadline_seconds": 15}, LeaseSettings)


def test_others_never_wait_for_less_than_is_counted_on() -> None:
    """The API knows whole seconds only: 2.5 s are told as 3."""

    async def scene() -> None:
        api = SlowApi()
        settings = LeaseSettings(duration_seconds=2.5, renew_deadline_seconds=2.2, retry_seconds=0.1)
        await LeaseElector(cast(KubeClient, api), settings, "one").acquire()
        assert api.store.body is not None and api.store.body["spec"]["leaseDurationSeconds"] == 3

    play(scene)
