"""Every diagnostic method over real gRPC on loopback and the unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from agent.core.evict.decide import EvictionMemory, Evictions
from agent.core.evict.eviction_request import EvictionRecord, EvictionRequest, EvictionRequestKind, PendingVictim
from agent.core.lend.reclaimable import lending
from agent.core.limit.decide import LimitMemory, decide_limits
from agent.core.limit.plan import Write
from agent.core.observe.node_metric import live_metric
from agent.core.observe.observation import (
    Absence,
    CgroupSample,
    DiskBytes,
    KnobReading,
    MemoryEvents,
    Missing,
    NetworkBytes,
)
from agent.core.observe.prediction import Prediction
from agent.edge.diagnostics import DiagnosticsServers
from agent.options import NOWHERE
from agent.ports import TickResult, WriteOutcome
from agent.report.decision_feed import DecisionFeed
from agent.report.sources import AnswerSources
from agent.report.status import AgentStatus
from agent.settings import AgentSettings, Mode
from model.decision import Decision, Term, Unit
from model.fault import CannotListen, ConfigurationFault
from model.nodesettings import NodeSettings
from model.pod.spec import Container
from model.pod.status import PodPhase
from model.reason import Reason
from model.report import Pressure, Usage
from model.strategy import SuppressStrategy
from tests.pods import with_fields
from wire.v1 import agent_pb2, agent_pb2_grpc


class Rig:
    """An agent that has ticked once, without any other edge."""

    def __init__(self, build: Any, folder: Path) -> None:
        self.build = build
        self.kernel: Any = 130_000
        self.published: tuple[Decision, ...] = ()
        self.status, self.feed = AgentStatus(1.0), DecisionFeed()
        self.socket = folder / "agent.sock"
        sources = AnswerSources(
            node="n",
            version="0.1.0",
            settings=AgentSettings(),
            status=self.status,
            feed=self.feed,
            read_knob=lambda knob: self.kernel if "quota" in knob.file else 2,
            knob_path=lambda knob: folder / knob.file,
            link_connected=lambda: True,
            brake_cuts=lambda: 3,
            brake_mechanisms=lambda: ("polling", "PSI"),
            wakes=lambda: {"cpu use": 2},
            cgroups="v1, driver cgroupfs, /kubepods",
            published=lambda: self.published,
        )
        self.sources = sources
        self.servers = DiagnosticsServers(sources, "127.0.0.1:0", self.socket)

    def tick(self, **parts: Any) -> TickResult:
        """web is measured in every way, job is not; `parts` are of the observation."""
        build = self.build
        web, job = build.pod(cpu=1200, memory=9), build.batch("job", batch_cpu=300, batch_memory=1 << 20)
        job = with_fields(job, containers=(Container("main", job.spec.requests),))
        done = build.batch("done", batch_cpu=50, phase=PodPhase.SUCCEEDED)
        usage = build.usage(
            {web.uid: build.averages(400, 7, live=410, aggregate=420)},
            containers={web.uid: {"app": build.averages(390, 6)}},
            throttled_ratio={web.uid: 0.25},
            host_applications={"nginx": build.averages(50, 5)},
        )
        sample = CgroupSample(1, 1, events=MemoryEvents(oom_kill=3), disk=DiskBytes(10, 20))
        fields = {
            "listed": (web, job),
            "pods": {web.uid: sample, job.uid: Missing("/p", Absence.GONE)},
            "network": {web.uid: NetworkBytes(30, 40)},
            "unlisted_pods": ("x",),
            "pressure": Pressure(1.0, 2.0, 3.0),
            "knobs": build.readings(KnobReading(150_000)),
            "best_effort_cpus": 2,
        }
        seen = build.seen(10, **{**fields, **parts})
        facts = build.facts(web, job, done, settings=NodeSettings(suppress=SuppressStrategy(threshold_pct=90)))
        metric = live_metric(usage, facts.pods, (), None)
        lent = lending(facts.for_lending(metric, 100.0), facts.settings.colocation)
        _, limits = decide_limits(LimitMemory(), build.layout, seen, usage, facts.for_limits())
        foreseen = Prediction(Usage(), Usage(), (build.decision("prod-peak-cpu", 5),))
        result: TickResult = build.result(
            observation=seen, facts=facts, usage=usage, lending=lent, limits=limits, prediction=foreseen
        )
        for sink in (self.status, self.feed):
            sink.take(result)
        return result


Scene = Callable[[Any, Any, Any], Awaitable[None]]


def play(rig: Rig, scene: Scene) -> None:
    """Run `scene` with stubs over loopback and the socket, and the loopback address."""

    async def run() -> None:
        await rig.servers.start()
        address = await rig.servers.listen()
        async with (
            grpc.aio.insecure_channel(address) as loopback,
            grpc.aio.insecure_channel(f"unix:{rig.socket}") as local,
        ):
            async with asyncio.timeout(30):
                await scene(
                    agent_pb2_grpc.AgentDiagnosticsStub(loopback), agent_pb2_grpc.AgentDiagnosticsStub(local), address
                )
        await rig.servers.stop()

    asyncio.run(run())


@pytest.fixture
def rig(build: Any, tmp_path: Path) -> Rig:
    return Rig(build, tmp_path)


def test_a_body_that_is_no_message(rig: Rig) -> None:
    """The caller's mistake, on loopback and on the socket."""

    async def scene(_: Any, __: Any, address: str) -> None:
        calls = {address: "AgentDiagnostics/GetNode", f"unix:{rig.socket}": "AgentDiagnostics/GetNode"}
        for target, method in calls.items():
            async with grpc.aio.insecure_channel(target) as channel:
                with pytest.raises(grpc.aio.AioRpcError) as raised:
                    await channel.unary_unary(f"/sublet.v1.{method}")(b"\xff\xfe")
            assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    play(rig, scene)


