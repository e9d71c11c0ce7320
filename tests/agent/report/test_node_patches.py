"""Patches of a Node on an API server that hangs, is slow, or has other writers: what is decided last lands last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent.report.node_patches import NodePatches, Superseded
from model.fault import KubernetesFault
from tests.kube.conftest import ScriptedServer, says

NODES = "/api/v1/nodes"
NODE = f"{NODES}/n"
STATUS = f"{NODE}/status"
CPU = "kubernetes.io/batch-cpu"


class FakeNodes:
    """One Node with a version. A patch that is to hang waits before it is looked at, whether its sender waits or not.

    An agent may patch and list, and nothing else (deploy/daemonset/rbac.yaml).
    """

    def __init__(self) -> None:
        self.version = 7
        self.status: dict[str, Any] = {}
        self.landed: list[Any] = []
        self.full = False
        self.emptied = 0
        self.hanging: list[asyncio.Event] = []
        self.applying = 0

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if request.method == "PATCH":
            self.applying += 1
            try:
                return await self._patch(request)
            finally:
                self.applying -= 1
        if request.path != NODES or request.query.get("fieldSelector") != "metadata.name=n":
            return await says({"message": "forbidden"}, 403)(request)
        return await says({"items": [{"metadata": {"resourceVersion": str(self.version)}}]})(request)

    async def _patch(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if self.hanging:
            await self.hanging.pop(0).wait()
        asked = body.get("metadata", {}).get("resourceVersion")
        if asked not in (None, str(self.version)):
            return await says({"message": "the object has been modified"}, 409)(request)
        if request.path == NODE and body["metadata"].get("managedFields") == [{}]:
            self.full, self.emptied, self.version = False, self.emptied + 1, self.version + 1
        if self.full:
            text = 'nodes "n" is forbidden: an agent leaves at most 131072 characters in metadata.managedFields'
            return await says({"message": text}, 422)(request)
        changed = {**self.status, **body.get("status", {})}
        if changed != self.status:
            self.status, self.version = changed, self.version + 1
            self.landed.append(changed["offer"])
        return await self._told(request)

    async def _told(self, request: web.Request) -> web.StreamResponse:
        return await says({"metadata": {"resourceVersion": str(self.version)}})(request)


def played(folder: Path, scene: Callable[[ScriptedServer, FakeNodes, NodePatches], Awaitable[None]]) -> FakeNodes:
    """The scene with 20 s of patience, and the version that a watch told before it."""
    nodes = FakeNodes()

    async def play() -> None:
        server = ScriptedServer(folder)
        server.answers = [nodes]
        client = await server.start()
        try:
            async with asyncio.timeout(60):
                await scene(server, nodes, NodePatches(client, "n", lambda: "7", 20))
        finally:
            await client.close()
            await server.stop()

    asyncio.run(play())
    return nodes


async def offer(node: NodePatches, millis: int, acknowledged: int) -> str:
    """What came of it."""
    try:
        await node.offer({"status": {"offer": millis}}, {CPU: millis}, {CPU: acknowledged})
    except Superseded:
        return "overtaken"
    return "landed"


async def under_way(node: NodePatches, nodes: FakeNodes, millis: int, acknowledged: int) -> asyncio.Task[str]:
    """A patch that the server has, and keeps until its event is set."""
    before = nodes.applying
    sending = asyncio.create_task(offer(node, millis, acknowledged))
    while nodes.applying == before or nodes.hanging:
        await asyncio.sleep(0.005)
    return sending


def test_an_older_offer_never_lands_after_a_newer(tmp_path: Path) -> None:
    """It hung while less was decided, and the server applies it afterwards: it is refused."""

    async def scene(server: ScriptedServer, nodes: FakeNodes, node: NodePatches) -> None:
        assert await offer(node, 500, 0) == "landed" and not node.uncertain
        outage = asyncio.Event()
        nodes.hanging = [outage]
        large = await under_way(node, nodes, 700, 500)
        node.decided({CPU: 300})
        assert await large == "overtaken" and node.uncertain
        assert await offer(node, 300, 500) == "landed" and not node.uncertain
        outage.set()
        while nodes.applying:
            await asyncio.sleep(0.005)

    assert played(tmp_path, scene).landed == [500, 300]


def test_an_older_offer_that_landed_first_is_corrected_at_once(tmp_path: Path) -> None:
    """The newer one meets another version: it is sent again for that one, without a pause."""

    async def scene(server: ScriptedServer, nodes: FakeNodes, node: NodePatches) -> None:
        outage, later = asyncio.Event(), asyncio.Event()
        nodes.hanging = [outage]
        large = await under_way(node, nodes, 700, 500)
        node.decided({CPU: 300})
        assert await large == "overtaken"
        nodes.hanging = [later]
        small = await under_way(node, nodes, 300, 500)
        outage.set()
        while nodes.applying > 1:
            await asyncio.sleep(0.005)
        later.set()
        assert await small == "landed"

    assert played(tmp_path, scene).landed == [700, 300]


def test_it_is_given_up_after_a_while_and_the_server_told_so(tmp_path: Path) -> None:
    """Each time twice as long, so that a slow server is heard in the end; then as before."""
    asked: list[str] = []

    async def scene(server: ScriptedServer, nodes: FakeNodes, node: NodePatches) -> None:
        node._patience = node._least = 0.3
        nodes.hanging = [asyncio.Event(), asyncio.Event()]
        for _ in range(2):
            with pytest.raises(KubernetesFault, match="no answer within"):
                await offer(node, 700, 500)
            assert node.uncertain
        for event in (*nodes.hanging, asyncio.Event()):
            event.set()
        node._patience = node._least = 20
        assert await offer(node, 700, 500) == "landed"
        asked.extend(query["timeout"] for method, _, query, _ in server.requests if method == "PATCH")

    played(tmp_path, scene)
    assert asked == ["300ms", "600ms", "20000ms"]


OVERTAKING = {
    # offered by the patch under way, what was acknowledged, what a newer tick decides, and whether it is waited for
    "less than a growth": (700, 500, 600, "overtaken"),
    "less than a decline": (400, 500, 300, "overtaken"),
    "more": (400, 500, 450, "landed"),
    "the same": (400, 500, 400, "landed"),
}


@pytest.mark.parametrize(("sent", "acknowledged", "decided", "expected"), OVERTAKING.values(), ids=OVERTAKING.keys())
def test_what_overtakes(tmp_path: Path, sent: int, acknowledged: int, decided: int, expected: str) -> None:
    """Only less does: whatever lands late then offers no more than what is decided."""
    found: list[str] = []

    async def scene(server: ScriptedServer, nodes: FakeNodes, node: NodePatches) -> None:
        outage = asyncio.Event()
        nodes.hanging = [outage]
        sending = await under_way(node, nodes, sent, acknowledged)
        node.decided({CPU: decided})
        outage.set()
        found.append(await sending)

    played(tmp_path, scene)
    assert found == [expected]


def test_a_decline_reaches_a_server_that_is_slower_than_ticks(tmp_path: Path) -> None:
    """Less is decided each tick: the second decline is waited for, a growth in between is not."""

    async def scene(server: ScriptedServer, nodes: FakeNodes, node: NodePatches) -> None:
        outages = [asyncio.Event() for _ in range(2)]
        nodes.hanging = [outages[0]]
        first = await under_way(node, nodes, 400, 500)
        node.decided({CPU: 300})
        assert await first == "overtaken"
        nodes.hanging = [outages[1]]
        second = await under_way(node, nodes, 300, 500)
        node.decided({CPU: 200})
        outages[1].set()
        assert await second == "landed"
        outages[0].set()
        while nodes.applying:
            await asyncio.sleep(0.005)

    assert played(tmp_path, scene).landed == [300]


def test_other_writers_of_the_node(tmp_path: Path) -> None:
    """A kubelet that reports: its write stays, ours follows; one that writes without end is a fault."""

    async def scene(server: ScriptedServer, nodes: FakeNodes, node: NodePatches) -> None:
        assert await offer(node, 500, 0) == "landed"
        nodes.version += 5
        assert await offer(node, 400, 500) == "landed"
        methods = [method for method, path, _, _ in server.requests if path in (NODES, NODE, STATUS)]
        assert methods == ["PATCH", "PATCH", "GET", "PATCH"]
        server.answers = [says({"message": "modified"}, 409)]
        with pytest.raises(KubernetesFault, match="409"):
            await node.annotate({"a": "b"})

    played(tmp_path, scene)


def test_a_refusal_is_an_answer(tmp_path: Path) -> None:
    """What stood before stands; a server that fails may have done it all the same."""

    async def scene(server: ScriptedServer, nodes: FakeNodes, node: NodePatches) -> None:
        assert await offer(node, 500, 0) == "landed"
        for status, uncertain in ((403, False), (500, True), (403, True)):
            server.answers = [says({"message": "no"}, status)]
            with pytest.raises(KubernetesFault):
                await offer(node, 400, 500)
            assert node.uncertain == uncertain

    played(tmp_path, scene)


def test_managed_fields_that_are_full_are_emptied_once(tmp_path: Path) -> None:
    """A stolen token filled them, so that what it offered would stand; where there is room they are left alone."""

    async def scene(server: ScriptedServer, nodes: FakeNodes, node: NodePatches) -> None:
        assert await offer(node, 500, 0) == "landed"
        nodes.full = True
        assert await offer(node, 300, 500) == "landed" and not node.uncertain
        assert await offer(node, 200, 300) == "landed"

    nodes = played(tmp_path, scene)
    assert (nodes.landed, nodes.emptied) == ([500, 300, 200], 1)


def test_another_refusal_empties_nothing(tmp_path: Path) -> None:
    """It is raised as it came, and so is one that goes on although they were emptied."""

    async def scene(server: ScriptedServer, nodes: FakeNodes, node: NodePatches) -> None:
        other, full = ({"message": f"is forbidden: {text}"} for text in ("status.capacity", "metadata.managedFields"))
        emptied = says({"metadata": {"resourceVersion": "8"}})
        for answers, asked in (
            ([says(other, 422)], [STATUS]),
            ([says(full, 422), emptied, says(full, 422)], [STATUS, NODE, STATUS]),
        ):
            before, server.answers = len(server.requests), answers
            with pytest.raises(KubernetesFault, match="is forbidden"):
                await offer(node, 500, 0)
            assert [path for _, path, _, _ in server.requests[before:]] == asked

    played(tmp_path, scene)
