"""One leader: a held lease is respected until it was silent for its duration, and handed on when released."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from kube.lease import Holder, LeaseElector, LeaseSettings

FAST = LeaseSettings(duration_seconds=1.0, renew_deadline_seconds=0.6, retry_seconds=0.05)


class OneLease:
    """A Lease with optimistic concurrency, as the API server keeps it."""

    def __init__(self) -> None:
        self.body: dict[str, Any] | None = None
        self.version = 0
        self.down = False
        self.hangs = False
        self.hang_once = False

    async def answer(self, request: web.Request) -> web.StreamResponse:
        once, self.hang_once = self.hang_once, False
        if self.hangs or once:
            await asyncio.sleep(20)
        if self.down:
            return web.json_response({"message": "down"}, status=503)
        if request.method == "GET":
            return web.json_response(self.body or {"message": "none"}, status=200 if self.body else 404)
        body = await request.json()
        sent = body["metadata"].get("resourceVersion")
        if (request.method == "POST" and self.body) or (request.method == "PUT" and sent != str(self.version)):
            return web.json_response({"message": "conflict", "reason": "AlreadyExists"}, status=409)
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.body = body
        return web.json_response(body)

    @property
    def holder(self) -> str:
        return str(self.body["spec"]["holderIdentity"]) if self.body else ""


def play(server: Any, scene: Any) -> None:
    async def run() -> None:
        client = await server.start()
        lease = OneLease()
        server.answers = [lease.answer]
        async with asyncio.timeout(30):
            await scene(client, lease)
        await client.close()
        await server.stop()

    asyncio.run(run())


def test_one_leads_and_releases(server: Any) -> None:
    """The second waits while the first renews, and leads at once after the release."""

    async def scene(client: Any, lease: OneLease) -> None:
        one, two = LeaseElector(client, FAST, "one"), LeaseElector(client, FAST, "two")
        await one.acquire()
        holding = asyncio.create_task(one.hold())
        waiting = asyncio.create_task(two.acquire())
        await asyncio.sleep(1.5)
        assert not waiting.done() and not holding.done() and lease.holder == "one"
        holding.cancel()
        await one.release()
        await waiting
        assert lease.holder == "two" and lease.body is not None and lease.body["spec"]["leaseTransitions"] >= 1

    play(server, scene)


def test_a_silent_leader_is_replaced(server: Any) -> None:
    """Nobody compares wall clocks: silence is measured by who waits."""

    async def scene(client: Any, lease: OneLease) -> None:
        await LeaseElector(client, FAST, "dead").acquire()
        await LeaseElector(client, FAST, "two").acquire()
        assert lease.holder == "two"

    play(server, scene)


def test_one_dead_connection_does_not_cost_the_lease(server: Any) -> None:
    """An answer that never comes is given up early enough for another attempt before the deadline."""
    settings = LeaseSettings(duration_seconds=8.0, renew_deadline_seconds=4.0, retry_seconds=0.05)

    async def scene(client: Any, lease: OneLease) -> None:
        one = LeaseElector(client, settings, "one")
        await one.acquire()
        lease.hang_once, version = True, lease.version
        holding = asyncio.create_task(one.hold())
        while lease.version < version + 3:
            await asyncio.sleep(0.01)
        assert one.leading and not holding.done() and not lease.hang_once
        holding.cancel()

    play(server, scene)


def test_the_holder_says_where_it_serves_while_it_holds(server: Any) -> None:
    """Who waits hears of it; labels and annotations of others outlive every renewal."""

    async def scene(client: Any, lease: OneLease) -> None:
        heard: list[Holder] = []
        one = LeaseElector(client, FAST, "one", address="10.0.0.1:1")
        two = LeaseElector(client, FAST, "two", on_holder=heard.append)
        await one.acquire()
        assert lease.body is not None
        lease.body["metadata"] |= {
            "labels": {"a": "b"},
            "annotations": {**lease.body["metadata"]["annotations"], "c": "d"},
        }
        lease.version += 1
        lease.body["metadata"]["resourceVersion"] = str(lease.version)
        holding, waiting = asyncio.create_task(one.hold()), asyncio.create_task(two.acquire())
        while not heard:
            await asyncio.sleep(0)
        assert one.leading and not two.leading
        holding.cancel()
        await one.release()
        await waiting
        assert heard == [Holder("one", "10.0.0.1:1"), Holder("two")] and two.leading and not one.leading
        assert (lease.body["metadata"]["labels"], lease.body["metadata"]["annotations"]) == ({"a": "b"}, {"c": "d"})

    play(server, scene)


def test_another_holder_ends_it_at_once(server: Any) -> None:
    """Long before the renew deadline: two that write would be worse than none."""
    slow = LeaseSettings(duration_seconds=3600.0, renew_deadline_seconds=3000.0, retry_seconds=0.05)

    async def scene(client: Any, lease: OneLease) -> None:
        one = LeaseElector(client, slow, "one")
        await one.acquire()
        assert lease.body is not None
        lease.body["spec"]["holderIdentity"] = "two"
        lease.version += 1
        await one.hold()
        assert not one.leading

    play(server, scene)
