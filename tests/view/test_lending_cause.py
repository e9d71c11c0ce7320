"""Why a node lends nothing: one code per cause, from what the cluster alone knows."""

from __future__ import annotations

import msgspec
import pytest

from model.lender import SILENT_SECONDS
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, ResourceVector
from view.lending_cause import LendingRecord, lending

NOW = 10_000.0
DEGRADE = 900.0
WELL = LendingRecord(
    "n1", NOW - 30, True, "LendingActive", NOW - 40, ResourceVector({BATCH_CPU: 2000, BATCH_MEMORY: 1 << 30})
)


def account(**changes: object) -> LendingRecord:
    return msgspec.structs.replace(WELL, **changes)


CASES = {
    "all is well": (account(), Reason.COMPUTED),
    "no agent ever": (account(heartbeat_seconds=None), Reason.AGENT_NOT_RUNNING),
    "the agent fell silent": (account(heartbeat_seconds=NOW - SILENT_SECONDS - 1), Reason.AGENT_NOT_RUNNING),
    "one missed heartbeat is no silence": (account(heartbeat_seconds=NOW - SILENT_SECONDS), Reason.COMPUTED),
    "it does not answer": (account(answers=False), Reason.AGENT_NOT_RUNNING),
    "it answers though nothing came through": (account(answers=True, heartbeat_seconds=None), Reason.COMPUTED),
    "no NodeMetric": (account(metric_seconds=None), Reason.NODE_METRICS_MISSING),
    "an old NodeMetric": (account(metric_seconds=NOW - DEGRADE - 1), Reason.NODE_METRICS_STALE),
    "the agent comes before its NodeMetric": (account(answers=False, metric_seconds=None), Reason.AGENT_NOT_RUNNING),
    "settings deleted": (account(ready=False, reason="SettingsDeleted"), Reason.SETTINGS_DELETED),
    "switched off": (account(ready=False, reason="LendingDisabled"), Reason.LENDING_DISABLED),
    "paused for the fleet": (account(ready=False, reason="FleetPaused"), Reason.FLEET_PAUSED),
    "turned to observing": (account(ready=False, reason="Observing"), Reason.OBSERVING),
    "turned to observing long ago": (
        account(ready=False, reason="Observing", heartbeat_seconds=NOW - 9000, metric_seconds=NOW - 9000),
        Reason.OBSERVING,
    ),
    "observing, and asked in vain": (account(ready=False, reason="Observing", answers=False), Reason.AGENT_NOT_RUNNING),
    "the agent's measurement stopped": (account(ready=False, reason="PodsStale"), Reason.PODS_STALE),
    "a cause of another release, yet it lends": (account(ready=False, reason="FromTheFuture"), Reason.COMPUTED),
    "nothing is idle": (account(allocatable=ResourceVector({BATCH_CPU: 0, BATCH_MEMORY: 0})), Reason.NOTHING_IDLE),
    "nothing was ever lent": (account(allocatable=ResourceVector()), Reason.NOTHING_IDLE),
    "memory alone is no room": (account(allocatable=ResourceVector({BATCH_MEMORY: 1})), Reason.NOTHING_IDLE),
    "CPU alone is no room": (account(allocatable=ResourceVector({BATCH_CPU: 1})), Reason.NOTHING_IDLE),
}


@pytest.mark.parametrize(("told", "expected"), CASES.values(), ids=CASES.keys())
def test_the_nearest_cause(told: LendingRecord, expected: Reason) -> None:
    assert lending(told, NOW, DEGRADE).reason is expected


def test_the_line_has_code_words_and_ages() -> None:
    found = lending(account(heartbeat_seconds=NOW - 200), NOW, DEGRADE)
    assert found.text == (
        "node n1 lends nothing that can be relied on (AgentNotRunning: the node's agent is not running, or cannot be "
        "reached: look for its pod and its log; agent heard 200 s ago, NodeMetric 40 s ago)"
    )


HEADLINES = {
    "both": (account(), "n1 lends batch resources (Computed: "),
    "memory alone": (
        account(allocatable=ResourceVector({BATCH_CPU: 0, BATCH_MEMORY: 1})),
        "n1 lends memory but no CPU (NothingIdle: no CPU is idle on the node beyond its margin; ",
    ),
    "CPU alone": (
        account(allocatable=ResourceVector({BATCH_CPU: 1})),
        "n1 lends CPU but no memory (NothingIdle: no memory is idle on the node beyond its margin; ",
    ),
    "more than it has": (
        account(doubt="its offer of 9 x counts as 0"),
        "n1 lends batch resources all the same (OfferNotBelieved: the node offers more than it has: such an amount counts "
        "as 0 for the scheduler; its offer of 9 x counts as 0; agent heard",
    ),
    "neither": (account(allocatable=ResourceVector()), "n1 lends nothing (NothingIdle: nothing is idle"),
    "offered before the first NodeMetric": (
        account(metric_seconds=None),
        "n1 lends batch resources all the same (NodeMetricsMissing: no usage of the node is known yet; ",
    ),
    "no NodeMetric and no offer": (
        account(metric_seconds=None, allocatable=ResourceVector()),
        "n1 lends nothing (NodeMetricsMissing: ",
    ),
    "withheld, though running pods hold some": (
        account(ready=False, reason="LendingDisabled"),
        "n1 lends nothing (LendingDisabled: ",
    ),
}


@pytest.mark.parametrize(("told", "expected"), HEADLINES.values(), ids=HEADLINES.keys())
def test_the_headline_says_what_is_offered(told: LendingRecord, expected: str) -> None:
    assert lending(told, NOW, DEGRADE).text.startswith(f"node {expected}")


def test_what_is_not_believed_comes_first() -> None:
    """Whatever else is wrong: nobody else tells of it, and it may be an attack."""
    found = lending(account(doubt="too much", answers=False), NOW, 900.0)
    assert found.reason is Reason.OFFER_NOT_BELIEVED
