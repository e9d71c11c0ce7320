"""Answers of agent and scheduler as values: every field comes over, and every refusal says whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from cli.diagnostics import AgentDiagnosticsClient, SchedulerDiagnosticsClient, TlsAccess
from model.decision import Decision, Term, Unit
from model.fault import ConfigurationFault, PeerFault
from model.placement import Scored, ScoreTerm
from model.queue import CellStanding, JobAccount, Loan, Queue, QueueAccount, QueuedJob, QueueStanding, QuotaShortage
from model.reason import Reason
from model.report import Usage
from view.answers import (
    EvictionsAnswer,
    GangAnswer,
    GangExplained,
    LimitAnswer,
    NodeAnswer,
    PendingAnswer,
    PodAnswer,
)
from wire import queue_codec
from wire.codec import decision_to_wire
from wire.v1 import agent_pb2, agent_pb2_grpc, link_pb2, scheduler_pb2, scheduler_pb2_grpc

LENT = Decision("node/n1", "kubernetes.io/batch-cpu", 770, Unit.MILLI_CPU, Reason.COMPUTED, (Term("capacity", 770),))
WIRE = decision_to_wire(LENT)
SHORT = QuotaShortage(("", "cpu"), "ml", "maximum", 8, 4)
STANDING = QueueStanding(Queue("train", "ml"), cells={("", "cpu"): CellStanding(used=5)}, pending_jobs=2)


class Refusal:
    """What a servicer ends its calls with, where it is set."""

    code: grpc.StatusCode | None = None
    told = ""


class Agent(agent_pb2_grpc.AgentDiagnosticsServicer):
    """Says something of its own in every field."""

    def GetNode(self, request: Any, context: Any) -> Any:
        if Refusal.code is not None:
            context.abort(Refusal.code, Refusal.told)
        usages = {name: link_pb2.Usage(cpu_millis=at, memory_bytes=10 * at) for at, name in enumerate(USAGES, 1)}
        return agent_pb2.NodeStatus(
            node="n1",
            agent_version="9.9",
            observed_at_seconds=1.5,
            **usages,
            ready_reason="LendingActive",
            ready_message="m",
            link_connected=True,
            ticks=12,
            late_ticks=3,
            brake_cuts=4,
            brake_mechanism="counters",
            cgroups="v2",
            best_effort_limit_millis=800,
            best_effort_request_millis=900,
            host_applications=[agent_pb2.NamedUsage(name="nginx", usage=link_pb2.Usage(cpu_millis=7, memory_bytes=8))],
            wakes={"cpu_use": 5},
            mode="enforce",
        )

    def ExplainReclaimable(self, request: Any, context: Any) -> Any:
        return agent_pb2.ExplainReclaimableResponse(decisions=[WIRE])

    def ExplainLimit(self, request: Any, context: Any) -> Any:
        limit = agent_pb2.Limit(
            decision=WIRE,
            path=f"/{request.knob}",
            kernel_value=str(request.pods),
            matches=True,
            decided_value="9",
            owner="cpuSuppress",
        )
        return agent_pb2.ExplainLimitResponse(limits=[limit])

    def ExplainEvictions(self, request: Any, context: Any) -> Any:
        told = agent_pb2.PendingEviction(
            pod_uid="u1", frees={"cpu": 5}, since_seconds=1, until_seconds=2, notified_until_seconds=3
        )
        ordered = agent_pb2.PendingEviction(pod_uid="u2", since_seconds=1, until_seconds=2)
        return agent_pb2.ExplainEvictionsResponse(needs=[WIRE], pending=[told, ordered], past=[WIRE, WIRE])


USAGES = ("capacity", "usage", "system", "online", "best_effort")
GANG = scheduler_pb2.Gang(
    namespace="d", name="g", min_member=2, members=3, scheduled=1, problem="none", reason="GangDoesNotFit"
)


class Scheduler(scheduler_pb2_grpc.SchedulerDiagnosticsServicer):
    """Knows pod d/p, which was placed, and gang d/g."""

    def ExplainPod(self, request: Any, context: Any) -> Any:
        if request.name != "p":
            return scheduler_pb2.ExplainPodResponse(message="waits")
        return scheduler_pb2.ExplainPodResponse(
            node="n1",
            gang="d/g",
            queue_position=4,
            message="m",
            decision=WIRE,
            preemption=WIRE,
            nearest="n2",
            nominated_node="n3",
            unserved=["u"],
            scores=[scheduler_pb2.ScoreTerm(name="fit", weight=2, chosen=3, runner_up=1)],
            runner_up="n2",
            queue="train",
            stage="quota",
            shortages=[queue_codec.shortage_to_wire(SHORT)],
        )

    def ExplainGang(self, request: Any, context: Any) -> Any:
        return scheduler_pb2.ExplainGangResponse(
            gang=GANG,
            decision=WIRE,
            queue_position=5,
            message="m",
            nearest="n2",
            nominated_nodes={"d/p": "n3"},
            queue="train",
            stage="quota",
            shortages=[queue_codec.shortage_to_wire(SHORT)],
        )

    def ListGangs(self, request: Any, context: Any) -> Any:
        return scheduler_pb2.ListGangsResponse(gangs=[GANG])

    def ListQueues(self, request: Any, context: Any) -> Any:
        return scheduler_pb2.ListQueuesResponse(queues=[queue_codec.standing_to_wire(STANDING)])

    def ExplainQueue(self, request: Any, context: Any) -> Any:
        loans = (Loan(request.name, "web", ("", "cpu"), 1),)
        return queue_codec.queue_to_wire(QueueAccount(STANDING, loans, (), 3))

    def ExplainJob(self, request: Any, context: Any) -> Any:
        return queue_codec.job_to_wire(JobAccount(request.namespace, request.name, QueuedJob("gang/d/g", "train", 2)))


@pytest.fixture
def address() -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(2))
    agent_pb2_grpc.add_AgentDiagnosticsServicer_to_server(Agent(), server)
    scheduler_pb2_grpc.add_SchedulerDiagnosticsServicer_to_server(Scheduler(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None)
    Refusal.code = None


def test_a_node(address: str) -> None:
    """Each field where it belongs."""
    assert AgentDiagnosticsClient(address).node() == NodeAnswer(
        node="n1",
        agent_version="9.9",
        observed_at_seconds=1.5,
        capacity=Usage(1, 10),
        usage=Usage(2, 20),
        system=Usage(3, 30),
        online=Usage(4, 40),
        best_effort=Usage(5, 50),
        ready_reason="LendingActive",
        link_connected=True,
        ticks=12,
        late_ticks=3,
        brake_cuts=4,
        brake_mechanism="counters",
        reclaimable=(LENT,),
        cgroups="v2",
        best_effort_limit_millis=800,
        best_effort_request_millis=900,
        host_applications={"nginx": Usage(7, 8)},
        ready_message="m",
        wakes={"cpu_use": 5},
        mode="enforce",
    )


def test_limits(address: str) -> None:
    """Of one control file, and of pods too, where it is asked so."""
    found = AgentDiagnosticsClient(address).limits("cpu.max", pods=True)
    assert found == (LimitAnswer(LENT, "/cpu.max", "True", True, "9", "cpuSuppress"),)
    assert AgentDiagnosticsClient(address).limits()[0].path == "/"


def test_evictions(address: str) -> None:
    """A pod that was only told so far has the time at which it is evicted."""
    pending = (PendingAnswer("u1", {"cpu": 5}, 1, 2, 3), PendingAnswer("u2", {}, 1, 2, None))
    assert AgentDiagnosticsClient(address).evictions() == EvictionsAnswer((LENT,), pending, (LENT, LENT))


def test_pods(address: str) -> None:
    """One that was placed, with its scores; one of which nothing more is known."""
    asking = SchedulerDiagnosticsClient(address)
    scored = Scored("n1", "n2", (ScoreTerm("fit", 2, 3, 1),))
    assert asking.pod("d", "p") == PodAnswer(
        "d", "p", "n1", "d/g", 4, "m", LENT, LENT, "n2", "n3", ("u",), scored, "train", "quota", (SHORT,)
    )
    assert asking.pod("d", "x") == PodAnswer("d", "x", "", "", 0, "waits", None)


def test_gangs(address: str) -> None:
    gang = GangAnswer("d", "g", 2, 3, 1, "none", "GangDoesNotFit")
    asking = SchedulerDiagnosticsClient(address)
    assert asking.gangs() == (gang,)
    assert asking.gang("d", "g") == GangExplained(
        gang, 5, "m", LENT, None, "n2", {"d/p": "n3"}, "train", "quota", (SHORT,)
    )


def test_queues(address: str) -> None:
    """All of them, and one with its loans."""
    asking = SchedulerDiagnosticsClient(address)
    assert asking.queues() == (STANDING,)
    assert asking.queue("train") == QueueAccount(STANDING, (Loan("train", "web", ("", "cpu"), 1),), (), 3)


def test_a_job(address: str) -> None:
    """By its namespace and name."""
    job = QueuedJob("gang/d/g", "train", 2)
    assert SchedulerDiagnosticsClient(address).job("d", "g") == JobAccount("d", "g", job)


REFUSALS = {
    "nobody there": (grpc.StatusCode.UNAVAILABLE, "failed to connect", "does not answer (is it running?"),
    "a standby": (
        grpc.StatusCode.UNAVAILABLE,
        "this scheduler does not lead; ask the leader",
        "this scheduler does not lead; ask the leader",
    ),
    "too old": (grpc.StatusCode.UNIMPLEMENTED, "Method not found!", "too old: Method not found!"),
    "its own words": (grpc.StatusCode.PERMISSION_DENIED, "ann may not call it", "ann may not call it"),
    "an unknown token": (grpc.StatusCode.UNAUTHENTICATED, "x", "does not know this token (--token-file"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_says_whose_it_is(case: str, address: str) -> None:
    """Program, address, and what to do."""
    Refusal.code, Refusal.told, expected = REFUSALS[case]
    with pytest.raises(PeerFault) as told:
        AgentDiagnosticsClient(address).node()
    assert str(told.value).startswith(f"agent at {address}: {expected}")


@pytest.mark.parametrize(
    ("token", "words"), [(None, "cannot be read"), ("two words", "is not a token"), ("", "is not")]
)
def test_a_token_that_cannot_be_used(token: str | None, words: str, tmp_path: Path) -> None:
    """Before anybody is asked."""
    (tmp_path / "ca").write_bytes(b"x")
    if token is not None:
        (tmp_path / "token").write_text(token)
    with pytest.raises(ConfigurationFault, match=f"{tmp_path / 'token'}: {words}"):
        SchedulerDiagnosticsClient("127.0.0.1:1", TlsAccess(tmp_path / "ca", tmp_path / "token"))
