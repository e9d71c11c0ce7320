"""`sublet explain` asks a running program and prints the record it keeps, as text or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from cli.explain.command import visible
from cli.main import main
from local.rundir import Endpoints, NodeEndpoints, RunDirectory
from model.decision import Decision, Term, TermSum, Unit
from model.queue import JobAccount, Queue, QueueAccount, QueuedJob, QueueStanding
from model.reason import Reason
from wire import queue_codec
from wire.codec import decision_to_wire
from wire.v1 import agent_pb2, agent_pb2_grpc, link_pb2, scheduler_pb2, scheduler_pb2_grpc

AT = 1_800_000_000.0


def decision(subject: str, name: str, unit: Unit, reason: Reason, **terms: int) -> Decision:
    total = TermSum()
    for term, value in terms.items():
        total.add(term, value)
    return Decision(subject, name, total.value, unit, reason, total.terms, at_seconds=AT)


BATCH_CPU = decision(
    "node/n1", "kubernetes.io/batch-cpu", Unit.MILLI_CPU, Reason.COMPUTED, capacity=2000, margin=-800, online=-430
)
QUOTA = decision(
    "cgroup/kubepods/besteffort",
    "cpu.cfs_quota_us",
    Unit.MICROSECONDS,
    Reason.QUOTA_LOWERED,
    ceiling=190000,
    online=-60000,
)
WAITING = decision("gang/ml/train", "nodes", Unit.NODES, Reason.GANG_DOES_NOT_FIT)

INVALID = Decision(
    "gang/ml/bad", "nodes", 0, Unit.NODES, Reason.GANG_INVALID, (), detail="gang ml/bad: minMember is 0; correct it"
)


NEED = Decision(
    "node/n1", "memory to free", 5, Unit.BYTES, Reason.EVICTION_PENDING, (Term("used", 5),), "BEMemoryEvict"
)
VICTIM = Decision("pod/ml/train-1", "evict", 7, Unit.BYTES, Reason.BE_MEMORY_EVICT, (Term("in use", 7),))


class FakeAgent(agent_pb2_grpc.AgentDiagnosticsServicer):
    """An agent on node n1 with one offer and one limit; the kernel holds what `kernel_value` says."""

    kernel_value = "130000"

    def GetNode(self, request: Any, context: Any) -> Any:
        return agent_pb2.NodeStatus(
            node="n1",
            agent_version="9.9",
            observed_at_seconds=1.0,
            capacity=link_pb2.Usage(cpu_millis=2000, memory_bytes=4 * 2**30),
            usage=link_pb2.Usage(cpu_millis=900, memory_bytes=2**30),
            ready_reason="ConfigurationInvalid",
            ready_message="ConfigMap a/b: many is no number; the last good settings stay in force",
            link_connected=True,
            ticks=12,
            brake_mechanism="counters",
            wakes={"cpu_use": 3, "memory_mark": 0},
        )

    def ExplainEvictions(self, request: Any, context: Any) -> Any:
        pending = agent_pb2.PendingEviction(pod_uid="u1", since_seconds=1.0, until_seconds=2.0)
        return agent_pb2.ExplainEvictionsResponse(
            needs=[decision_to_wire(NEED)], pending=[pending], past=[decision_to_wire(VICTIM)]
        )

    def ExplainReclaimable(self, request: Any, context: Any) -> Any:
        return agent_pb2.ExplainReclaimableResponse(decisions=[decision_to_wire(BATCH_CPU)])

    def ExplainLimit(self, request: Any, context: Any) -> Any:
        limit = agent_pb2.Limit(
            decision=decision_to_wire(QUOTA),
            path="/sys/fs/cgroup/cpu/kubepods/besteffort/cpu.cfs_quota_us",
            kernel_value=self.kernel_value,
            matches=self.kernel_value == "130000",
            owner="cpuSuppress",
        )
        return agent_pb2.ExplainLimitResponse(limits=[limit] if request.knob in ("", QUOTA.name) else [])


class FakeScheduler(scheduler_pb2_grpc.SchedulerDiagnosticsServicer):
    """A scheduler where gang ml/train waits and everything else is unknown."""

    def ExplainPod(self, request: Any, context: Any) -> Any:
        if request.name == "bad-0":
            return scheduler_pb2.ExplainPodResponse(message=INVALID.detail, decision=decision_to_wire(INVALID))
        if (request.namespace, request.name) != ("ml", "train-0"):
            context.abort(grpc.StatusCode.NOT_FOUND, f"pod {request.namespace}/{request.name} is not known")
        return scheduler_pb2.ExplainPodResponse(
            gang="ml/train", queue_position=2, message="0/1 nodes fit", decision=decision_to_wire(WAITING)
        )

    def ExplainQueue(self, request: Any, context: Any) -> Any:
        if request.name != "train":
            context.abort(grpc.StatusCode.NOT_FOUND, f"queue {request.name} is not known")
        return queue_codec.queue_to_wire(QueueAccount(QueueStanding(Queue("train", weight=7)), waiting=1))

    def ExplainJob(self, request: Any, context: Any) -> Any:
        job = QueuedJob("gang/ml/train", "train", 2, "quota", "QuotaExhausted")
        account = JobAccount(request.namespace, request.name, job, decision=WAITING, ahead_count=1)
        return queue_codec.job_to_wire(account)


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent()


@pytest.fixture
def address(agent: FakeAgent) -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(2))
    agent_pb2_grpc.add_AgentDiagnosticsServicer_to_server(agent, server)
    scheduler_pb2_grpc.add_SchedulerDiagnosticsServicer_to_server(FakeScheduler(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None)


def test_node_shows_usage_and_each_offer_with_its_terms(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every term with its sign, and the sum."""
    assert main(["explain", "node", "--agent", address]) == 0
    out = capsys.readouterr().out
    for expected in ("node n1", "12 ticks", "link to the scheduler up", "+ capacity", "- margin", "= value", "770m"):
        assert expected in out


