"""gRPC answers about this node: AgentDiagnostics on loopback and the unix socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

import grpc
import msgspec

from agent.core.evict.eviction_request import PendingVictim
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.observation import CgroupSample, Knob, Missing, Value
from agent.core.observe.usage import Averages, best_effort_request_millis
from agent.options import NOWHERE
from agent.ports import TickResult
from agent.report.sources import AnswerSources
from agent.settings import Mode, require_loopback
from kube.grpc_server import Listener, loopback_server, socket_server
from model.pod.pod import Pod
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY
from wire import codec
from wire.v1 import agent_pb2, agent_pb2_grpc, decision_pb2

_OBSERVING = ("Observing", "nothing is lent and nothing written; these are the numbers that mode enforce would act on")
_SETTLE_TRIES = 20
_SETTLE_SECONDS = 0.05
# A pod asks under the names of its band.
_CPU_NAMES, _MEMORY_NAMES = (CPU, BATCH_CPU, MID_CPU), (MEMORY, BATCH_MEMORY, MID_MEMORY)


class AgentDiagnostics(agent_pb2_grpc.AgentDiagnosticsServicer):
    """Every answer is a view of the newest tick; UNAVAILABLE before the first one."""

    name = "sublet.v1.AgentDiagnostics"

    def __init__(self, sources: AnswerSources) -> None:
        self._from = sources

    def register(self, server: Any) -> None:
        agent_pb2_grpc.add_AgentDiagnosticsServicer_to_server(self, server)

    async def GetNode(self, request: agent_pb2.GetNodeRequest, context: Any) -> agent_pb2.NodeStatus:
        result = await self._newest(context)
        usage, node, status = result.usage, result.facts.node, self._from.status
        _, reason, message = result.ready
        if self._from.settings.mode is Mode.OBSERVE:
            reason, message = _OBSERVING
        answer = agent_pb2.NodeStatus(
            node=self._from.node,
            agent_version=self._from.version,
            observed_at_seconds=result.observation.at_seconds,
            ready_reason=reason,
            ready_message=message,
            link_connected=self._from.link_connected(),
            ticks=status.ticks,
            late_ticks=status.late_ticks,
            brake_cuts=self._from.brake_cuts(),
            brake_mechanism="; ".join(self._from.brake_mechanisms()),
            wakes=self._from.wakes(),
            mode=self._from.settings.mode.value,
            best_effort_limit_millis=result.limits.best_effort_millis,
            best_effort_request_millis=best_effort_request_millis(result.facts.pods or ()),
            unlisted_pods=len(result.observation.unlisted_pods),
            cgroups=self._from.cgroups,
        )
        if result.observation.pressure is not None:
            answer.pressure.CopyFrom(codec.pressure_to_wire(result.observation.pressure))
        if node is not None:
            answer.capacity.CopyFrom(codec.usage_to_wire(Usage(node.capacity[CPU], node.capacity[MEMORY])))
        if usage is not None:
            answer.usage.CopyFrom(codec.usage_to_wire(usage.node.last))
            answer.system.CopyFrom(codec.usage_to_wire(usage.system.last))
            answer.online.CopyFrom(codec.usage_to_wire(usage.online.last))
            answer.best_effort.CopyFrom(codec.usage_to_wire(usage.best_effort.last))
            answer.host_applications.extend(_named(usage.host_applications))
        return answer

    async def ListPods(self, request: agent_pb2.ListPodsRequest, context: Any) -> agent_pb2.ListPodsResponse:
        result = await self._newest(context)
        live = (pod for pod in result.facts.pods or () if not pod.terminal)
        chosen = [pod for pod in live if pod.best_effort or not request.best_effort_only]
        return agent_pb2.ListPodsResponse(pods=[_pod(pod, result) for pod in chosen])

    async def ExplainReclaimable(
        self, request: agent_pb2.ExplainReclaimableRequest, context: Any
    ) -> agent_pb2.ExplainReclaimableResponse:
        result = await self._newest(context)
        decisions = (*result.lent_decisions, *self._from.published())
        chosen = [d for d in decisions if request.resource in ("", d.name)]
        if not chosen:
            names = ", ".join(d.name for d in result.lending.reclaimable)
            await context.abort(grpc.StatusCode.NOT_FOUND, f"resource {request.resource!r} is not lent; known: {names}")
        return agent_pb2.ExplainReclaimableResponse(decisions=[codec.decision_to_wire(d) for d in chosen])

    async def ExplainLimit(
        self, request: agent_pb2.ExplainLimitRequest, context: Any
    ) -> agent_pb2.ExplainLimitResponse:
        result = await self._newest(context)
        limits = result.limits.limits.values() if request.pods else result.limits.of_all
        chosen = [limit.knob for limit in limits if request.knob in ("", limit.knob.file)]
        if not chosen:
            names = ", ".join(sorted({knob.file for knob in result.limits.limits}))
            await context.abort(grpc.StatusCode.NOT_FOUND, f"control file {request.knob!r} is not ours; known: {names}")
        return agent_pb2.ExplainLimitResponse(limits=[await self._limit(knob) for knob in chosen])

    async def ExplainEvictions(
        self, request: agent_pb2.ExplainEvictionsRequest, context: Any
    ) -> agent_pb2.ExplainEvictionsResponse:
        result = await self._newest(context)
        return agent_pb2.ExplainEvictionsResponse(
            needs=[codec.decision_to_wire(need) for need in result.evictions.decisions],
            pending=[_pending(uid, victim) for uid, victim in result.evicting.record.pending.items()],
            past=[codec.decision_to_wire(decision) for decision in self._from.feed.victims],
        )

    async def WatchDecisions(
        self, request: agent_pb2.WatchDecisionsRequest, context: Any
    ) -> AsyncIterator[decision_pb2.Decision]:
        queue = self._from.feed.listen()
        try:
            for decision in self._from.feed.past(request.history):
                if decision.subject.startswith(request.subject_prefix):
                    yield codec.decision_to_wire(decision)
            while True:
                decision = await queue.get()
                if decision.subject.startswith(request.subject_prefix):
                    yield codec.decision_to_wire(decision)
        finally:
            self._from.feed.leave(queue)

    async def GetSettings(self, request: agent_pb2.GetSettingsRequest, context: Any) -> agent_pb2.Settings:
        result = self._from.status.newest
        shown = self._from.settings
        if result is not None:
            force = result.facts.settings
            shown = msgspec.structs.replace(
                shown,
                colocation=force.colocation,
                suppress=force.suppress,
                eviction=force.eviction,
                normalization=force.normalization,
            )
        return agent_pb2.Settings(json=msgspec.json.format(msgspec.json.encode(shown)).decode())

    async def _newest(self, context: Any) -> TickResult:
        result = self._from.status.newest
        if result is None:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the first tick is not finished yet; try again")
            raise AssertionError
        return result

    async def _limit(self, knob: Knob) -> agent_pb2.Limit:
        """Decision and kernel value of one moment; a brake cut in between settles within a tick."""
        kernel: Value | Missing = 0
        limit: Limit | None = None
        owner: str = ""
        for _ in range(_SETTLE_TRIES):
            result = self._from.status.newest
            assert result is not None
            limit = result.limits.limits.get(knob, limit)
            owner = result.limits.owner(knob) or ""
            kernel = self._from.read_knob(knob)
            if limit is not None and kernel == limit.value and result is self._from.status.newest:
                break
            await asyncio.sleep(_SETTLE_SECONDS)
        assert limit is not None
        return agent_pb2.Limit(
            decision=codec.decision_to_wire(limit.decision),
            path=str(self._from.knob_path(knob)),
            kernel_value=f"unreadable: {kernel.detail}" if isinstance(kernel, Missing) else str(kernel),
            matches=kernel == limit.value,
            decided_value=str(limit.value),
            owner=owner,
        )


class DiagnosticsServers:
    """Two listeners for users: the unix socket (0600), and loopback.

    Loopback is every user's of the machine, and of every pod's with hostNetwork; `listen` may be NOWHERE. More calls at
    once than a listener has room for are answered RESOURCE_EXHAUSTED.
    """

    def __init__(self, sources: AnswerSources, listen: str, socket: Path) -> None:
        if listen != NOWHERE:
            require_loopback("--grpc-listen", listen)
        self._listen = listen
        self._socket = socket
        self._diagnostics = AgentDiagnostics(sources)
        self._listeners: list[Listener] = []

    async def start(self) -> None:
        """Serve on the socket. Raises CannotListen."""
        await self._begin(await socket_server(self._socket, (self._diagnostics,)))

    async def listen(self) -> str:
        """Serve on loopback, too; the address in use, or NOWHERE. Raises CannotListen."""
        if self._listen == NOWHERE:
            return NOWHERE
        listener = await loopback_server(self._listen, (self._diagnostics,))
        await self._begin(listener)
        return listener.address

    async def _begin(self, listener: Listener) -> None:
        self._listeners.append(listener)
        await listener.start()

    async def stop(self) -> None:
        for listener in self._listeners:
            await listener.stop(0.2)


def _named(averages: Mapping[str, Averages]) -> list[agent_pb2.NamedUsage]:
    return [agent_pb2.NamedUsage(name=name, usage=codec.usage_to_wire(found.last)) for name, found in averages.items()]


def _pending(uid: str, victim: PendingVictim) -> agent_pb2.PendingEviction:
    return agent_pb2.PendingEviction(
        pod_uid=uid,
        frees=victim.frees,
        since_seconds=victim.since_seconds,
        until_seconds=victim.until_seconds,
        notified_until_seconds=victim.notified_until_seconds,
    )


def _requested(pod: Pod, names: Iterable[str]) -> int:
    return sum(pod.spec.requests[name] for name in names)


def _pod(pod: Pod, result: TickResult) -> agent_pb2.PodUsage:
    usage, observation = result.usage, result.observation
    averages = usage.pods.get(pod.uid) if usage else None
    answer = agent_pb2.PodUsage(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        qos=pod.colocation.qos.value,
        priority=pod.colocation.band.value,
        best_effort=pod.best_effort,
        usage=codec.usage_to_wire(averages.last if averages else Usage()),
        requests=codec.usage_to_wire(Usage(_requested(pod, _CPU_NAMES), _requested(pod, _MEMORY_NAMES))),
        measured=averages is not None,
    )
    if usage is not None and averages is not None:
        answer.live.CopyFrom(codec.usage_to_wire(averages.live))
        answer.aggregate.CopyFrom(codec.usage_to_wire(averages.aggregate))
        answer.containers.extend(_named(usage.containers.get(pod.uid, {})))
        answer.throttled_ratio = usage.throttled_ratio.get(pod.uid, 0.0)
    if (traffic := observation.network.get(pod.uid)) is not None:
        answer.received_bytes, answer.sent_bytes = traffic.received_bytes, traffic.sent_bytes
    sample = observation.pods.get(pod.uid)
    if isinstance(sample, CgroupSample):
        if sample.disk is not None:
            answer.read_bytes, answer.written_bytes = sample.disk.read_bytes, sample.disk.written_bytes
        if sample.events is not None:
            answer.oom_kills = sample.events.oom_kill
    return answer