def test_before_the_first_tick_it_says_so(rig: Rig) -> None:
    """UNAVAILABLE, not an empty answer."""

    async def scene(agent: Any, _: Any, __: Any) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as told:
            await agent.GetNode(agent_pb2.GetNodeRequest())
        assert told.value.code() is grpc.StatusCode.UNAVAILABLE and "first tick" in told.value.details()

    play(rig, scene)


def usage_of(told: Any) -> tuple[int, int]:
    return told.cpu_millis, told.memory_bytes


def test_the_node(rig: Rig) -> None:
    """Use of its parts, what best effort may and wants to use, pressure, who is strange, where its cgroups are."""
    rig.tick()

    async def scene(agent: Any, _: Any, __: Any) -> None:
        node = await agent.GetNode(agent_pb2.GetNodeRequest())
        assert (node.node, node.agent_version, node.observed_at_seconds) == ("n", "0.1.0", 1010.0)
        parts = (node.usage, node.system, node.online, node.best_effort, node.capacity)
        assert [part.cpu_millis for part in parts] == [700, 100, 400, 200, 2000]
        assert (node.capacity.memory_bytes, node.usage.memory_bytes) == (8 << 30, 1 << 30)
        assert (node.ready_reason, node.link_connected, node.brake_mechanism) == ("LendingActive", True, "polling; PSI")
        assert dict(node.wakes) == {"cpu use": 2} and node.mode == "enforce"
        assert "are lent to batch pods" in node.ready_message
        assert (node.ticks, node.late_ticks, node.brake_cuts) == (1, 0, 3)
        # The smaller of two CPUs and 150,000 us a period; job asks for 300m.
        assert (node.best_effort_limit_millis, node.best_effort_request_millis) == (1500, 300)
        assert [(a.name, usage_of(a.usage)) for a in node.host_applications] == [("nginx", (50, 5))]
        assert (node.unlisted_pods, node.cgroups) == (1, "v1, driver cgroupfs, /kubepods")
        pressure = node.pressure
        assert (
            pressure.cpu_some_avg10_pct,
            pressure.memory_some_avg10_pct,
            pressure.memory_full_avg10_pct,
        ) == (1.0, 2.0, 3.0)

    play(rig, scene)


