"""SchedulerDiagnostics through a channel, asked of a real cache and cycle."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from scheduler_builders import SCHEDULER, raw_group, raw_node, raw_pod
from scheduler_fakes import World

from kube.grpc_server import loopback_server, tls_server
from kube.tls import ServerCertificate, TlsFiles
from model.report import NodeReport, Usage
from scheduler.answers import SchedulerAnswers
from scheduler.edge.call_authorization import CallAuthorization
from scheduler.edge.diagnostics import DiagnosticsServicer
from scheduler.link.callers import TokenTable
from scheduler.link.node_reports import NodeReports
from wire.v1 import agent_pb2, scheduler_pb2, scheduler_pb2_grpc

BATCH = {"koordinator.sh/qosClass": "BE"}
"""Of work that a queue governs whether it names one or not."""


@pytest.fixture
def world() -> World:
    """A gang of three that does not fit, and a lone pod that is bound."""
    world = World().see(raw_node(batch_cpu="1000"), raw_group(), raw_pod("lone", batch_cpu="100", labels=BATCH))
    world.see(*(raw_pod(f"w{i}", group="train", created=1.0 + i, labels=BATCH) for i in range(3)))
    world.turn()
    world.see(raw_pod("lone", batch_cpu="100", node_name="n1", phase="Running", labels=BATCH)).turn()
    return world


def ask(world: World, body: Callable[[Any, Any], Awaitable[None]]) -> None:
    """Run `body(stub, channel)` against a loopback server."""

    async def whole() -> None:
        node_reports = NodeReports(world.cache, world.history, world.clock)
        node_reports.connected("n1")
        node_reports.report("n1", NodeReport(1.0, Usage(), Usage(), Usage(), Usage()))
        world.clock.now += 5.0
        answers = SchedulerAnswers(world.cache, world.cycle, world.history, node_reports, world.clock)
        listener = await loopback_server("127.0.0.1:0", (DiagnosticsServicer(answers),))
        await listener.start()
        try:
            async with grpc.aio.insecure_channel(listener.address) as channel:
                await body(scheduler_pb2_grpc.SchedulerDiagnosticsStub(channel), channel)
        finally:
            await listener.stop(0)

    asyncio.run(whole())


def test_a_body_that_is_no_message(world: World) -> None:
    """The caller's mistake, not an error of the server."""

    async def body(_: Any, channel: Any) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await channel.unary_unary("/sublet.v1.SchedulerDiagnostics/ExplainPod")(b"\xff\xfe")
        assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "send a sublet.v1.ExplainPodRequest" in str(raised.value.details())

    ask(world, body)


def test_explain(world: World) -> None:
    """A bound pod says where, a waiting one why and which place in the queue; the terms sum to the value."""

    async def body(stub: Any, _: Any) -> None:
        lone = await stub.ExplainPod(scheduler_pb2.ExplainPodRequest(namespace="default", name="lone"))
        assert (lone.node, lone.decision.reason, lone.queue_position, lone.message) == ("n1", "Scheduled", 0, "")
        assert ("NodeResourcesFit", lone.runner_up) == (lone.scores[0].name, "")
        member = await stub.ExplainPod(scheduler_pb2.ExplainPodRequest(name="w1"))
        assert (member.node, member.gang, member.queue_position) == ("", "default/train", 1)
        assert not member.scores
        gang = await stub.ExplainGang(scheduler_pb2.ExplainGangRequest(namespace="default", name="train"))
        assert gang.message == member.message
        assert gang.message.startswith("gang default/train: 1 of 3 members fit; 0/1 nodes are available:")
        assert (gang.gang.min_member, gang.gang.members, gang.gang.scheduled) == (3, 3, 0)
        assert sum(term.value for term in gang.decision.terms) == gang.decision.value == 0
        assert gang.decision.text

    ask(world, body)


def test_explain_dates_the_attempt(world: World) -> None:
    """What is told was found then; an attempt that finds the same again counts."""

    def dated(expected: float) -> None:
        async def body(stub: Any, _: Any) -> None:
            member = await stub.ExplainPod(scheduler_pb2.ExplainPodRequest(name="w1"))
            gang = await stub.ExplainGang(scheduler_pb2.ExplainGangRequest(name="train"))
            assert [each.decision.at_seconds for each in (member, gang)] == [expected] * 2

        ask(world, body)

    began = world.clock.now
    dated(began)
    world.clock.now += 400.0
    dated(began)
    world.turn()
    dated(world.clock.now)
    assert world.clock.now > began + 400.0


def test_explain_a_pod_of_another_scheduler(world: World) -> None:
    """It says whom the pod waits for, and which names would be taken here."""
    world.see(raw_pod("theirs", scheduler_name="someone-else")).turn()

    async def body(stub: Any, _: Any) -> None:
        theirs = await stub.ExplainPod(scheduler_pb2.ExplainPodRequest(name="theirs"))
        assert theirs.message.startswith("waits for scheduler someone-else; ") and SCHEDULER in theirs.message
        assert (theirs.queue_position, theirs.nearest) == (0, "")

    ask(world, body)


