"""What is told when: shrinking at once, growth with a rest, heartbeats else."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.publish import (
    Published,
    condition,
    degraded,
    due_for_link,
    due_for_node,
    offered,
    report,
    settled,
)
from model.decision import Decision, Term, Unit
from model.pod import PodPhase
from model.reason import Reason
from model.report import NodeReport, Usage
from model.resources import BATCH_CPU, BATCH_MEMORY
from model.strategy import ColocationStrategy

STRATEGY = ColocationStrategy()


def lent(cpu: int, memory: int = 0, reason: Reason = Reason.COMPUTED) -> tuple[Decision, ...]:
    return (
        Decision("node/n", BATCH_CPU, cpu, Unit.MILLI_CPU, reason, (Term("x", cpu),)),
        Decision("node/n", BATCH_MEMORY, memory, Unit.BYTES, reason, (Term("x", memory),)),
    )


def amounts(decisions: tuple[Decision, ...]) -> dict[str, int]:
    return {decision.name: decision.value for decision in decisions}


def test_admitted_requests_are_never_undercut(build: Any, terms: Any) -> None:
    """A kubelet that restarts must be able to admit its running pods again; finished ones do not count."""
    pods = (
        build.batch("a", batch_cpu=400),
        build.batch("b", batch_cpu=300),
        build.batch("c", batch_cpu=900, phase=PodPhase.FAILED),
    )
    found = offered(lent(500, 9), pods, (), {}, may_grow=True)
    assert amounts(found) == {BATCH_CPU: 700, BATCH_MEMORY: 9}
    assert terms(found[0]) == {"reclaimable": 500, "already requested by running pods": 200}
    assert amounts(offered(lent(800, 9), pods, (), {}, may_grow=True))[BATCH_CPU] == 800


def test_a_pod_that_is_merely_bound_makes_no_room_for_itself(build: Any) -> None:
    """Anybody can create a pod with spec.nodeName; it counts once it runs or the kubelet gave it a cgroup."""
    pod = build.batch("huge", batch_cpu=64_000, phase=PodPhase.PENDING)
    assert amounts(offered(lent(500), (pod,), (), {}, may_grow=True))[BATCH_CPU] == 500
    assert amounts(offered(lent(500), (pod,), {pod.uid}, {}, may_grow=True))[BATCH_CPU] == 64_000


def test_a_new_agent_does_not_grow_what_stands(build: Any, terms: Any) -> None:
    """Shrinking is at once; growth over its predecessor's number waits for a full live window."""
    pods = (build.batch("a", batch_cpu=100),)
    found = offered(lent(500, 9), pods, (), {BATCH_CPU: 300, BATCH_MEMORY: 20}, may_grow=False)
    assert amounts(found) == {BATCH_CPU: 300, BATCH_MEMORY: 9}
    assert terms(found[0])["held: a new agent raises nothing yet"] == -200
    assert amounts(offered(lent(500, 9), pods, (), {}, may_grow=False)) == {BATCH_CPU: 100, BATCH_MEMORY: 0}


NODE_CASES: dict[str, tuple[int | None, int, float, bool]] = {
    # published before, now, seconds since, due
    "never published": (None, 0, 0, True),
    "unchanged": (1000, 1000, 299, False),
    "small shrink waits": (1000, 901, 1, False),
    "shrink over 10 % is told at once": (1000, 899, 0.1, True),
    "growth rests": (1000, 1200, 5, False),
    "growth after the rest": (1000, 1200, 10, True),
    "small growth waits": (1000, 1050, 60, False),
    "small change after five minutes": (1000, 1001, 300, True),
    "no change after five minutes": (1000, 1000, 300, False),
    "from zero": (0, 1, 10, True),
}


@pytest.mark.parametrize(("before", "now", "since", "expected"), NODE_CASES.values(), ids=NODE_CASES.keys())
def test_due_for_node(before: int | None, now: int, since: float, expected: bool) -> None:
    """resourceDiffThreshold 10 %, updateTimeThreshold 300 s."""
    last = None if before is None else Published(lent(before)[:1], 1000.0)
    standing = {} if before is None else {BATCH_CPU: before}
    assert due_for_node(last, {BATCH_CPU: now}, standing, STRATEGY, 1000.0 + since) is expected


