"""NodeLink over real TLS, in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import msgspec
import pytest
import structlog
from link_fakes import REPORT, FakeDesk, hello, report

from model.report import EvictionCost, NodeReport, PreemptionNotice
from scheduler.edge.link import NodeLinkServicer
from scheduler.edge.serving import TlsFiles, TokenTable, tls_server
from wire import codec
from wire.v1 import link_pb2, link_pb2_grpc

TOKENS = TokenTable([("secret", "system:node:n1"), ("person", "somebody"), ("bare", "n1")])


class Link:
    """A server with a fake desk, and `call` for streams to it."""

    def __init__(self, desk: FakeDesk, servicer: NodeLinkServicer, channel: Any) -> None:
        self.desk = desk
        self.servicer = servicer
        self._stub = link_pb2_grpc.NodeLinkStub(channel)

    def call(self, token: str = "secret") -> Any:
        return self._stub.Connect(metadata=(("authorization", f"Bearer {token}"),), timeout=10)


@asynccontextmanager
async def serving(certificate: Any, desk: FakeDesk, patience: float) -> AsyncIterator[Link]:
    clock = asyncio.get_running_loop().time
    servicer = NodeLinkServicer(
        desk,
        lambda c: TOKENS.caller(c.invocation_metadata()) or "",
        clock,
        costs_interval_seconds=0.02,
        hello_within_seconds=patience,
    )
    files = TlsFiles(certificate.certificate, certificate.key)
    listener = await tls_server("127.0.0.1:0", files, TOKENS, (servicer,), 64)
    servicer.lead()
    await listener.start()
    credentials = grpc.ssl_channel_credentials(certificate.certificate.read_bytes())
    try:
        async with grpc.aio.secure_channel(listener.address, credentials) as channel:
            yield Link(desk, servicer, channel)
    finally:
        await listener.stop(0)


@pytest.fixture
def link(certificate: Any) -> Iterator[Callable[..., None]]:
    """Runs a test's coroutine against a fresh server."""

    def run(body: Callable[[Link], Awaitable[None]], desk: FakeDesk | None = None, patience: float = 10.0) -> None:
        async def whole() -> None:
            async with serving(certificate, desk or FakeDesk(), patience) as running:
                await body(running)

        asyncio.run(whole())

    yield run