def test_unknown_names(world: World) -> None:
    """NOT_FOUND names what is not known."""

    async def body(stub: Any, _: Any) -> None:
        for method, request in (
            (stub.ExplainPod, scheduler_pb2.ExplainPodRequest(namespace="x", name="y")),
            (stub.ExplainGang, scheduler_pb2.ExplainGangRequest(namespace="x", name="y")),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await method(request)
            assert error.value.code() is grpc.StatusCode.NOT_FOUND
            assert "x/y is not known" in (error.value.details() or "")

    ask(world, body)


def test_lists(world: World) -> None:
    """Queues, gangs and nodes with their numbers."""

    async def body(stub: Any, _: Any) -> None:
        queues = (await stub.ListQueues(scheduler_pb2.ListQueuesRequest())).queues
        assert [(q.name, q.pending_workloads, q.dominant_resource) for q in queues] == [
            ("default", 1, "kubernetes.io/batch-cpu")
        ]
        assert queues[0].dominant_share == pytest.approx(0.1)
        gangs = (await stub.ListGangs(scheduler_pb2.ListGangsRequest())).gangs
        assert [(g.namespace, g.name, g.min_member, g.members) for g in gangs] == [("default", "train", 3, 3)]
        (node,) = (await stub.ListNodes(scheduler_pb2.ListNodesRequest())).nodes
        assert (node.node, node.link_connected, node.report_age_seconds) == ("n1", True, 5.0)
        assert dict(node.requested) == {"kubernetes.io/batch-cpu": 100, "pods": 1}
        assert node.allocatable["kubernetes.io/batch-cpu"] == 1000

    ask(world, body)


def test_explain_a_queue(world: World) -> None:
    """How it stands, and who waits in it and in which stage; one that is not there is NOT_FOUND."""

    async def body(stub: Any, _: Any) -> None:
        found = await stub.ExplainQueue(scheduler_pb2.ExplainQueueRequest(name="default"))
        assert (found.queue.name, found.queue.running_workloads, found.waiting) == ("default", 1, 1)
        assert [(job.name, job.position, job.stage) for job in found.jobs] == [("gang/default/train", 1, "placement")]
        assert found.jobs[0].asked["kubernetes.io/batch-cpu"] == 1500
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await stub.ExplainQueue(scheduler_pb2.ExplainQueueRequest(name="gone"))
        assert raised.value.code() is grpc.StatusCode.NOT_FOUND and "queue gone" in str(raised.value.details())

    ask(world, body)


def test_explain_a_job(world: World) -> None:
    """By the gang's name, by a pod's; what is neither is NOT_FOUND."""

    async def body(stub: Any, _: Any) -> None:
        gang = await stub.ExplainJob(scheduler_pb2.ExplainJobRequest(name="train"))
        assert (gang.job.name, gang.members, gang.scheduled, gang.needed) == ("gang/default/train", 3, 0, 3)
        assert (gang.job.position, gang.job.stage, list(gang.path)) == (1, "placement", ["default"])
        member = await stub.ExplainJob(scheduler_pb2.ExplainJobRequest(name="w1"))
        assert member.job.name == "gang/default/train"
        lone = await stub.ExplainJob(scheduler_pb2.ExplainJobRequest(name="lone"))
        assert (lone.job.name, lone.job.stage, lone.scheduled) == ("pod/default/lone", "placed", 1)
        assert lone.job.held["kubernetes.io/batch-cpu"] == 100
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await stub.ExplainJob(scheduler_pb2.ExplainJobRequest(name="gone"))
        assert raised.value.code() is grpc.StatusCode.NOT_FOUND

    ask(world, body)


def test_watch_decisions(world: World) -> None:
    """History first, oldest first, then what is decided now; by prefix of the subject."""

    async def body(stub: Any, _: Any) -> None:
        call = stub.WatchDecisions(agent_pb2.WatchDecisionsRequest(history=9))
        past = [await call.read(), await call.read()]
        assert [item.subject for item in past] == ["pod/default/lone", "gang/default/train"]
        only = stub.WatchDecisions(agent_pb2.WatchDecisionsRequest(subject_prefix="pod/", history=1))
        assert (await only.read()).subject == "pod/default/lone"
        world.see(raw_pod("late", batch_cpu="1"))
        async with asyncio.TaskGroup() as group:
            world.loop.step(group)
        assert (await call.read()).subject == "pod/default/late"
        assert (await only.read()).subject == "pod/default/late"

    ask(world, body)


def test_health_and_reflection(world: World) -> None:
    """grpcurl needs no .proto file, probes get SERVING."""

    async def body(_: Any, channel: Any) -> None:
        health = health_pb2_grpc.HealthStub(channel)
        for name in ("", "sublet.v1.SchedulerDiagnostics"):
            answer = await health.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        names = {item.name for item in (await call.read()).list_services_response.service}
        assert "sublet.v1.SchedulerDiagnostics" in names

    ask(world, body)


def test_tls_needs_a_token_except_for_health(world: World, certificate: Any) -> None:
    """Diagnostics over TLS refuse a call without a token; a probe may ask."""

    async def whole() -> None:
        node_reports = NodeReports(world.cache, world.history, world.clock)
        answers = SchedulerAnswers(world.cache, world.cycle, world.history, node_reports, world.clock)
        served = ServerCertificate(TlsFiles(certificate.certificate, certificate.key))
        callers = TokenTable([("t", "x")])
        listener = await tls_server(
            "127.0.0.1:0", served, CallAuthorization(callers), (DiagnosticsServicer(answers),), 8
        )
        await listener.start()
        credentials = grpc.ssl_channel_credentials(certificate.certificate.read_bytes())
        async with grpc.aio.secure_channel(listener.address, credentials) as channel:
            stub = scheduler_pb2_grpc.SchedulerDiagnosticsStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await stub.ListNodes(scheduler_pb2.ListNodesRequest())
            assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED
            metadata = (("authorization", "Bearer t"),)
            assert (await stub.ListNodes(scheduler_pb2.ListNodesRequest(), metadata=metadata)).nodes
            await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        await listener.stop(0)

    asyncio.run(whole())
