"""A ConfigMap that is followed: asked for by its name in its namespace, and told of as it comes and goes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kube import configmap, objects
from kube.informer import Change, ChangeKind
from tests.kube.conftest import ScriptedServer, says, streams


def test_only_that_one_is_asked_for(tmp_path: Path) -> None:
    """So `list` and `watch` of one name are rights enough."""
    seen: list[tuple[ChangeKind, dict[str, str] | None]] = []
    metadata = {"name": "fleet", "namespace": "sublet", "uid": "u", "resourceVersion": "1"}

    def changed(change: Change[objects.ConfigMap]) -> None:
        seen.append((change.kind, change.object.data))

    async def play() -> list[tuple[str, dict[str, str]]]:
        server = ScriptedServer(tmp_path)
        client = await server.start()
        listed = {"metadata": {"resourceVersion": "1"}, "items": [{"metadata": metadata, "data": {"mode": "lend"}}]}
        gone = {"type": "DELETED", "object": {"metadata": {**metadata, "resourceVersion": "2"}}}
        server.answers = [says(listed), streams(gone, hold=True)]
        running = asyncio.create_task(configmap.follow(client, "sublet/fleet", changed).run())
        async with asyncio.timeout(10):
            while len(seen) < 2:
                await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await client.close()
        await server.stop()
        return [(path, query) for _, path, query, _ in server.requests]

    asked = asyncio.run(play())
    assert {path for path, _ in asked} == {"/api/v1/namespaces/sublet/configmaps"}
    assert {query["fieldSelector"] for _, query in asked} == {"metadata.name=fleet"}
    assert seen == [(ChangeKind.ADDED, {"mode": "lend"}), (ChangeKind.DELETED, {"mode": "lend"})]
