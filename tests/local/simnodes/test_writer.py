"""Writes arrive in order, the newest of a key only, and again where that may help."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from local.simnodes.requests import ApiRequest, QueuedWrite
from local.simnodes.writer import Writer
from model.fault import KubernetesFault


class Server:
    """Answers each path with the codes given for it, then 200; `gate` holds every answer back until it is set."""

    def __init__(self, codes: dict[str, list[int]] | None = None) -> None:
        self.codes = codes or {}
        self.sent: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def request(
        self, method: str, path: str, *, body: bytes | None = None, content_type: str = "application/json"
    ) -> bytes:
        self.sent.append(f"{method} {path} {(body or b'').decode()}")
        await self.gate.wait()
        code = self.codes.get(path, []).pop(0) if self.codes.get(path) else 200
        if code != 200:
            raise KubernetesFault(path, "no", status=code)
        return b"{}"


def write(key: str, *paths: str, body: int = 0) -> QueuedWrite:
    return QueuedWrite(key, tuple(ApiRequest("PATCH", path, body) for path in paths))


def send(server: Server, writes: Iterable[QueuedWrite]) -> Writer:
    async def work() -> Writer:
        writer = Writer(server, first_delay_seconds=0.001)
        working = asyncio.create_task(writer.run())
        writer.put(writes)
        await asyncio.wait_for(writer.done(), 20)
        working.cancel()
        return writer

    return asyncio.run(work())


def test_requests_of_a_write_keep_their_order() -> None:
    """One after the other."""
    server = Server()
    send(server, [write("k", "/a", "/b", "/c")])
    assert [line.split()[1] for line in server.sent] == ["/a", "/b", "/c"]


def test_only_the_newest_of_a_key_is_sent() -> None:
    """What has begun ends first; what waits is replaced."""

    async def work() -> list[str]:
        server = Server()
        server.gate.clear()
        writer = Writer(server, first_delay_seconds=0.001)
        working = asyncio.create_task(writer.run())
        for body in range(4):
            writer.put([write("k", "/a", body=body)])
            for _ in range(5):
                await asyncio.sleep(0)
        server.gate.set()
        await asyncio.wait_for(writer.done(), 20)
        working.cancel()
        return server.sent

    assert asyncio.run(work()) == ["PATCH /a 0", "PATCH /a 3"]


@pytest.mark.parametrize(
    ("case", "codes", "sent", "refused"),
    [
        ("an answer that may pass", [503, 0, 429], 4, 0),
        ("a refusal for good", [422], 1, 1),
        ("forbidden", [403], 1, 1),
    ],
)
def test_failures(case: str, codes: list[int], sent: int, refused: int) -> None:
    """What may pass is sent again, what may not is told and counted."""
    server = Server({"/a": codes})
    writer = send(server, [write("k", "/a")])
    assert (len(server.sent), writer.refused) == (sent, refused), case


def test_other_requests_in_its_place() -> None:
    """What is missing is made, what is taken is changed, and a refusal may be as good as done."""
    missing = ApiRequest("PATCH", "/lease", 0, missing=(ApiRequest("POST", "/leases", 0),))
    taken = ApiRequest("POST", "/nodes", 0, taken=(ApiRequest("PATCH", "/node", 0),))
    gone = ApiRequest("DELETE", "/pod", 0, settled=(404,))
    server = Server({"/lease": [404], "/nodes": [409], "/pod": [404]})
    writer = send(server, [QueuedWrite("k", (missing, taken, gone))])
    assert [line.split()[1] for line in server.sent] == ["/lease", "/leases", "/nodes", "/node", "/pod"]
    assert not writer.refused
