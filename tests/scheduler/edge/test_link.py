"""NodeLink over real TLS, in one process."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest
import structlog
from link_fakes import REPORT, FakeDesk, hello, report

from kube.grpc_server import tls_server
from kube.tls import ServerCertificate, TlsFiles
from model.report import EvictionCost, NodeReport, PreemptionNotice
from scheduler.edge.call_authorization import CallAuthorization
from scheduler.edge.link import NodeLinkServicer
from scheduler.link.callers import TokenTable
from scheduler.link.stream import StreamLimits
from wire import codec
from wire.v1 import decision_pb2, link_pb2, link_pb2_grpc

TOKENS = TokenTable([("secret", "system:node:n1"), ("person", "somebody"), ("bare", "n1")])


class Link:
    """A server with fake node reports, and `call` for streams to it."""

    def __init__(self, node_reports: FakeDesk, servicer: NodeLinkServicer, channel: Any) -> None:
        self.node_reports = node_reports
        self.servicer = servicer
        self._stub = link_pb2_grpc.NodeLinkStub(channel)

    def call(self, token: str = "secret") -> Any:
        return self._stub.Connect(metadata=(("authorization", f"Bearer {token}"),), timeout=10)


@asynccontextmanager
async def serving(certificate: Any, node_reports: FakeDesk, limits: StreamLimits) -> AsyncIterator[Link]:
    clock = asyncio.get_running_loop().time
    servicer = NodeLinkServicer(node_reports, TOKENS, clock, limits)
    served = ServerCertificate(TlsFiles(certificate.certificate, certificate.key))
    listener = await tls_server("127.0.0.1:0", served, CallAuthorization(TOKENS), (servicer,), 64)
    servicer.lead()
    await listener.start()
    credentials = grpc.ssl_channel_credentials(certificate.certificate.read_bytes())
    try:
        async with grpc.aio.secure_channel(listener.address, credentials) as channel:
            yield Link(node_reports, servicer, channel)
    finally:
        await listener.stop(0)


@pytest.fixture
def link(certificate: Any) -> Iterator[Callable[..., None]]:
    """Runs a test's coroutine against a fresh server."""

    def run(body: Callable[[Link], Awaitable[None]], node_reports: FakeDesk | None = None, **limits: Any) -> None:
        async def whole() -> None:
            told = StreamLimits(**{"costs_interval_seconds": 0.02} | limits)
            async with serving(certificate, node_reports or FakeDesk(), told) as running:
                await body(running)

        asyncio.run(whole())

    yield run


