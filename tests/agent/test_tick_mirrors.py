"""Sublet's own programs as static pods of the node: pods that run, ask for nothing and have no cgroup below kubepods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from agent.core.observe.node_metric import reported_metric
from agent.core.observe.usage import statistics
from agent.ports import TickResult
from agent.settings import AgentSettings
from kube import objects
from kube.dialects.koordinator import nodemetric
from kube.dialects.upstream import core_objects
from local.node.mirror_pods import mirror_of
from local.staticprograms import ProgramRun, StaticProgram
from model.decision import Decision
from model.pod.pod import Pod
from model.qos import QoSClass
from model.strategy import EvictionStrategy
from tests.agent.playing import Scenario


def mirror(program: str, requests: dict[str, str] | None = None) -> Pod:
    """As the API server lists it a moment after the node made it."""
    body = mirror_of(
        StaticProgram(program, "n", f"/{program}.log", ProgramRun(1, 0.0), host="127.0.0.1", port=1), "node-uid"
    )
    body["metadata"] |= {"uid": f"uid-{program}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    body["spec"] |= {"priority": 2000001000, "priorityClassName": "system-node-critical"}
    if requests:
        body["spec"]["containers"][0]["resources"] = {"requests": requests}
    running = {"name": program, "containerID": "process://x", "ready": True, "state": {"running": {}}}
    body["status"] = {"phase": "Running", "qosClass": "BestEffort", "containerStatuses": [running]}
    return core_objects.pod(msgspec.convert(body, objects.Pod))


PROGRAMS = tuple(mirror(program) for program in ("agent", "scheduler", "admission"))


def played(folder: Path, build: Any, name: str, *more: Pod) -> list[TickResult]:
    # Best effort is over its share, so that somebody is to go.
    settings = AgentSettings(eviction=EvictionStrategy(memory_threshold_pct=2, memory_lower_pct=0))
    node = Scenario(name, folder, build, settings)
    facts = node.cluster.now
    node.cluster.now = msgspec.structs.replace(facts, pods=(*facts.pods, *more))
    return node.play_all()


def amounts(decision: Decision) -> tuple[Any, ...]:
    """A term of nothing, which says how many pods are not measured, is no amount."""
    terms = {term.name: term.value for term in decision.terms if term.value}
    return decision.name, decision.value, decision.reason, terms


def told(result: TickResult) -> list[Any]:
    """All that the tick decided, did and publishes."""
    metric = reported_metric(
        result.usage, statistics(result.used, (300.0,)), result.facts.pods or (), (), result.prediction
    )
    published = nodemetric.status(metric, "now") if metric else None
    wrote = [outcome.write for outcome in result.outcomes]
    return [
        [amounts(decision) for decision in result.decisions],
        [(write.knob, write.value) for write in wrote],
        [(order.uid, order.decision.value) for order in result.evictions.requests],
        (result.ready, result.degraded_reason, published),
    ]


def test_nothing_is_lent_throttled_or_evicted_for_them(tmp_path: Path, build: Any) -> None:
    """Every number of every tick is that of a node without them, and so is its NodeMetric."""
    without = played(tmp_path / "without", build, "v1_surge")
    with_them = played(tmp_path / "with", build, "v1_surge", *PROGRAMS)
    assert any(result.evictions.requests for result in without) and any(result.outcomes for result in without)
    for number, (one, other) in enumerate(zip(without, with_them, strict=True)):
        assert told(one) == told(other), number


def test_what_they_ask_for_would_count(tmp_path: Path, build: Any) -> None:
    """The test above looks where a request shows."""
    asking = mirror("agent", {"cpu": "500m", "memory": "1Gi"})
    without, with_it = (played(tmp_path / str(len(more)), build, "v1_surge", *more) for more in ((), (asking,)))
    assert [told(each) for each in without] != [told(each) for each in with_it]


def test_they_are_the_nodes_own() -> None:
    """Neither best effort, for all that they ask for nothing, nor anybody's victim."""
    assert {pod.colocation.qos for pod in PROGRAMS} == {QoSClass.SYSTEM}
    assert all(pod.cgroup_uid not in ("", pod.uid) for pod in PROGRAMS)