def test_what_is_not_known_of_the_node_is_absent(rig: Rig) -> None:
    """No usage, no Node object, no pressure, no limit: fields that are not set, and the reason why."""
    rig.tick(pressure=None, best_effort_cpus=None, knobs=rig.build.readings(KnobReading(-1)))
    newest = rig.status.newest
    assert newest is not None
    facts = rig.build.facts(node=None, pods=None)
    rig.status.take(msgspec.structs.replace(newest, usage=None, facts=facts, degraded_reason="PodsUnknown"))

    async def scene(agent: Any, _: Any, __: Any) -> None:
        node = await agent.GetNode(agent_pb2.GetNodeRequest())
        assert (node.ready_reason, node.ready_message) == ("PodsUnknown", "the pods of the node are not known")
        unset = ("usage", "system", "online", "best_effort", "capacity", "pressure", "best_effort_limit_millis")
        assert [field for field in unset if node.HasField(field)] == []
        assert len((await agent.ListPods(agent_pb2.ListPodsRequest())).pods) == 0

    play(rig, scene)


@pytest.mark.parametrize(
    ("degraded", "problem", "error", "expected"),
    [
        ("ConfigMap a/b: x", "ConfigMap a/b: x", "", ("ConfigurationInvalid", "x; the last good settings")),
        ("/q: Invalid argument", "", "/q: Invalid argument", ("LimitNotApplied", "/q: Invalid argument")),
    ],
)
def test_the_reason_is_a_code(rig: Rig, degraded: str, problem: str, error: str, expected: tuple[str, str]) -> None:
    """A script compares it; what is wrong stands in the message."""
    rig.tick()
    newest = rig.status.newest
    assert newest is not None
    knob = rig.build.knobs.quota
    outcomes = (WriteOutcome(Write(knob, 1, 2, newest.limits.decisions[knob]), error),)
    facts = rig.build.facts(problem=problem)
    rig.status.take(msgspec.structs.replace(newest, facts=facts, outcomes=outcomes, degraded_reason=degraded))

    async def scene(agent: Any, _: Any, __: Any) -> None:
        node = await agent.GetNode(agent_pb2.GetNodeRequest())
        assert node.ready_reason == expected[0] and expected[1] in node.ready_message

    play(rig, scene)


def test_an_observing_agent_says_so(rig: Rig) -> None:
    """Its numbers are lent to nobody."""
    observing = msgspec.structs.replace(rig.sources, settings=AgentSettings(mode=Mode.OBSERVE))
    rig.servers = DiagnosticsServers(observing, "127.0.0.1:0", rig.socket)
    rig.tick()

    async def scene(agent: Any, _: Any, __: Any) -> None:
        node = await agent.GetNode(agent_pb2.GetNodeRequest())
        assert (node.mode, node.ready_reason) == ("observe", "Observing")

    play(rig, scene)


def test_evictions(rig: Rig) -> None:
    """Needs of the newest tick, which pods terminate, and victims since the start."""
    result = rig.tick()
    need = Decision("node/n", "memory to free", 5, Unit.BYTES, Reason.BE_MEMORY_EVICT, (Term("used", 5),))
    gone = Decision("pod/default/job", "evict", 5, Unit.BYTES, Reason.BE_MEMORY_EVICT, (Term("in use", 5),))
    order = EvictionRequest(EvictionRequestKind.EVICT, "uid-job", "default", "job", gone, "used memory")
    victim = PendingVictim({"used memory": 5}, 10.0, 40.0, 30.0)
    told = msgspec.structs.replace(
        result,
        evictions=Evictions((need,), (order,)),
        evicting=EvictionMemory(EvictionRecord(pending={"uid-job": victim})),
    )
    for sink in (rig.status, rig.feed):
        sink.take(told)

    async def scene(agent: Any, _: Any, __: Any) -> None:
        answer = await agent.ExplainEvictions(agent_pb2.ExplainEvictionsRequest())
        assert [decision.value for decision in (*answer.needs, *answer.past)] == [5, 5]
        (pending,) = answer.pending
        assert (pending.pod_uid, dict(pending.frees), pending.until_seconds) == ("uid-job", {"used memory": 5}, 40.0)
        assert pending.notified_until_seconds == 30.0

    play(rig, scene)


