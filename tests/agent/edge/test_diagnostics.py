"""Every diagnostic method over real gRPC on loopback and the unix socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from agent.core.limits import Memory, decide_limits
from agent.core.reclaimable import reclaimable
from agent.edge.diagnostics import DiagnosticsServers, Sources
from agent.feed import DecisionFeed
from agent.ports import ClusterFacts, TickResult
from agent.settings import AgentSettings
from agent.status import AgentStatus
from model.decision import Decision, Term, Unit
from model.fault import ConfigurationFault
from model.reason import Reason
from model.report import CheckpointSaved, PreemptionNotice
from model.strategy import ColocationStrategy, SuppressStrategy
from wire.v1 import agent_pb2, agent_pb2_grpc, checkpoints_pb2, checkpoints_pb2_grpc, link_pb2


class Rig:
    """An agent that has ticked once, without any other edge."""

    def __init__(self, build: Any, folder: Path) -> None:
        self.build = build
        self.kernel: Any = 140_000
        self.published: tuple[Decision, ...] = ()
        self.saved: list[CheckpointSaved] = []
        self.status, self.feed = AgentStatus(1.0), DecisionFeed()
        self.socket = folder / "agent.sock"
        sources = Sources(
            node="n",
            version="0.1.0",
            settings=AgentSettings(),
            status=self.status,
            feed=self.feed,
            read_knob=lambda knob: self.kernel if "quota" in knob.file else 2,
            knob_path=lambda knob: folder / knob.file,
            link_connected=lambda: True,
            brake_cuts=lambda: 3,
            brake_mechanism="polling",
            checkpoint=self.saved.append,
            published=lambda: self.published,
        )
        self.sources = sources
        self.servers = DiagnosticsServers(sources, "127.0.0.1:0", self.socket)

    def tick(self) -> TickResult:
        build = self.build
        web, job = build.pod(cpu=1200), build.batch("job", batch_cpu=300)
        usage = build.usage({web.uid: build.averages(400)})
        seen = build.seen(10, listed=(web, job))
        facts = ClusterFacts(build.node(), (web, job), ColocationStrategy(), SuppressStrategy(threshold_pct=95))
        lent = reclaimable(seen.node, seen.listed, usage, facts.colocation, 100.0)
        _, limits = decide_limits(Memory(), build.knobs, seen, usage, facts.suppress)
        result = TickResult(seen, facts, usage, lent, limits, (), (), None, "")
        for sink in (self.status, self.feed):
            sink.take(result)
        return result


Scene = Callable[[Any, Any, Any], Awaitable[None]]


def play(rig: Rig, scene: Scene) -> None:
    """Run `scene` with stubs of both services and the loopback address."""

    async def run() -> None:
        address = await rig.servers.start()
        async with (
            grpc.aio.insecure_channel(address) as loopback,
            grpc.aio.insecure_channel(f"unix:{rig.socket}") as local,
        ):
            async with asyncio.timeout(30):
                await scene(
                    agent_pb2_grpc.AgentDiagnosticsStub(loopback), checkpoints_pb2_grpc.CheckpointsStub(local), address
                )
        await rig.servers.stop()

    asyncio.run(run())


@pytest.fixture
def rig(build: Any, tmp_path: Path) -> Rig:
    return Rig(build, tmp_path)


def test_before_the_first_tick_it_says_so(rig: Rig) -> None:
    """UNAVAILABLE, not an empty answer."""

    async def scene(agent: Any, _: Any, __: Any) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as told:
            await agent.GetNode(agent_pb2.GetNodeRequest())
        assert told.value.code() is grpc.StatusCode.UNAVAILABLE and "first tick" in told.value.details()

    play(rig, scene)


def test_node_pods_and_settings(rig: Rig) -> None:
    """Numbers of the newest tick, and the settings in force."""
    rig.tick()

    async def scene(agent: Any, _: Any, __: Any) -> None:
        node = await agent.GetNode(agent_pb2.GetNodeRequest())
        assert (node.online.cpu_millis, node.capacity.cpu_millis, node.brake_cuts) == (400, 2000, 3)
        pods = (await agent.ListPods(agent_pb2.ListPodsRequest())).pods
        assert [(p.name, p.measured, p.best_effort) for p in pods] == [("web", True, False), ("job", False, True)]
        only = (await agent.ListPods(agent_pb2.ListPodsRequest(best_effort_only=True))).pods
        assert [p.name for p in only] == ["job"]
        settings = json.loads((await agent.GetSettings(agent_pb2.GetSettingsRequest())).json)
        assert settings["suppress"]["threshold_pct"] == 95 and settings["tick_seconds"] == 1.0

    play(rig, scene)


def test_explanations(rig: Rig) -> None:
    """Terms sum to the value, and the limit is compared with what the kernel holds."""
    rig.tick()

    async def scene(agent: Any, _: Any, __: Any) -> None:
        found = (await agent.ExplainReclaimable(agent_pb2.ExplainReclaimableRequest())).decisions
        assert [(d.name, sum(t.value for t in d.terms) == d.value) for d in found] == [
            ("kubernetes.io/batch-cpu", True),
            ("kubernetes.io/batch-memory", True),
        ]
        rig.published = (
            Decision("node/n", "kubernetes.io/batch-cpu", 7, Unit.MILLI_CPU, Reason.COMPUTED, (Term("x", 7),)),
        )
        both = await agent.ExplainReclaimable(agent_pb2.ExplainReclaimableRequest(resource="kubernetes.io/batch-cpu"))
        assert len(both.decisions) == 2 and both.decisions[1].value == 7
        request = agent_pb2.ExplainLimitRequest(knob="cpu.cfs_quota_us")
        limit = (await agent.ExplainLimit(request)).limits[0]
        assert (limit.decision.value, limit.kernel_value, limit.matches) == (140_000, "140000", True)
        rig.kernel = 99
        limit = (await agent.ExplainLimit(request)).limits[0]
        assert (limit.kernel_value, limit.matches) == ("99", False)
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


def test_checkpoints_on_the_socket(rig: Rig) -> None:
    """A running pod of this node may report and waits for its notice; nobody else may."""
    rig.tick()

    async def scene(_: Any, checkpoints: Any, __: Any) -> None:
        await checkpoints.Report(link_pb2.CheckpointReport(pod_uid="uid-job", saved_at_seconds=5, step=2))
        assert [(s.pod, s.step) for s in rig.saved] == [("job", 2)]
        for wrong, code in (
            (link_pb2.CheckpointReport(pod_uid="other", saved_at_seconds=5), grpc.StatusCode.PERMISSION_DENIED),
            (link_pb2.CheckpointReport(pod_uid="uid-job"), grpc.StatusCode.INVALID_ARGUMENT),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as told:
                await checkpoints.Report(wrong)
            assert told.value.code() is code
        waiting = checkpoints.AwaitPreemption(checkpoints_pb2.AwaitPreemptionRequest(pod_uid="uid-job"))
        reading = asyncio.ensure_future(waiting.read())
        while not rig.servers.checkpoints._waiting:
            await asyncio.sleep(0.01)
        rig.servers.checkpoints.notify(PreemptionNotice("uid-job", 9.0, "gang needs the node"))
        assert (await reading).reason == "gang needs the node"

    play(rig, scene)
    assert not rig.socket.exists() or rig.socket.stat().st_mode & 0o777 == 0o600


def test_reflection_lists_the_services(rig: Rig) -> None:
    """grpcurl needs no .proto; Checkpoints is not on loopback."""

    async def scene(_: Any, __: Any, address: Any) -> None:
        def names() -> list[str]:
            with grpc.insecure_channel(address) as plain:
                return list(ProtoReflectionDescriptorDatabase(plain).get_services())

        found = await asyncio.to_thread(names)
        assert "sublet.v1.AgentDiagnostics" in found and "grpc.health.v1.Health" in found
        assert "sublet.v1.Checkpoints" not in found

    play(rig, scene)


def test_only_loopback(rig: Rig, tmp_path: Path) -> None:
    """Plain text never leaves the machine."""
    with pytest.raises(ConfigurationFault, match="is not a loopback address"):
        DiagnosticsServers(rig.sources, "0.0.0.0:1", tmp_path / "s")
