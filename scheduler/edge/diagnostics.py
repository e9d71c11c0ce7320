"""SchedulerDiagnostics: questions answered from scheduler.ports.Answers."""

from __future__ import annotations

from typing import Any

import grpc

from model.decision import Decision
from model.placement import ScoreTerm
from scheduler.ports import Answers, GangExplanation, NodeExplanation
from wire import codec, queue_codec
from wire.v1 import agent_pb2, decision_pb2, scheduler_pb2, scheduler_pb2_grpc


class DiagnosticsServicer(scheduler_pb2_grpc.SchedulerDiagnosticsServicer):
    """See proto/wire/v1/scheduler.proto; what is not known answers NOT_FOUND."""

    name = "sublet.v1.SchedulerDiagnostics"

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def register(self, server: Any) -> None:
        scheduler_pb2_grpc.add_SchedulerDiagnosticsServicer_to_server(self, server)

    async def ExplainPod(self, request: scheduler_pb2.ExplainPodRequest, context: Any) -> Any:
        namespace = request.namespace or "default"
        answer = self._answers.pod(namespace, request.name)
        if answer is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"pod {namespace}/{request.name} is not known")
            return None
        return scheduler_pb2.ExplainPodResponse(
            node=answer.node,
            decision=_decision(answer.decision),
            gang=answer.gang,
            queue_position=answer.queue_position,
            message=answer.message,
            preemption=_decision(answer.preemption),
            nearest=answer.nearest,
            nominated_node=answer.nominated_node,
            unserved=answer.unserved,
            scores=[_score(term) for term in answer.scored.terms] if answer.scored else [],
            runner_up=answer.scored.runner_up if answer.scored else "",
            queue=answer.queue,
            stage=answer.stage,
            shortages=map(queue_codec.shortage_to_wire, answer.shortages),
        )

    async def ExplainGang(self, request: scheduler_pb2.ExplainGangRequest, context: Any) -> Any:
        namespace = request.namespace or "default"
        answer = self._answers.gang(namespace, request.name)
        if answer is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"gang {namespace}/{request.name} is not known")
            return None
        return scheduler_pb2.ExplainGangResponse(
            gang=_gang(answer),
            decision=_decision(answer.decision),
            queue_position=answer.queue_position,
            message=answer.message,
            preemption=_decision(answer.preemption),
            nearest=answer.nearest,
            nominated_nodes=answer.nominated,
            queue=answer.queue,
            stage=answer.stage,
            shortages=map(queue_codec.shortage_to_wire, answer.shortages),
        )

    async def ListQueues(self, request: scheduler_pb2.ListQueuesRequest, context: Any) -> Any:
        return scheduler_pb2.ListQueuesResponse(queues=map(queue_codec.standing_to_wire, self._answers.queues()))

    async def ExplainQueue(self, request: scheduler_pb2.ExplainQueueRequest, context: Any) -> Any:
        answer = self._answers.queue(request.name)
        if answer is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"queue {request.name} is not known")
            return None
        return queue_codec.queue_to_wire(answer)

    async def ExplainJob(self, request: scheduler_pb2.ExplainJobRequest, context: Any) -> Any:
        namespace = request.namespace or "default"
        answer = self._answers.job(namespace, request.name)
        if answer is None:
            told = f"no gang, no controller of pods and no pod {namespace}/{request.name} is known"
            await context.abort(grpc.StatusCode.NOT_FOUND, told)
            return None
        return queue_codec.job_to_wire(answer)

    async def ListGangs(self, request: scheduler_pb2.ListGangsRequest, context: Any) -> Any:
        return scheduler_pb2.ListGangsResponse(gangs=[_gang(answer) for answer in self._answers.gangs()])

    async def ListNodes(self, request: scheduler_pb2.ListNodesRequest, context: Any) -> Any:
        return scheduler_pb2.ListNodesResponse(nodes=[_node(answer) for answer in self._answers.nodes()])

    async def GetSettings(self, request: agent_pb2.GetSettingsRequest, context: Any) -> Any:
        return agent_pb2.Settings(json=self._answers.settings().decode())

    async def WatchDecisions(self, request: agent_pb2.WatchDecisionsRequest, context: Any) -> Any:
        async for decision in self._answers.watch(request.subject_prefix, request.history):
            yield codec.decision_to_wire(decision)


def _decision(decision: Decision | None) -> decision_pb2.Decision | None:
    return None if decision is None else codec.decision_to_wire(decision)


def _score(term: ScoreTerm) -> scheduler_pb2.ScoreTerm:
    return scheduler_pb2.ScoreTerm(name=term.name, weight=term.weight, chosen=term.chosen, runner_up=term.runner_up)


def _gang(answer: GangExplanation) -> scheduler_pb2.Gang:
    return scheduler_pb2.Gang(
        namespace=answer.namespace,
        name=answer.name,
        min_member=answer.min_member,
        members=answer.members,
        scheduled=answer.scheduled,
        problem=answer.problem,
        reason=answer.decision.reason if answer.decision and answer.waiting else "",
    )


def _node(answer: NodeExplanation) -> scheduler_pb2.NodeRoom:
    return scheduler_pb2.NodeRoom(
        node=answer.node,
        allocatable=answer.allocatable,
        requested=answer.requested,
        link_connected=answer.link_connected,
        report_age_seconds=-1.0 if answer.report_age_seconds is None else answer.report_age_seconds,
    )