def test_pods(rig: Rig) -> None:
    """Newest rate, both averages, containers, throttling, traffic, disk and OOM kills of a measured pod; none that has ended."""
    rig.tick()

    async def scene(agent: Any, _: Any, __: Any) -> None:
        web, job = (await agent.ListPods(agent_pb2.ListPodsRequest())).pods
        assert (web.namespace, web.name, web.uid, web.qos, web.priority) == (
            *("default", "web", "uid-web", "LS", "koord-prod"),
        )
        assert (web.measured, web.best_effort, usage_of(web.requests)) == (True, False, (1200, 9))
        assert [usage_of(part) for part in (web.usage, web.live, web.aggregate)] == [(400, 7), (410, 7), (420, 7)]
        assert [(c.name, usage_of(c.usage)) for c in web.containers] == [("app", (390, 6))]
        assert (web.throttled_ratio, web.received_bytes, web.sent_bytes) == (0.25, 30, 40)
        assert (web.read_bytes, web.written_bytes, web.oom_kills) == (10, 20, 3)
        assert (job.name, job.measured, job.best_effort, job.qos) == ("job", False, True, "BE")
        assert usage_of(job.requests) == (300, 1 << 20)
        unset = ("live", "aggregate", "received_bytes", "sent_bytes", "read_bytes", "written_bytes", "oom_kills")
        assert [field for field in unset if job.HasField(field)] == [] and len(job.containers) == 0
        only = (await agent.ListPods(agent_pb2.ListPodsRequest(best_effort_only=True))).pods
        assert [p.name for p in only] == ["job"]

    play(rig, scene)


def test_settings_in_force(rig: Rig) -> None:
    """The agent's own before the first tick, then those the cluster's documents make of them."""

    async def scene(agent: Any, _: Any, __: Any) -> None:
        request = agent_pb2.GetSettingsRequest()
        own = json.loads((await agent.GetSettings(request)).json)
        assert own["suppress"]["threshold_pct"] is None
        rig.tick()
        force = json.loads((await agent.GetSettings(request)).json)
        assert force["suppress"]["threshold_pct"] == 90
        assert force["tick_seconds"] == 1.0 and {"prediction", "normalization", "pods"} < force.keys()

    play(rig, scene)


def test_explanations(rig: Rig) -> None:
    """Terms sum to the value, and the limit is compared with what the kernel holds."""
    rig.tick()

    async def scene(agent: Any, _: Any, __: Any) -> None:
        found = (await agent.ExplainReclaimable(agent_pb2.ExplainReclaimableRequest())).decisions
        assert [(d.name, sum(t.value for t in d.terms) == d.value) for d in found] == [
            ("kubernetes.io/batch-cpu", True),
            ("kubernetes.io/batch-memory", True),
            ("kubernetes.io/mid-cpu", True),
            ("kubernetes.io/mid-memory", True),
            ("prod-peak-cpu", True),
        ]
        rig.published = (
            Decision("node/n", "kubernetes.io/batch-cpu", 7, Unit.MILLI_CPU, Reason.COMPUTED, (Term("x", 7),)),
        )
        both = await agent.ExplainReclaimable(agent_pb2.ExplainReclaimableRequest(resource="kubernetes.io/batch-cpu"))
        assert len(both.decisions) == 2 and both.decisions[1].value == 7
        request = agent_pb2.ExplainLimitRequest(knob="cpu.cfs_quota_us")
        limit = (await agent.ExplainLimit(request)).limits[0]
        assert (limit.decision.value, limit.kernel_value, limit.matches) == (130_000, "130000", True)
        assert limit.owner == "cpuSuppress"
        rig.kernel = 99
        limit = (await agent.ExplainLimit(request)).limits[0]
        assert (limit.kernel_value, limit.matches) == ("99", False)
        rig.kernel = Missing("/q", Absence.GONE, "no such file")
        limit = (await agent.ExplainLimit(request)).limits[0]
        assert (limit.kernel_value, limit.matches) == ("unreadable: no such file", False)
        for call in (
            agent.ExplainLimit(agent_pb2.ExplainLimitRequest(knob="cpu.idle")),
            agent.ExplainReclaimable(agent_pb2.ExplainReclaimableRequest(resource="gpu")),
        ):
            with pytest.raises(grpc.aio.AioRpcError, match="known: "):
                await call

    play(rig, scene)


