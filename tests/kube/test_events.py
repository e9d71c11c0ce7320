"""Events are counted when they repeat, cut when they are long, and never hold anybody up."""

from __future__ import annotations

import asyncio
from typing import Any

from kube.events import EventRecorder, ObjectRef

POD = ObjectRef(kind="Pod", name="p", namespace="ns", uid="u")


def record(server: Any, answers: list[Any], *events: tuple[ObjectRef, str, str]) -> list[Any]:
    async def scene() -> None:
        client = await server.start()
        server.answers = answers
        recorder = EventRecorder(client, "sublet-test", "host")
        running = asyncio.create_task(recorder.run())
        for about, reason, message in events:
            recorder.record(about, reason, message, warning=True)
        await recorder.flush(20)
        running.cancel()
        await client.close()
        await server.stop()

    asyncio.run(scene())
    return list(server.requests)


def test_a_repeated_event_is_counted(server: Any, says_: Any) -> None:
    """One POST, then PATCHes of count."""
    requests = record(server, [says_({})], *[(POD, "FailedScheduling", "no room")] * 3, (POD, "Other", "x"))
    assert [r[0] for r in requests] == ["POST", "PATCH", "PATCH", "POST"]
    body = requests[0][3]
    assert body["involvedObject"] == {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "ns", "uid": "u"}
    assert (body["reason"], body["type"], body["count"]) == ("FailedScheduling", "Warning", 1)
    assert requests[2][3]["count"] == 3


def test_an_expired_event_is_posted_anew(server: Any, says_: Any) -> None:
    """The server forgets events after an hour."""
    answers = [says_({}), says_({"message": "gone"}, 404), says_({})]
    requests = record(server, answers, (POD, "R", "m"), (POD, "R", "m"))
    assert [r[0] for r in requests] == ["POST", "PATCH", "POST"]


def test_cluster_scoped_and_long(server: Any, says_: Any) -> None:
    """Namespace default for nodes; 1,024 characters at most; a refusal loses only itself."""
    node = ObjectRef(kind="Node", name="n")
    requests = record(server, [says_({"message": "no"}, 403), says_({})], (node, "R", "x"), (node, "R", "y" * 3000))
    assert requests[1][1] == "/api/v1/namespaces/default/events"
    assert len(requests[1][3]["message"]) == 1024 and requests[1][3]["message"].endswith(" ...")
