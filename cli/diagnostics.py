"""Questions to a running agent or scheduler, by gRPC: on loopback, or to a scheduler over TLS; values of the model.

Every refusal or silence is a PeerFault that says which program, at which address, and what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import msgspec

from model.decision import Decision
from model.fault import ConfigurationFault, PeerFault
from model.placement import Scored, ScoreTerm
from model.queue import JobAccount, QueueAccount, QueueStanding
from view.answers import EvictionsAnswer, GangAnswer, GangExplained, LimitAnswer, NodeAnswer, PendingAnswer, PodAnswer
from wire import queue_codec
from wire.codec import decision_from_wire, usage_from_wire
from wire.v1 import agent_pb2, agent_pb2_grpc, scheduler_pb2, scheduler_pb2_grpc

TIMEOUT_SECONDS = 5.0


class AgentDiagnosticsClient:
    """An agent at `address` (HOST:PORT or unix:PATH)."""

    def __init__(self, address: str, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._where = f"agent at {address}"
        self._timeout = timeout_seconds
        self._channel = grpc.insecure_channel(address)
        self._stub = agent_pb2_grpc.AgentDiagnosticsStub(self._channel)

    def node(self) -> NodeAnswer:
        """The node's usage and what may be lent of it, with terms."""
        status = self._ask(self._stub.GetNode, agent_pb2.GetNodeRequest())
        reclaimable = self._ask(self._stub.ExplainReclaimable, agent_pb2.ExplainReclaimableRequest())
        return NodeAnswer(
            node=status.node,
            agent_version=status.agent_version,
            observed_at_seconds=status.observed_at_seconds,
            capacity=usage_from_wire(status.capacity),
            usage=usage_from_wire(status.usage),
            system=usage_from_wire(status.system),
            online=usage_from_wire(status.online),
            best_effort=usage_from_wire(status.best_effort),
            ready_reason=status.ready_reason,
            link_connected=status.link_connected,
            ticks=status.ticks,
            late_ticks=status.late_ticks,
            brake_cuts=status.brake_cuts,
            brake_mechanism=status.brake_mechanism,
            reclaimable=tuple(decision_from_wire(decision) for decision in reclaimable.decisions),
            cgroups=status.cgroups,
            best_effort_limit_millis=(
                status.best_effort_limit_millis if status.HasField("best_effort_limit_millis") else None
            ),
            best_effort_request_millis=status.best_effort_request_millis,
            host_applications={item.name: usage_from_wire(item.usage) for item in status.host_applications},
            ready_message=status.ready_message,
            wakes=dict(status.wakes),
            mode=status.mode,
        )

    def limits(self, knob: str = "", *, pods: bool = False) -> tuple[LimitAnswer, ...]:
        """The limits of best effort as a whole, with `pods` also of single ones; all, or of one control file."""
        answer = self._ask(self._stub.ExplainLimit, agent_pb2.ExplainLimitRequest(knob=knob, pods=pods))
        return tuple(
            LimitAnswer(
                decision=decision_from_wire(limit.decision),
                path=limit.path,
                kernel_value=limit.kernel_value,
                matches=limit.matches,
                decided_value=limit.decided_value,
                owner=limit.owner,
            )
            for limit in answer.limits
        )

    def evictions(self) -> EvictionsAnswer:
        """Why pods must go, and which went."""
        answer = self._ask(self._stub.ExplainEvictions, agent_pb2.ExplainEvictionsRequest())
        return EvictionsAnswer(
            needs=tuple(decision_from_wire(decision) for decision in answer.needs),
            pending=tuple(_pending(victim) for victim in answer.pending),
            past=tuple(decision_from_wire(decision) for decision in answer.past),
        )

    def _ask(self, method: Callable[..., Any], request: Any) -> Any:
        return _ask(method, request, self._timeout, self._where)


class TlsAccess(msgspec.Struct, frozen=True):
    """For a scheduler off loopback: files of the authority to trust and of a token of ours, the name to expect there.

    An empty `server_name` is the host of the address.
    """

    ca: Path
    token_file: Path
    server_name: str = ""


