"""Who is told of limits that are not in force: once as one begins, once as the last has ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from structlog.testing import capture_logs

from agent.core.evict.decide import Evictions
from agent.core.lend.unenforced import UnenforcedLimit
from agent.core.limit.decide import NodeLimits
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.observation import Knob
from agent.run.limit_events import LimitEvents
from model.decision import Decision, Term, Unit
from model.nodesettings import NodeSettings
from model.reason import Reason, words
from model.strategy import SuppressStrategy
from tests.agent.playing import Scenario

QUOTA = UnenforcedLimit("cpu.max", Reason.LIMIT_NOT_WRITTEN, "/cpu.max: Read-only file system")
STATE = UnenforcedLimit("state file", Reason.STATE_NOT_SAVED, "/state: No space left on device")


def test_each_unenforced_limit_is_told_once(build: Any) -> None:
    """Warnings with the code and the place; words that change meanwhile are no news; the end is told when all is well."""
    told: list[tuple[str, str, bool]] = []
    teller = LimitEvents(lambda reason, message, *, warning: told.append((reason, message, warning)))
    with capture_logs() as logs:
        for unenforced in ((), (QUOTA,), (QUOTA, STATE), (QUOTA, STATE), (STATE,), (), ()):
            teller.take(build.result(unenforced=unenforced))
    assert told == [
        ("LimitNotWritten", QUOTA.text, True),
        ("StateNotSaved", STATE.text, True),
        ("LimitsInForce", words(Reason.LIMITS_IN_FORCE), False),
    ]
    assert [line["log_level"] for line in logs] == ["error", "error", "info"]


def test_files_that_this_kernel_does_not_have_are_told_once(build: Any) -> None:
    """All together; one that is asked for later by itself."""
    told: list[tuple[str, str, bool]] = []
    teller = LimitEvents(lambda reason, message, *, warning: told.append((reason, message, warning)))
    for absent in ((), ("memory.low", "memory.min"), ("memory.low",), (), ("memory.high", "memory.min")):
        teller.take(build.result(limits=NodeLimits({}, None, absent_files=absent)))
    assert told == [
        ("KnobAbsent", f"{words(Reason.KNOB_ABSENT)}: memory.low, memory.min", True),
        ("KnobAbsent", f"{words(Reason.KNOB_ABSENT)}: memory.high", True),
    ]


def test_a_limit_that_begins_and_ends_is_told_with_its_terms(tmp_path: Path, build: Any) -> None:
    """On a node under load; what fails to be written is not told as a limit."""
    told: list[tuple[str, str, bool]] = []
    events = LimitEvents(lambda reason, message, *, warning: told.append((reason, message, warning)))
    surge = Scenario("v1_surge", tmp_path, build)
    for result in surge.play_all():
        events.take(result)
    off = NodeSettings(suppress=SuppressStrategy(enable=False))
    surge.cluster.now = msgspec.structs.replace(surge.cluster.now, settings=off)
    events.take(surge.linger(1, web=100, job=50))
    quota = [(reason, message) for reason, message, warning in told if "cpu.cfs_quota_us" in message and not warning]
    assert [reason for reason, _ in quota] == ["QuotaLowered", "SuppressionDisabled"]
    assert quota[0][1].startswith("cpu.cfs_quota_us of cgroup/kubepods/besteffort = ") and "[capacity " in quota[0][1]


def test_reclaim_is_told_once_in_ten_minutes(build: Any) -> None:
    """With the terms of the shortage; that nothing is reclaimed is not told."""
    told: list[tuple[float, str]] = []
    now = 0.0
    events = LimitEvents(lambda reason, message, *, warning: told.append((now, f"{reason}: {message}")))
    terms = (Term("used", 9), Term("mark", -4))
    for now, reason in (
        (0.0, Reason.NO_SWAP),
        (1.0, Reason.SHRINKING),
        (599.0, Reason.SHRINKING),
        (601.0, Reason.SHRINKING),
    ):
        decision = Decision("node/n", "memory to reclaim", 5, Unit.BYTES, reason, terms)
        events.take(build.result(now, evictions=Evictions(shrinking=(decision,))))
    assert [at for at, _ in told] == [1.0, 601.0]
    assert told[0][1].startswith("Shrinking: memory to reclaim of node/n = ") and "[used 9 - mark 4]" in told[0][1]


def test_cpus_that_are_not_given_are_told_once(build: Any) -> None:
    """One Event a pod, however many containers it has; again once it was well meanwhile."""
    told: list[tuple[str, str, bool]] = []
    teller = LimitEvents(lambda reason, message, *, warning: told.append((reason, message, warning)))
    text = "pod default/a: CPUs 7; CPU 7 is offline, or not in this machine"
    decision = Decision("cgroup/a", "cpuset.cpus", 0, Unit.CPUS, Reason.CPUS_NOT_GIVEN, (), detail=text)
    knobs = (Knob("/a/one", "cpuset", "cpuset.cpus"), Knob("/a/two", "cpuset", "cpuset.cpus"))
    bad = NodeLimits({knob: Limit(knob, "0", decision) for knob in knobs}, None)
    for limits in (bad, bad, NodeLimits({}, None), bad):
        teller.take(build.result(limits=limits))
    assert told == [("CpusNotGiven", f"{words(Reason.CPUS_NOT_GIVEN)}: {text}", True)] * 2
