"""A status is sent when it changed, and again when somebody else changed what the server holds."""

from __future__ import annotations

import asyncio
from typing import Any

from embedded.node.objects.pod import PodMetadata, PodObject
from embedded.node.pods.status_reporting import PodReporter
from embedded.tests.node.conftest import FakeApi


def status(ready: str) -> dict[str, Any]:
    return {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}


def sent(seen: list[str | None]) -> int:
    """How many statuses go out for one offer and what the watch then shows."""

    async def body() -> int:
        api = FakeApi()
        reporter = PodReporter(api, PodObject(PodMetadata(name="p", namespace="default", uid="u")))
        running = asyncio.create_task(reporter.run())
        reporter.offer(status("True"))
        await reporter.settled()
        for ready in seen:
            reporter.seen(ready)
            await reporter.settled()
        running.cancel()
        return len(api.statuses)

    return asyncio.run(body())


def test_what_the_server_holds_already_is_not_sent_again() -> None:
    assert sent(["True", "True"]) == 1


def test_a_readiness_that_was_taken_away_is_told_again() -> None:
    """The node controller marks pods of a silent node not ready; the node is back and knows better."""
    assert sent(["False", "True"]) == 2