class SchedulerDiagnosticsClient:
    """A scheduler at `address` (HOST:PORT): its loopback port, or with `secure` the one that agents call.

    Raises ConfigurationFault for a file that cannot be used.
    """

    def __init__(
        self, address: str, secure: TlsAccess | None = None, *, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> None:
        self._where = f"scheduler at {address}"
        self._timeout = timeout_seconds
        self._channel = grpc.insecure_channel(address) if secure is None else _secured(address, secure)
        self._stub = scheduler_pb2_grpc.SchedulerDiagnosticsStub(self._channel)

    def pod(self, namespace: str, name: str) -> PodAnswer:
        """Where a pod is, or why it still waits."""
        request = scheduler_pb2.ExplainPodRequest(namespace=namespace, name=name)
        answer = _ask(self._stub.ExplainPod, request, self._timeout, self._where)
        return PodAnswer(
            namespace=namespace,
            name=name,
            node=answer.node,
            gang=answer.gang,
            queue_position=answer.queue_position,
            message=answer.message,
            decision=_decision(answer, "decision"),
            preemption=_decision(answer, "preemption"),
            nearest=answer.nearest,
            nominated_node=answer.nominated_node,
            unserved=tuple(answer.unserved),
            scored=_scored(answer) if answer.scores else None,
            queue=answer.queue,
            stage=answer.stage,
            shortages=tuple(map(queue_codec.shortage_from_wire, answer.shortages)),
        )

    def gang(self, namespace: str, name: str) -> GangExplained:
        """How far a gang is, or why it still waits."""
        request = scheduler_pb2.ExplainGangRequest(namespace=namespace, name=name)
        answer = _ask(self._stub.ExplainGang, request, self._timeout, self._where)
        return GangExplained(
            gang=_gang(answer.gang),
            queue_position=answer.queue_position,
            message=answer.message,
            decision=_decision(answer, "decision"),
            preemption=_decision(answer, "preemption"),
            nearest=answer.nearest,
            nominated_nodes=dict(answer.nominated_nodes),
            queue=answer.queue,
            stage=answer.stage,
            shortages=tuple(map(queue_codec.shortage_from_wire, answer.shortages)),
        )

    def gangs(self) -> tuple[GangAnswer, ...]:
        """All gangs."""
        answer = _ask(self._stub.ListGangs, scheduler_pb2.ListGangsRequest(), self._timeout, self._where)
        return tuple(_gang(gang) for gang in answer.gangs)

    def queues(self) -> tuple[QueueStanding, ...]:
        """All queues, those above before those below."""
        answer = _ask(self._stub.ListQueues, scheduler_pb2.ListQueuesRequest(), self._timeout, self._where)
        return tuple(map(queue_codec.standing_from_wire, answer.queues))

    def queue(self, name: str) -> QueueAccount:
        """A queue with its loans and whoever waits in it."""
        request = scheduler_pb2.ExplainQueueRequest(name=name)
        return queue_codec.queue_from_wire(_ask(self._stub.ExplainQueue, request, self._timeout, self._where))

    def job(self, namespace: str, name: str) -> JobAccount:
        """A gang, the pods of a controller, or a pod: where it stands, and what it waits for."""
        request = scheduler_pb2.ExplainJobRequest(namespace=namespace, name=name)
        return queue_codec.job_from_wire(_ask(self._stub.ExplainJob, request, self._timeout, self._where))


def _gang(gang: scheduler_pb2.Gang) -> GangAnswer:
    counts = (gang.min_member, gang.members, gang.scheduled)
    return GangAnswer(gang.namespace, gang.name, *counts, gang.problem, gang.reason)


def _scored(answer: scheduler_pb2.ExplainPodResponse) -> Scored:
    terms = (ScoreTerm(term.name, term.weight, term.chosen, term.runner_up) for term in answer.scores)
    return Scored(answer.node, answer.runner_up, tuple(terms))


def _decision(answer: Any, field: str) -> Decision | None:
    return decision_from_wire(getattr(answer, field)) if answer.HasField(field) else None


def _pending(victim: agent_pb2.PendingEviction) -> PendingAnswer:
    told = victim.HasField("notified_until_seconds")
    return PendingAnswer(
        victim.pod_uid,
        dict(victim.frees),
        victim.since_seconds,
        victim.until_seconds,
        victim.notified_until_seconds if told else None,
    )


def _secured(address: str, secure: TlsAccess) -> grpc.Channel:
    token = _contents(secure.token_file).decode(errors="replace").strip()
    if not token.isascii() or not token or " " in token:
        raise ConfigurationFault(str(secure.token_file), "is not a token", "write what `kubectl create token` prints")
    credentials = grpc.composite_channel_credentials(
        grpc.ssl_channel_credentials(_contents(secure.ca)), grpc.access_token_call_credentials(token)
    )
    override = (("grpc.ssl_target_name_override", secure.server_name),) if secure.server_name else ()
    return grpc.secure_channel(address, credentials, options=override)


def _contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationFault(str(path), f"cannot be read: {error.strerror}") from error


def _ask(method: Callable[..., Any], request: Any, timeout_seconds: float, where: str) -> Any:
    try:
        return method(request, timeout=timeout_seconds)
    except grpc.RpcError as error:
        code, details = error.code(), error.details() or "no details"
        if "handshake failed" in details or "Hostname Verification" in details:
            fix = "give --ca the authority of ConfigMap sublet-ca, and --tls-server-name what the certificate names"
            raise PeerFault(
                where, f"its certificate is not trusted: {details.rpartition('error:')[2].strip()}", fix
            ) from error
        if code is grpc.StatusCode.UNAUTHENTICATED:
            fix = "--token-file: what `kubectl create token NAME --audience sublet-scheduler` prints"
            raise PeerFault(where, "does not know this token", fix) from error
        if code is grpc.StatusCode.UNAVAILABLE and "does not lead" not in details and "API server" not in details:
            raise PeerFault(where, "does not answer", "is it running? see `sublet up`") from error
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            raise PeerFault(where, f"no answer within {timeout_seconds:.0f} s") from error
        raise PeerFault(
            where, details if code is not grpc.StatusCode.UNIMPLEMENTED else f"too old: {details}"
        ) from error
