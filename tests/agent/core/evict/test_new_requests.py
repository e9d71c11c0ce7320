"""New requests: what a victim hears first, what it hears at its deadline, and who is hurried."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent.core.evict.eviction_request import (
    USED_CPU,
    USED_MEMORY,
    EvictionRecord,
    EvictionRequest,
    EvictionRequestKind,
    PendingVictim,
)
from agent.core.evict.needs import EvictionNeed
from agent.core.evict.new_requests import after_kills, due_by_now, ordered_out
from agent.core.evict.pending import EvictionMemory
from agent.core.evict.request_queue import LONGEST_SECONDS
from agent.core.evict.tick_facts import ending_seconds
from agent.core.evict.victims import EvictionVictim
from agent.core.limit.watch import Kill, PreparedVictim
from model.decision import Term
from model.pod.colocation import EvictionTerms, StandingNotice
from model.qos import QoSClass
from model.reason import Reason
from model.strategy import EvictionStrategy
from tests.agent.core.evict.evicting import GIB, MIB, NOW, Holding, batch, known, seen

HURRY = "memory runs out"


def victim(holding: Holding, rule: Reason = Reason.BE_MEMORY_EVICT, resource: str = USED_MEMORY) -> EvictionVictim:
    return EvictionVictim(
        holding.pod, EvictionNeed(rule, resource, "to free", (Term("missing", 512 * MIB),)), 1, "cheap"
    )


def told(holding: Holding, urgent: str = "", **more: Any) -> tuple[EvictionMemory, EvictionRequest]:
    return ordered_out(EvictionMemory(begun=True), victim(holding, **more), known(holding), urgent)


def notifying(seconds: float, **more: Any) -> Holding:
    return batch("a", eviction=EvictionTerms(notice_seconds=seconds), grace_seconds=30.0, **more)


def test_a_pod_without_a_notice_is_evicted() -> None:
    """With its own grace; the record says what it frees, why, and who it is."""
    memory, request = told(notifying(0.0))
    assert (request.kind, request.name, request.grace_seconds, request.deadline_seconds) == (
        EvictionRequestKind.EVICT,
        "a",
        None,
        None,
    )
    assert (request.decision.value, request.decision.reason) == (GIB, Reason.BE_MEMORY_EVICT)
    assert request.decision.subject == "pod/d/a"
    assert request.decision.detail == f"512Mi of {USED_MEMORY} missing; priority 5000; cheap"
    found = memory.record.pending["a"]
    assert found.until_seconds == NOW + LONGEST_SECONDS + ending_seconds(30.0, GIB)
    assert (found.notified_until_seconds, found.hurried) == (None, False)
    assert (memory.record.memory_at_seconds, memory.record.cpu_at_seconds) == (NOW, None)


def test_a_notice_has_a_deadline() -> None:
    """As long as the pod asks for, up to the longest; its end is believed in for so much longer."""
    memory, request = told(notifying(40.0))
    assert (request.kind, request.deadline_seconds) == (EvictionRequestKind.NOTIFY, NOW + 40)
    found = memory.record.pending["a"]
    assert found.notified_until_seconds == NOW + 40
    assert found.until_seconds == NOW + 40 + LONGEST_SECONDS + ending_seconds(30.0, GIB)
    longest = EvictionStrategy().longest_notice_seconds
    assert told(notifying(1e9))[1].deadline_seconds == NOW + longest


SHOWN = StandingNotice(NOW, NOW + 40, "BEMemoryEvict")


@pytest.mark.parametrize(
    ("standing", "shown"),
    [
        (None, SHOWN),
        (StandingNotice(NOW - 5, NOW + 30, "PreemptionByScheduler"), None),
        (StandingNotice(NOW - 5, NOW + 90, "PreemptionByScheduler"), SHOWN),
        (StandingNotice(NOW - 5, NOW + 30, "BEMemoryEvict"), SHOWN),
    ],
    ids=["none", "the scheduler's, sooner", "the scheduler's, later", "our own of before"],
)
def test_what_the_pod_shows(standing: StandingNotice | None, shown: StandingNotice | None) -> None:
    """Kept for as long as the pod is told, so that this very text can be taken away; another's that is sooner stays."""
    holding = notifying(40.0)
    terms = msgspec.structs.replace(holding.pod.colocation.eviction, standing=standing)
    colocation = msgspec.structs.replace(holding.pod.colocation, eviction=terms)
    pod = msgspec.structs.replace(holding.pod, colocation=colocation)
    memory, request = told(msgspec.structs.replace(holding, pod=pod))
    assert request.notice == shown == memory.record.pending["a"].notice


def test_who_is_hurried_gets_no_notice() -> None:
    """And one second; only where memory is what is missing."""
    memory, request = told(notifying(40.0), HURRY)
    assert (request.kind, request.grace_seconds, request.deadline_seconds) == (EvictionRequestKind.EVICT, 1, None)
    assert request.decision.detail.endswith(HURRY)
    assert memory.record.pending["a"].hurried
    of_cpu = told(notifying(40.0), HURRY, rule=Reason.BE_CPU_EVICT, resource=USED_CPU)
    assert of_cpu[1].kind is EvictionRequestKind.NOTIFY and not of_cpu[0].record.pending["a"].hurried
    assert (of_cpu[0].record.memory_at_seconds, of_cpu[0].record.cpu_at_seconds) == (None, NOW)