async def fails(call: Any, code: grpc.StatusCode, text: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        while await call.read() is not grpc.aio.EOF:
            pass
    assert error.value.code() is code
    assert text in (error.value.details() or "")


async def until(call: Any, body: str) -> Any:
    async with asyncio.timeout(10):
        while (message := await call.read()).WhichOneof("body") != body:
            pass
    return message


async def acknowledged(call: Any, sequence: int) -> None:
    while (await call.read()).acknowledged_sequence < sequence:
        pass


def test_hello_then_reports(link: Any) -> None:
    """Messages are acknowledged by number and land on the desk under the node's name."""

    async def body(server: Link) -> None:
        call = server.call()
        await call.write(hello())
        await call.write(report(2))
        await acknowledged(call, 2)
        saved = link_pb2.CheckpointReport(namespace="d", pod="p", pod_uid="u1", saved_at_seconds=3.0)
        await call.write(link_pb2.NodeMessage(sequence=3, checkpoint=saved))
        await acknowledged(call, 3)
        await call.done_writing()
        assert await call.code() is grpc.StatusCode.OK
        assert server.desk.reports == [("n1", REPORT)]
        assert [item.pod_uid for item in server.desk.saved] == ["u1"]
        assert server.desk.links == ["+n1", "-n1"]

    link(body)


def test_costs_at_once_and_when_they_change(link: Any) -> None:
    """The costs come with the first answer, and again only when they are different ones."""

    async def body(server: Link) -> None:
        call = server.call()
        await call.write(hello())
        first = await call.read()
        assert [codec.cost_from_wire(cost) for cost in first.costs.pods] == list(server.desk.costs_now)
        server.desk.costs_now = (EvictionCost("u2"),)
        second = await call.read()
        assert [cost.pod_uid for cost in second.costs.pods] == ["u2"]
        await call.write(report(2))
        third = await call.read()
        assert (third.acknowledged_sequence, third.HasField("costs")) == (2, False)

    link(body)


@pytest.mark.parametrize("token", ["wrong", "", "secre"])
def test_unknown_token(link: Any, token: str) -> None:
    """No known token, no link; the answer does not repeat the token."""

    async def body(server: Link) -> None:
        await fails(server.call(token), grpc.StatusCode.UNAUTHENTICATED, "authorization: Bearer TOKEN")
        assert server.desk.links == []

    link(body)


@pytest.mark.parametrize(("token", "node"), [("secret", "n2"), ("person", "n1"), ("bare", "n1")])
def test_only_a_nodes_own_token_speaks_for_it(link: Any, token: str, node: str) -> None:
    """A token of system:node:n1 opens n1's link and no other, any other name opens none."""

    async def body(server: Link) -> None:
        call = server.call(token)
        await call.write(hello(node))
        await fails(call, grpc.StatusCode.PERMISSION_DENIED, f"node {node} needs one of system:node:{node}")
        assert server.desk.links == []

    link(body)


BROKEN: dict[str, tuple[list[link_pb2.NodeMessage], str]] = {
    "no hello": ([report(1)], "the first message is not hello"),
    "hello without a name": ([hello("")], "Hello.node: is empty"),
    "two hellos": ([hello(), hello(sequence=2)], "a second hello"),
    "number not growing": ([hello(sequence=5), report(5)], "5 came after 5"),
    "empty message": ([hello(), link_pb2.NodeMessage(sequence=2)], "has no body this version knows"),
    "checkpoint without a uid": (
        [hello(), link_pb2.NodeMessage(sequence=2, checkpoint=link_pb2.CheckpointReport(pod="p"))],
        "CheckpointReport.pod_uid: is empty",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_messages(link: Any, name: str) -> None:
    """INVALID_ARGUMENT with one clear text, and the server goes on."""
    messages, text = BROKEN[name]

    async def body(server: Link) -> None:
        call = server.call()
        for message in messages:
            await call.write(message)
        await fails(call, grpc.StatusCode.INVALID_ARGUMENT, text)
        again = server.call()
        await again.write(hello())
        assert (await again.read()).acknowledged_sequence == 1

    link(body)


def test_a_newer_link_replaces_the_older(link: Any) -> None:
    """One live stream a node: the older one ends with ABORTED, the node stays connected."""

    async def body(server: Link) -> None:
        older, newer = server.call(), server.call()
        await older.write(hello())
        await older.read()
        await newer.write(hello())
        await newer.read()
        await fails(older, grpc.StatusCode.ABORTED, "newer link of node n1")
        assert server.desk.links == ["+n1", "+n1"]

    link(body)


def test_a_stream_without_hello_ends(link: Any) -> None:
    """An agent that opens a stream and says nothing is told to."""

    async def body(server: Link) -> None:
        await fails(server.call(), grpc.StatusCode.DEADLINE_EXCEEDED, "no hello within 0.05 s")

    link(body, patience=0.05)


class BrokenReading(FakeDesk):
    def report(self, node: str, report: NodeReport) -> None:
        raise LookupError("a bug")


class BrokenWriting(FakeDesk):
    def costs(self, node: str) -> tuple[EvictionCost, ...]:
        raise LookupError("a bug")


@pytest.mark.parametrize(("desk", "said"), [(BrokenReading, [hello(), report(2)]), (BrokenWriting, [hello()])])
def test_a_bug_of_ours_is_told_and_logged(link: Any, desk: type[FakeDesk], said: list[Any]) -> None:
    """INTERNAL with a clear text and one log line, not a stream that ends as if all were well."""

    async def body(server: Link) -> None:
        call = server.call()
        for message in said:
            await call.write(message)
        await fails(call, grpc.StatusCode.INTERNAL, "failed on the link of node n1: LookupError")
        assert server.desk.links == ["+n1", "-n1"]

    with structlog.testing.capture_logs() as logs:
        link(body, desk())
    assert [(line["node"], str(line["exc_info"])) for line in logs if line["event"] == "link failed"] == [
        ("n1", "a bug")
    ]


def test_an_agent_that_vanishes_is_no_failure(link: Any) -> None:
    """A stream cut off in mid-sentence ends the link without an error line."""

    async def body(server: Link) -> None:
        call = server.call()
        await call.write(hello())
        await call.read()
        call.cancel()
        while server.desk.links != ["+n1", "-n1"]:
            server.desk.costs_now = (EvictionCost(str(len(server.desk.costs_now[0].pod_uid))),)
            await asyncio.sleep(0)

    with structlog.testing.capture_logs() as logs:
        link(body)
    assert [line for line in logs if line["log_level"] == "error"] == []


def test_a_notice_reaches_every_stream_until_the_pod_is_spared(link: Any) -> None:
    """Once a stream, also one that came later; a withdrawal goes to those that were told."""

    async def body(server: Link) -> None:
        told = PreemptionNotice("u9", 1e12, "for another")
        first = server.call()
        await first.write(hello())
        server.servicer.notify("n1", told)
        assert codec.notice_from_wire((await until(first, "preemption")).preemption) == told
        second = server.call()
        await second.write(hello())
        await until(second, "preemption")
        server.servicer.withdraw("n1", "u9")
        assert (await until(second, "withdrawal")).withdrawal.pod_uid == "u9"
        third = server.call()
        await third.write(hello())
        await third.write(report(2))
        async with asyncio.timeout(10):
            while (message := await third.read()).acknowledged_sequence < 2:
                assert not message.HasField("preemption")

    link(body)


def test_who_does_not_lead_takes_no_stream(link: Any) -> None:
    """Standing by ends those that are open, and tells old and new ones where the leader is."""

    async def body(server: Link) -> None:
        call = server.call()
        await call.write(hello())
        await call.read()
        server.servicer.stand_by("10.0.0.1:10318")
        late = server.call()
        for each in (call, late):
            await fails(each, grpc.StatusCode.UNAVAILABLE, "the leader is at 10.0.0.1:10318")
            assert dict(await each.trailing_metadata())["sublet-leader"] == "10.0.0.1:10318"
        assert server.desk.links == ["+n1", "-n1"]

    link(body)


def test_growing_older_is_no_change() -> None:
    """Checkpoint age alone does not send costs again; a new checkpoint does."""
    from scheduler.edge.link import _key

    cost = EvictionCost("u1", checkpoint_age_seconds=10.0)
    assert _key(cost, 100.0) == _key(msgspec.structs.replace(cost, checkpoint_age_seconds=20.0), 110.0)
    assert _key(cost, 100.0) != _key(cost, 110.0)
