"""The report to the scheduler and when it is due, and the condition of the Node."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent.core.lend.report import condition, degraded, due_for_link, report
from model.decision import Decision, Term, Unit
from model.reason import Reason
from model.report import BestEffortPodUsage, NodeReport, Pressure, Usage
from model.resources import BATCH_CPU, BATCH_MEMORY


def lent(cpu: int, memory: int = 0, reason: Reason = Reason.COMPUTED) -> tuple[Decision, ...]:
    return (
        Decision("node/n", BATCH_CPU, cpu, Unit.MILLI_CPU, reason, (Term("x", cpu),)),
        Decision("node/n", BATCH_MEMORY, memory, Unit.BYTES, reason, (Term("x", memory),)),
    )


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
    "lending ended": (facts(0), msgspec.structs.replace(facts(1), reclaimable=lent(1000, 0, Reason.PODS_STALE)), True),
    "a pod came": (facts(0), facts(1, pods=(BestEffortPodUsage("ns", "p", "u", Usage(), 0.0),)), True),
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
    pressure = Pressure(1.0, 2.0, 3.0)
    found = report(usage, lent(700), (web, job, new), pressure, "why")
    assert found is not None and (found.pressure, found.degraded_reason) == (pressure, "why")
    assert (found.online, found.system, found.observed_at_seconds) == (usage.online.last, usage.system.last, 100.0)
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
        ("/cpu: Invalid argument", "", ["", "/cpu: Invalid argument"], ("True", Reason.LIMIT_NOT_APPLIED)),
        ("PodsStale", "NodeSLO n: x", [], ("False", "PodsStale")),
        ("CeilingNotPossible", "", [""], ("False", "CeilingNotPossible")),
        ("LendingDisabled", "", [], ("False", "LendingDisabled")),
        ("SettingsUnread", "", [], ("False", "SettingsUnread")),
    ],
)
def test_condition(why: str, problem: str, errors: list[str], expected: tuple[str, str]) -> None:
    """Only what stops lending makes the node's ColocationReady False."""
    status, reason, message = condition(why, problem, errors)
    assert (status, reason) == expected and message


def test_a_condition_names_what_is_asked_in_vain() -> None:
    """Whatever else it says; few names are enough, and the page has the rest."""
    status, reason, message = condition("", "", [], unmet=("a", "b"))
    assert (status, reason) == ("True", "LendingActive")
    assert message.endswith("lent to batch pods; not acted on, or in part (docs/koordinator.md): a, b")
    assert condition("x: wrong", "x: wrong", [], unmet=list("abcdefg"))[2].endswith("a, b, c, d, e and 2 more")


@pytest.mark.parametrize(
    ("why", "expected"),
    [
        ("LendingDisabled", "ConfigurationInvalid"),
        ("SettingsUnread", "SettingsUnread"),
        ("SettingsDeleted", "SettingsDeleted"),
    ],
)
def test_a_document_that_withholds_lending_is_named(why: str, expected: str) -> None:
    """Broken since the start, not to be read, or deleted: the message says which to mend."""
    assert condition(why, "ConfigMap a/b: x", []) == ("False", expected, "ConfigMap a/b: x")