def test_the_heading_is_short(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The condition's code; what it is about has a line of its own."""
    assert main(["explain", "node", "--agent", address]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("node n1  ConfigurationInvalid  observed ")
    assert second == "  ConfigMap a/b: many is no number; the last good settings stay in force"


def test_what_woke_the_agent_is_told(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Only causes that did."""
    assert main(["explain", "node", "--agent", address]) == 0
    assert "  early ticks: 3 by cpu_use\n" in capsys.readouterr().out


def test_evictions_in_order(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is missing, which pods terminate, which were evicted and why."""
    assert main(["explain", "evictions", "--agent", address]) == 0
    out = capsys.readouterr().out
    places = [out.index(text) for text in ("memory to free", "EvictionPending", "pod u1 is terminating", "ml/train-1")]
    assert places == sorted(places) and "BEMemoryEvict: the node uses too much memory" in out


def test_node_of_another_name_is_refused(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An agent knows its own node alone; the line says which that is."""
    assert main(["explain", "node", "n2", "--agent", address]) == 2
    assert f"node n2: the agent at {address} runs on n1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("held", "expected"), [("130000", "the kernel holds 130000: as decided"), ("-1", "NOT as decided (130000)")]
)
def test_limit_compares_with_the_kernel(
    agent: FakeAgent, address: str, capsys: pytest.CaptureFixture[str], held: str, expected: str
) -> None:
    """The terms, the path of the file, what it holds now, and whether that is what was decided."""
    agent.kernel_value = held
    assert main(["explain", "limit", "--agent", address]) == 0
    out = capsys.readouterr().out
    assert expected in out
    assert "- online" in out and "besteffort/cpu.cfs_quota_us, of cpuSuppress\n" in out


def test_a_limit_the_agent_does_not_keep_is_a_failure(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt control file is told, not answered with nothing."""
    assert main(["explain", "limit", "cpu.sharse", "--agent", address]) == 2
    assert "keeps no such limit" in capsys.readouterr().err


@pytest.mark.parametrize("name", [["ml/train-0"], ["train-0", "-n", "ml"]])
def test_pod_says_what_it_waits_for(address: str, capsys: pytest.CaptureFixture[str], name: list[str]) -> None:
    """Its gang, its place in the queue and the scheduler's words; the namespace in either form."""
    assert main(["explain", "pod", *name, "--scheduler", address]) == 0
    out = capsys.readouterr().out
    for expected in ("pod ml/train-0  waiting", "gang ml/train", "number 2", "0/1 nodes fit", "GangDoesNotFit"):
        assert expected in out


def test_a_queue(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By its name alone: queues have no namespace."""
    assert main(["explain", "queue", "train", "--scheduler", address]) == 0
    assert capsys.readouterr().out.startswith("queue train  Open, weight 7")
    assert main(["explain", "queue", "nobody", "--scheduler", address]) == 2
    assert "queue nobody is not known" in capsys.readouterr().err


@pytest.mark.parametrize("name", [["ml/train"], ["train", "-n", "ml"]])
def test_a_job(address: str, capsys: pytest.CaptureFixture[str], name: list[str]) -> None:
    """Its place, its stage, and the decision with its time."""
    assert main(["explain", "job", *name, "--scheduler", address]) == 0
    out = capsys.readouterr().out
    for expected in ("number 2 in the order, behind 1 job", "waits in stage quota: QuotaExhausted", "decided at 2027"):
        assert expected in out


def test_what_the_scheduler_says_is_printed_once(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The pod's message and the record's detail are the same text."""
    assert main(["explain", "pod", "ml/bad-0", "--scheduler", address]) == 0
    assert capsys.readouterr().out.count("gang ml/bad: minMember is 0") == 1


def test_a_pod_nobody_knows_is_a_failure(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the scheduler's own words."""
    assert main(["explain", "pod", "nobody", "--scheduler", address]) == 2
    assert "pod default/nobody is not known" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "path", "expected"),
    [
        (["node", "--agent"], ("reclaimable", 0, "value"), 770),
        (["limit", "--agent"], (0, "decision", "terms", 1, "name"), "online"),
        (["evictions", "--agent"], ("past", 0, "value"), 7),
        (["pod", "ml/train-0", "--scheduler"], ("decision", "reason"), "GangDoesNotFit"),
        (["pod", "ml/train-0", "--scheduler"], ("decision", "at_seconds"), AT),
        (["queue", "train", "--scheduler"], ("queue", "weight"), 7),
        (["job", "ml/train", "--scheduler"], ("job", "stage"), "quota"),
    ],
)
def test_json_is_the_same_record(
    address: str, capsys: pytest.CaptureFixture[str], arguments: list[str], path: tuple[Any, ...], expected: object
) -> None:
    """As JSON: valid JSON with the decision's own fields."""
    assert main(["explain", *arguments, address, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for step in path:
        found = found[step]
    assert found == expected


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["node"], "also: n2 (explain node n2)"),
        (["node", "n1"], ""),
        (["limit"], "also: n2 (--node n2)"),
        (["limit", "--node", "n1"], ""),
        (["evictions"], "also: n2 (--node n2)"),
    ],
)
def test_of_several_nodes_the_others_are_named(
    arguments: list[str], told: str, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nobody said which one, the first is shown."""
    nodes = (NodeEndpoints("n1", agent_grpc=address), NodeEndpoints("n2", agent_grpc=address))
    with RunDirectory(tmp_path / "run") as run:
        kubeconfig = str(tmp_path / "none")
        run.publish(Endpoints(id="a", directory=str(run.path), kubeconfig=kubeconfig, node="n1", nodes=nodes))
        assert main(["explain", *arguments, "--dir", str(run.path)]) == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last == told if told else "also" not in last
    assert main(["explain", "limit", "--agent", address, "--dir", str(tmp_path)]) == 0
    assert "also" not in capsys.readouterr().out


def test_what_commands_a_terminal_is_shown() -> None:
    """The message of a Node's condition is the words of whoever has the agent's token."""
    assert visible("quota\t500m\n\x1b[2J\x9b2J\rµs ≥ 1") == "quota\t500m\n\\u001b[2J\\u009b2J\\rµs ≥ 1"