def test_a_grace_beyond_the_longest_is_shortened() -> None:
    """The request says so."""
    long = batch("a", grace_seconds=9000.0)
    assert told(long)[1].grace_seconds == int(EvictionStrategy().longest_grace_seconds)


def pending(**more: Any) -> PendingVictim:
    return PendingVictim(
        {USED_MEMORY: GIB}, NOW - 50, NOW + 50, resource=USED_MEMORY, reason=Reason.BE_MEMORY_EVICT, **more
    )


def due(found: PendingVictim | None, urgent: str = "", **strategy: Any) -> tuple[EvictionMemory, list[EvictionRequest]]:
    holding = batch("a", grace_seconds=30.0)
    record = EvictionRecord(None, None, {} if found is None else {"a": found})
    memory, requests = due_by_now(
        EvictionMemory(record, begun=True), (holding.pod,), EvictionStrategy(**strategy), seen(holding), urgent
    )
    return memory, list(requests)


def test_a_notice_that_is_over_becomes_an_eviction() -> None:
    """At its deadline, not before; from then on it counts as asked to go now."""
    assert due(pending(notified_until_seconds=NOW + 1))[1] == []
    memory, (request,) = due(pending(notified_until_seconds=NOW))
    assert (request.kind, request.decision.detail, request.grace_seconds) == (
        EvictionRequestKind.EVICT,
        "its notice is over",
        None,
    )
    found = memory.record.pending["a"]
    assert (found.notified_until_seconds, found.since_seconds, found.accepted) == (None, NOW, False)
    assert found.until_seconds == NOW + LONGEST_SECONDS + ending_seconds(30.0, GIB)


def test_who_was_told_is_let_go_where_evictions_are_off() -> None:
    """Who was asked already stays asked."""
    memory, (spared,) = due(pending(notified_until_seconds=NOW - 1, notice=SHOWN), enable=False)
    assert (memory.record.pending, spared.kind, spared.notice) == ({}, EvictionRequestKind.SPARE, SHOWN)
    asked, none = due(pending(), enable=False)
    assert (set(asked.record.pending), none) == ({"a"}, [])


def test_who_was_told_stays_where_its_end_is_not_needed_any_more() -> None:
    """Unless memory is short by now, or it was asked to go already."""
    holding, found = batch("a", grace_seconds=30.0), pending(notified_until_seconds=NOW, notice=SHOWN)

    def asked(victim: PendingVictim, urgent: str = "") -> tuple[EvictionMemory, tuple[EvictionRequest, ...]]:
        memory = EvictionMemory(EvictionRecord(None, None, {"a": victim}), begun=True)
        never = lambda victim: False  # noqa: E731
        return due_by_now(memory, (holding.pod,), EvictionStrategy(), seen(holding), urgent, never)

    memory, (spared,) = asked(found)
    assert (spared.kind, spared.notice, spared.decision.detail) == (
        EvictionRequestKind.SPARE, SHOWN, "its end is not needed any more",
    )  # fmt: skip
    assert memory.record.pending == {}
    assert [each.kind for each in asked(found, HURRY)[1]] == [EvictionRequestKind.EVICT]
    assert asked(pending())[1] == ()


def test_memory_hurries_who_is_on_the_way() -> None:
    """Once."""
    memory, (request,) = due(pending(accepted=True), HURRY)
    assert (request.grace_seconds, request.decision.detail) == (1, HURRY)
    found = memory.record.pending["a"]
    assert (found.hurried, found.accepted) == (True, False)
    assert due(found, HURRY)[1] == []


@pytest.mark.parametrize(
    ("fields", "hurried"),
    [({"deleting": True}, True), ({}, False), ({"deleting": True, "qos_label": QoSClass.LS}, False)],
)
def test_pods_that_others_delete_are_hurried_too(fields: dict[str, Any], hurried: bool) -> None:
    """Those of best effort, where memory cannot wait."""
    holding = batch("a", **fields)
    memory = EvictionMemory(ending={"a": NOW - 5}, begun=True)
    after, requests = due_by_now(memory, (holding.pod,), EvictionStrategy(), seen(holding), HURRY)
    assert bool(requests) is hurried
    if hurried:
        assert (requests[0].grace_seconds, requests[0].decision.value) == (1, GIB)
        assert after.record.pending["a"].hurried
    assert due_by_now(memory, (holding.pod,), EvictionStrategy(), seen(holding), "")[1] == ()


def killed(processes: int = 3) -> Kill:
    return Kill(PreparedVictim("a", "d", "a", "/a", GIB), NOW, 5.0, 100 * MIB, processes)


def test_who_was_killed_is_evicted_too() -> None:
    """So that its containers do not start again here; one that hit nobody, or whose pod is gone, was gone."""
    holding = batch("a")
    memory, (request,) = after_kills(EvictionMemory(begun=True), [killed()], (holding.pod,), seen(holding))
    assert (request.kind, request.grace_seconds, request.decision.reason) == (
        EvictionRequestKind.EVICT,
        1,
        Reason.MEMORY_LAST_RESORT,
    )
    assert request.decision.detail == "100Mi were left, 3 processes killed"
    assert memory.record.pending["a"].hurried and memory.record.memory_at_seconds == NOW
    for kills, pods in (([killed(0)], (holding.pod,)), ([killed()], ())):
        assert after_kills(EvictionMemory(), kills, pods, seen(holding)) == (EvictionMemory(), ())
    assert len(after_kills(EvictionMemory(), [killed()], None, seen(holding))[1]) == 1