async def fails(call: Any, code: grpc.StatusCode, text: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        while await call.read() is not grpc.aio.EOF:
            pass
    assert error.value.code() is code
    assert text in (error.value.details() or "")


async def ends(call: Any) -> None:
    """In order, by the scheduler; what it said before is read."""
    while await call.read() is not grpc.aio.EOF:
        pass
    assert await call.code() is grpc.StatusCode.OK


async def until(call: Any, body: str) -> Any:
    async with asyncio.timeout(10):
        while (message := await call.read()).WhichOneof("body") != body:
            pass
    return message


async def acknowledged(call: Any, sequence: int) -> None:
    while (await call.read()).acknowledged_sequence < sequence:
        pass


def test_hello_then_reports(link: Any) -> None:
    """Messages are acknowledged by number and land on the node reports under the node's name."""

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
        assert server.node_reports.reports == [("n1", REPORT)]
        assert [item.pod_uid for item in server.node_reports.saved] == ["u1"]
        assert server.node_reports.links == ["+n1", "-n1"]

    link(body)


def test_costs_at_once_and_when_they_change(link: Any) -> None:
    """The costs come with the first answer, and again only when they are different ones."""

    async def body(server: Link) -> None:
        call = server.call()
        await call.write(hello())
        first = await call.read()
        assert [codec.cost_from_wire(cost) for cost in first.costs.pods] == list(server.node_reports.costs_now)
        server.node_reports.costs_now = (EvictionCost("u2"),)
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
        assert server.node_reports.links == []

    link(body)


def test_a_token_speaks_for_its_own_node_alone(link: Any) -> None:
    """The token of system:node:n1 opens n1's link and no other."""

    async def body(server: Link) -> None:
        call = server.call()
        await call.write(hello("n2"))
        told = "the token is bound to node n1 and cannot speak for node n2"
        await fails(call, grpc.StatusCode.PERMISSION_DENIED, told)
        assert server.node_reports.links == []

    link(body)


@pytest.mark.parametrize(("token", "name"), [("person", "somebody"), ("bare", "n1")])
def test_who_is_no_agent_is_not_even_listened_to(link: Any, token: str, name: str) -> None:
    """Refused before hello, so that it can keep nothing waiting."""

    async def body(server: Link) -> None:
        told = f"the token belongs to {name}, which is no node's agent"
        await fails(server.call(token), grpc.StatusCode.PERMISSION_DENIED, told)

    link(body, patience_seconds=1e6)


def decision_notice(detail: str) -> link_pb2.DecisionNotice:
    return link_pb2.DecisionNotice(decision=decision_pb2.Decision(subject="node/n1", detail=detail))


def many(pods: int = 0, decisions: int = 0, terms: int = 0) -> link_pb2.NodeMessage:
    """A report of empty parts, each of two bytes on the wire."""
    reclaimable = [decision_pb2.Decision(terms=[decision_pb2.Term()] * terms)] * decisions
    body = link_pb2.Report(pods=[link_pb2.BestEffortPod()] * pods, reclaimable=reclaimable)
    return link_pb2.NodeMessage(sequence=2, report=body)


BROKEN: dict[str, tuple[list[link_pb2.NodeMessage], str]] = {
    "no hello": ([report(1)], "the first message is not hello"),
    "hello without a name": ([hello("")], "Hello.node: is empty"),
    "two hellos": ([hello(), hello(sequence=2)], "a second hello"),
    "number not growing": ([hello(sequence=5), report(5)], "5 came after 5"),
    "empty message": ([hello(), link_pb2.NodeMessage(sequence=2)], "has no body this version knows"),
    "a name that fills a log": ([hello("n" * 5_000)], "NodeMessage.hello: has 50"),
    "a checkpoint that fills the memory": (
        [hello(), link_pb2.NodeMessage(sequence=2, checkpoint=link_pb2.CheckpointReport(pod="p" * 5_000))],
        "NodeMessage.checkpoint: has 50",
    ),
    "a decision that fills the memory": (
        [hello(), link_pb2.NodeMessage(sequence=2, decision=decision_notice("x" * 20_000))],
        "NodeMessage.decision: has 200",
    ),
    "pods that fill the memory": ([hello(), many(pods=5_000)], "Report.pods: are 5000"),
    "decisions that fill the memory": (
        [hello(), many(decisions=300)],
        "NodeMessage.report: has 300 decisions and terms",
    ),
    "terms that fill the memory": ([hello(), many(decisions=2, terms=200)], "has 402 decisions and terms"),
    "a decision of as many terms": (
        [
            hello(),
            link_pb2.NodeMessage(
                sequence=2,
                decision=link_pb2.DecisionNotice(decision=decision_pb2.Decision(terms=[decision_pb2.Term()] * 300)),
            ),
        ],
        "NodeMessage.decision: has 301 decisions and terms",
    ),
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
        assert server.node_reports.links == ["+n1", "+n1"]

    link(body)


def test_a_stream_without_hello_ends(link: Any) -> None:
    """An agent that opens a stream and says nothing is told to."""

    async def body(server: Link) -> None:
        await fails(server.call(), grpc.StatusCode.DEADLINE_EXCEEDED, "no hello within 0.05 s")

    link(body, patience_seconds=0.05)


class BrokenReading(FakeDesk):
    def report(self, node: str, report: NodeReport) -> None:
        raise LookupError("a bug")


class BrokenWriting(FakeDesk):
    def costs(self, node: str) -> tuple[EvictionCost, ...]:
        raise LookupError("a bug")


@pytest.mark.parametrize(("node_reports", "said"), [(BrokenReading, [hello(), report(2)]), (BrokenWriting, [hello()])])
def test_a_bug_of_ours_is_told_and_logged(link: Any, node_reports: type[FakeDesk], said: list[Any]) -> None:
    """INTERNAL with a clear text and one log line, not a stream that ends as if all were well."""

    async def body(server: Link) -> None:
        call = server.call()
        for message in said:
            await call.write(message)
        await fails(call, grpc.StatusCode.INTERNAL, "failed on the link of node n1: LookupError")
        assert server.node_reports.links == ["+n1", "-n1"]

    with structlog.testing.capture_logs() as logs:
        link(body, node_reports())
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
        while server.node_reports.links != ["+n1", "-n1"]:
            server.node_reports.costs_now = (EvictionCost(str(len(server.node_reports.costs_now[0].pod_uid))),)
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
        assert server.node_reports.links == ["+n1", "-n1"]

    link(body)


def test_an_old_stream_is_renewed_without_the_node_being_lost(link: Any) -> None:
    """It ends in order; the next one takes over before the node counts as gone."""

    async def body(server: Link) -> None:
        first = server.call()
        await first.write(hello())
        await ends(first)
        second = server.call()
        await second.write(hello())
        await second.read()
        assert server.node_reports.links == ["+n1", "+n1"] and server.servicer.links == 1

    link(body, life_seconds=0.05, renewal_seconds=1e6)


def test_an_agent_that_does_not_come_back_is_gone(link: Any) -> None:
    """Once the time for it has passed."""

    async def body(server: Link) -> None:
        call = server.call()
        await call.write(hello())
        await ends(call)
        async with asyncio.timeout(20):
            while server.node_reports.links != ["+n1", "-n1"]:
                await asyncio.sleep(0.01)

    link(body, life_seconds=0.05, renewal_seconds=0.05)


def test_one_agent_opens_few_streams(link: Any) -> None:
    """Those it opened and let be count until they are over; then there is room again."""

    async def body(server: Link) -> None:
        silent = [server.call() for _ in range(2)]
        for call in silent:
            await call.wait_for_connection()
        refused = server.call()
        await fails(refused, grpc.StatusCode.RESOURCE_EXHAUSTED, "node n1 has 2 streams open; close them first")
        silent[0].cancel()
        async with asyncio.timeout(20):
            while True:
                call = server.call()
                try:
                    await call.write(hello())
                    if await call.read() is not grpc.aio.EOF:
                        break
                except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    await asyncio.sleep(0.01)

    link(body, streams_a_node=2, patience_seconds=1e6)


def test_one_agent_opens_links_now_and_then(link: Any) -> None:
    """Each that is taken is a line of the log, and work for the scheduling process."""

    async def body(server: Link) -> None:
        for _ in range(2):
            call = server.call()
            await call.write(hello())
            await call.read()
            await call.done_writing()
            await ends(call)
        await fails(server.call(), grpc.StatusCode.RESOURCE_EXHAUSTED, "node n1 opens links too often")

    link(body, links_a_node=2)


class Chatty(FakeDesk):
    """Other and long costs each time, so that what is not read fills up."""

    def costs(self, node: str) -> tuple[EvictionCost, ...]:
        self.costs_now = tuple(EvictionCost(f"{len(self.reports)}-{next(self.numbers)}-{i}") for i in range(5_000))
        return self.costs_now

    numbers = itertools.count()


def test_an_agent_that_reads_nothing_is_given_up(link: Any) -> None:
    """The node's link is free for another stream, whatever becomes of this one; told once it reads."""

    async def body(server: Link) -> None:
        call = server.call()
        await call.write(hello())
        async with asyncio.timeout(60):
            while server.node_reports.links != ["+n1", "-n1"]:
                await asyncio.sleep(0.01)
        await fails(call, grpc.StatusCode.RESOURCE_EXHAUSTED, "nothing was read for 0.2 s")

    with structlog.testing.capture_logs() as logs:
        link(body, Chatty(), patience_seconds=0.2, costs_interval_seconds=0.001)
    assert [line["node"] for line in logs if line["event"] == "link given up"] == ["n1"]


@pytest.mark.parametrize("first", [True, False])
def test_an_oversized_message_is_told(link: Any, first: bool) -> None:
    """RESOURCE_EXHAUSTED with both sizes, and the server goes on."""

    async def body(server: Link) -> None:
        call = server.call()
        if not first:
            await call.write(hello())
            await call.read()
        await call.write(hello("x" * (5 << 20), sequence=2))
        await fails(call, grpc.StatusCode.RESOURCE_EXHAUSTED, "larger than max (5242")
        again = server.call()
        await again.write(hello())
        assert (await again.read()).acknowledged_sequence == 1

    link(body)