def test_watch_gives_history_then_news(rig: Rig) -> None:
    """Only what changed, filtered by subject."""
    rig.tick()

    async def scene(agent: Any, _: Any, __: Any) -> None:
        request = agent_pb2.WatchDecisionsRequest(subject_prefix="cgroup/", history=100)
        stream = agent.WatchDecisions(request)
        first = [await stream.read() for _ in range(3)]
        assert {d.name for d in first} == {"cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares"}
        rig.feed._last.clear()
        rig.tick()
        assert (await stream.read()).subject.startswith("cgroup/")
        stream.cancel()

    play(rig, scene)


def test_streams_that_stay_open_are_bounded(rig: Rig) -> None:
    """Any user of the machine may open them on loopback; who asks on the socket is answered all the same."""
    rig.tick()

    async def scene(agent: Any, by_socket: Any, _: Any) -> None:
        request = agent_pb2.WatchDecisionsRequest(history=1)
        open_now, refused = [], 0
        for _ in range(100):
            stream = agent.WatchDecisions(request)
            try:
                await stream.read()
                open_now.append(stream)
            except grpc.aio.AioRpcError as told:
                assert told.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                refused += 1
        assert (len(open_now), refused) == (64, 36)
        assert (await by_socket.GetNode(agent_pb2.GetNodeRequest())).node == "n"
        for stream in open_now:
            stream.cancel()
        answered = False
        while not answered:
            with contextlib.suppress(grpc.aio.AioRpcError):
                answered = bool((await agent.GetNode(agent_pb2.GetNodeRequest())).node)

    play(rig, scene)


def test_reflection_lists_the_services(rig: Rig) -> None:
    """grpcurl needs no .proto."""

    async def scene(_: Any, __: Any, address: Any) -> None:
        def names() -> list[str]:
            with grpc.insecure_channel(address) as plain:
                return list(ProtoReflectionDescriptorDatabase(plain).get_services())

        found = await asyncio.to_thread(names)
        assert "sublet.v1.AgentDiagnostics" in found and "grpc.health.v1.Health" in found

    play(rig, scene)


def test_the_socket_alone(rig: Rig, tmp_path: Path) -> None:
    """With `none` no port is opened: loopback is every user's of the machine."""
    servers = DiagnosticsServers(rig.sources, NOWHERE, tmp_path / "alone.sock")

    async def served() -> tuple[str, int]:
        await servers.start()
        address = await servers.listen()
        try:
            async with grpc.aio.insecure_channel(f"unix:{tmp_path / 'alone.sock'}") as channel:
                asked = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
                return address, (await asked).status
        finally:
            await servers.stop()

    assert asyncio.run(served()) == (NOWHERE, health_pb2.HealthCheckResponse.SERVING)


def test_a_port_that_somebody_holds_leaves_the_socket(rig: Rig, tmp_path: Path) -> None:
    """Whoever holds it, who asks on the socket is answered; once it is free it is served."""
    holding = socket.create_server(("127.0.0.1", 0))
    servers = DiagnosticsServers(rig.sources, f"127.0.0.1:{holding.getsockname()[1]}", tmp_path / "alone.sock")

    async def checked(address: str) -> int:
        async with grpc.aio.insecure_channel(address) as channel:
            return int((await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())).status)

    async def served() -> None:
        await servers.start()
        try:
            with pytest.raises(CannotListen):
                await servers.listen()
            assert await checked(f"unix:{tmp_path / 'alone.sock'}") == health_pb2.HealthCheckResponse.SERVING
            holding.close()
            assert await checked(await servers.listen()) == health_pb2.HealthCheckResponse.SERVING
        finally:
            await servers.stop()

    asyncio.run(served())


def test_only_loopback(rig: Rig, tmp_path: Path) -> None:
    """Plain text never leaves the machine."""
    with pytest.raises(ConfigurationFault, match="is not a loopback address"):
        DiagnosticsServers(rig.sources, "0.0.0.0:1", tmp_path / "s")