@pytest.mark.parametrize(
    ("standing", "since", "expected"), [({}, 6, True), ({BATCH_CPU: 9000}, 6, True), ({BATCH_CPU: 9000}, 4, False)]
)
def test_what_others_wrote_is_put_right(standing: dict[str, int], since: float, expected: bool) -> None:
    """A re-created Node and a foreign amount, once our own patch had time to come back."""
    last = Published(lent(1000)[:1], 1000.0)
    assert due_for_node(last, {BATCH_CPU: 1000}, standing, STRATEGY, 1000.0 + since) is expected


def test_a_young_blind_agent_keeps_what_is_published() -> None:
    """A restart does not withdraw what is lent; staying blind does."""
    blind = lent(0, 0, Reason.NODE_METRICS_MISSING)
    assert not settled(blind, 1.0)
    assert settled(blind, 16.0)
    assert settled(lent(0, 0, Reason.LENDING_DISABLED), 0.0)


def facts(at: float, cpu: int = 1000, reason: str = "", **more: Any) -> NodeReport:
    return NodeReport(at, Usage(), Usage(), Usage(), Usage(), lent(cpu), degraded_reason=reason, **more)


LINK_CASES: dict[str, tuple[NodeReport | None, NodeReport, bool]] = {
    "first": (None, facts(0), True),
    "unchanged within ten seconds": (facts(0), facts(9), False),
    "heartbeat": (facts(0), facts(10), True),
    "change within a second waits": (facts(0), facts(0.5, cpu=1), False),
    "change after a second": (facts(0), facts(1, cpu=900), True),
    "noise is no change": (facts(0), facts(1, cpu=990), False),
    "degraded is": (facts(0), facts(1, reason="PodsStale"), True),
    "clock went back": (facts(100), facts(50), True),
}


@pytest.mark.parametrize(("last", "now", "expected"), LINK_CASES.values(), ids=LINK_CASES.keys())
def test_due_for_link(last: NodeReport | None, now: NodeReport, expected: bool) -> None:
    """On change at most once a second, else every ten."""
    assert due_for_link(last, now) is expected


def test_report_names_only_best_effort_pods(build: Any) -> None:
    """With usage and throttling where they were measured."""
    web, job, new = build.pod(), build.batch("job"), build.batch("new")
    measured = {web.uid: build.averages(400), job.uid: build.averages(300, 7)}
    usage = build.usage(measured, throttled_ratio={job.uid: 0.5})
    found = report(usage, lent(700), (web, job, new), None, "")
    assert found is not None
    assert [(pod.name, pod.usage, pod.throttled_ratio) for pod in found.pods] == [("job", Usage(300, 7), 0.5)]
    assert report(None, lent(0), (), None, "") is None


def test_degraded() -> None:
    """Withheld resources win over a configuration problem."""
    assert degraded(lent(5), "") == ""
    assert degraded(lent(5), "NodeSLO n: …") == "NodeSLO n: …"
    assert degraded(lent(0, 0, Reason.PODS_UNKNOWN), "NodeSLO n: …") == "PodsUnknown"


@pytest.mark.parametrize(
    ("why", "problem", "errors", "expected"),
    [
        ("", "", [""], ("True", "LendingActive")),
        ("NodeSLO n: x", "NodeSLO n: x", [], ("True", "ConfigurationInvalid")),
        ("/cpu: Invalid argument", "", ["", "/cpu: Invalid argument"], ("True", "LimitNotApplied")),
        ("PodsStale", "NodeSLO n: x", [], ("False", "PodsStale")),
    ],
)
def test_condition(why: str, problem: str, errors: list[str], expected: tuple[str, str]) -> None:
    """Only what stops lending makes the node's ColocationReady False."""
    status, reason, message = condition(why, problem, errors)
    assert (status, reason) == expected and message
