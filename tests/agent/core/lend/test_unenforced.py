"""Limits that are not in force: which, why, for how long, and what is lent meanwhile."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent.core.lend.offer import offered
from agent.core.lend.reclaimable import ZoneLending
from agent.core.lend.report import condition, degraded
from agent.core.lend.unenforced import (
    EnforcementMemory,
    UnenforcedLimit,
    WriteFailure,
    explained,
    find_unenforced,
    within_requests,
)
from agent.core.limit.decide import NodeLimits
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import RootKnobs
from agent.core.observe.layout import CgroupDriver, Layout
from agent.core.observe.observation import Knob, KnobReading
from model.decision import Decision, Term, Unit
from model.reason import Reason, words
from model.resources import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY, ResourceVector

V2 = RootKnobs.of(Layout("/kubepods.slice", 2, CgroupDriver.SYSTEMD))
ROOT = V2.quota.cgroup
(WEIGHT,) = (fixed.knob for fixed in V2.fixed)
assert V2.memory_high is not None
HIGH = V2.memory_high
POD = Knob(f"{ROOT}/podx", "", "memory.max")
EROFS = "/cpu.max: Read-only file system"


def limits(**reasons: Reason) -> NodeLimits:
    """All limits of the root in force, but for `quota`, `weight`, `idle`, `cpuset`, `high` with other reasons."""
    knobs = {"quota": V2.quota, "weight": WEIGHT, "high": HIGH, "idle": V2.idle, "cpuset": V2.cpuset}
    usual = {"quota": Reason.QUOTA_LOWERED, "weight": Reason.WEIGHT_HELD, "high": Reason.MEMORY_ROOM}
    wanted = {**usual, **reasons}
    return NodeLimits({knobs[name]: limit(knobs[name], reason) for name, reason in wanted.items()}, None, root=ROOT)


def limit(knob: Knob, reason: Reason) -> Limit:
    detail = "/x: garbage" if reason is Reason.KNOB_UNREADABLE else ""
    decision = Decision(knob.subject, knob.file, 7, Unit.MICROSECONDS, reason, (Term("x", 7),), detail=detail)
    return Limit(knob, 7, decision)


def found(
    build: Any, told: NodeLimits, *failures: WriteFailure, wanted: bool = True, **seen: Any
) -> list[tuple[str, Reason]]:
    _, unenforced = find_unenforced(EnforcementMemory(), told, build.seen(**seen), failures, ceilings_wanted=wanted)
    return [(limit.file, limit.reason) for limit in unenforced]


def refused(knob: Knob, reason: Reason = Reason.LIMIT_NOT_WRITTEN) -> WriteFailure:
    return WriteFailure(knob, reason, EROFS)


def test_cpus_that_are_lost(build: Any) -> None:
    """They count as a limit does, beside others."""
    told = msgspec.structs.replace(limits(), lost_cpus=3)
    assert found(build, told, unsaved="full") == [
        ("state file", Reason.STATE_NOT_SAVED),
        ("offline CPUs", Reason.CPUS_OFFLINE),
    ]


@pytest.mark.parametrize("knob", [V2.quota, WEIGHT, HIGH], ids=lambda knob: knob.file)
@pytest.mark.parametrize("reason", [Reason.LIMIT_NOT_WRITTEN, Reason.LIMIT_NOT_KEPT, Reason.STATE_NOT_SAVED])
def test_a_write_that_failed(build: Any, knob: Knob, reason: Reason) -> None:
    """Of the root's files each counts, from the tick on in which it failed, and in that tick alone."""
    assert found(build, limits()) == []
    assert found(build, limits(), refused(knob, reason)) == [(knob.file, reason)]


def test_limits_of_single_pods_do_not_count(build: Any) -> None:
    """They protect batch pods from each other; but where nothing can be saved, no new pod gets any."""
    assert found(build, limits(), refused(POD)) == []
    assert found(build, limits(), refused(POD, Reason.STATE_NOT_SAVED)) == [("state file", Reason.STATE_NOT_SAVED)]


def test_a_state_file_that_cannot_be_written(build: Any) -> None:
    """Also where nothing is to be saved at this moment; once, however many writes wait for it."""
    no_space = "/state: No space left on device"
    assert found(build, limits(), unsaved=no_space) == [("state file", Reason.STATE_NOT_SAVED)]
    waits = refused(V2.quota, Reason.STATE_NOT_SAVED)
    assert found(build, limits(), waits, unsaved=no_space) == [("cpu.max", Reason.STATE_NOT_SAVED)]


LIFTED = {
    "suppression is off": (V2.quota, limits(quota=Reason.SUPPRESSION_DISABLED)),
    "CPUs are the ceiling": (V2.quota, limits(quota=Reason.KNOB_RELEASED, cpuset=Reason.CPUS_HELD)),
    "eviction by memory is off": (HIGH, limits(high=Reason.KNOB_RELEASED)),
    "CPUs are given back": (V2.cpuset, limits(cpuset=Reason.KNOB_RELEASED)),
}


@pytest.mark.parametrize(("knob", "told"), LIFTED.values(), ids=LIFTED.keys())
def test_a_limit_that_is_to_end_protects_nobody(build: Any, knob: Knob, told: NodeLimits) -> None:
    """What stands there is tighter than what is wanted."""
    loose = {knob: KnobReading(-1, 5, -1, loosened=True)}
    assert found(build, told, refused(knob), knobs=loose) == []


UNREADABLE = {
    # which file, whether suppression is on, what that means
    "the quota": ("quota", True, [("cpu.max", Reason.CEILING_NOT_POSSIBLE)]),
    "the CPU list": ("cpuset", True, [("cpuset.cpus", Reason.CEILING_NOT_POSSIBLE)]),
    "the weight": ("weight", True, [("cpu.weight", Reason.KNOB_UNREADABLE)]),
    "the brake on memory": ("high", True, [("memory.high", Reason.KNOB_UNREADABLE)]),
    "a quota that nobody wants": ("quota", False, []),
    "the weight without suppression": ("weight", False, [("cpu.weight", Reason.KNOB_UNREADABLE)]),
    "idle: then the weight is held": ("idle", True, []),
}


@pytest.mark.parametrize(("name", "wanted", "expected"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_limit_that_cannot_be_read(build: Any, name: str, wanted: bool, expected: list[tuple[str, Reason]]) -> None:
    """What cannot be read cannot be told to be in force."""
    assert found(build, limits(**{name: Reason.KNOB_UNREADABLE}), wanted=wanted) == expected


def test_what_a_kernel_does_not_have_counts_as_enforced(build: Any) -> None:
    """cgroup v1 knows no memory.high: nothing of it was ever decided, and eviction protects memory alone."""
    v1 = build.knobs
    told = {knob: limit(knob, Reason.QUOTA_LOWERED) for knob in (v1.quota, build.weight, build.period)}
    assert v1.memory_high is None and found(build, NodeLimits(told, None, root=v1.quota.cgroup)) == []


COURSES = {
    # seconds at which the quota was found looser, and whether it counts as unenforced in each of these moments
    "a reset": ((10,), {10: False, 11: False}),
    "one each two minutes": ((10, 130, 250), {130: False, 250: False}),
    "once a minute, as a kubelet with the systemd driver": (
        (10, 70, 129),
        {10: False, 70: False, 71: False, 129: False},
    ),
    "twice within 45 seconds": ((10, 54), {10: False, 54: True, 55: True, 98: True, 99: False, 130: False}),
    "ten times a second": (tuple(range(10, 40)), {10: False, 11: True, 39: True, 83: True, 84: False}),
    "again after it was kept": ((10, 11, 80), {11: True, 55: True, 56: False, 80: False, 81: False}),
}


@pytest.mark.parametrize(("losses", "expected"), COURSES.values(), ids=COURSES.keys())
def test_a_foreign_writer(build: Any, losses: tuple[int, ...], expected: dict[int, bool]) -> None:
    """One loss is repaired and forgiven; from the second on the limit counts as lost until it was kept for 45 seconds."""
    keeping, told = EnforcementMemory(), {}
    for second in range(max(expected) + 1):
        reading = KnobReading(-1 if second in losses else 7, 7, -1, loosened=second in losses)
        seen = build.seen(second, knobs={V2.quota: reading})
        keeping, unenforced = find_unenforced(keeping, limits(), seen, (), ceilings_wanted=True)
        told[second] = [limit.reason for limit in unenforced] == [Reason.LIMIT_NOT_KEPT]
    assert {second: told[second] for second in expected} == expected


def test_a_weight_behind_idle_is_not_loosened(build: Any) -> None:
    """While cpu.idle is set the kernel shows another weight than ours."""
    keeping = EnforcementMemory()
    for second in range(3):
        seen = build.seen(second, knobs={WEIGHT: KnobReading(3, 1, 100, loosened=True)})
        told = limits(weight=Reason.IDLE_HELD, idle=Reason.IDLE_HELD)
        keeping, unenforced = find_unenforced(keeping, told, seen, (), ceilings_wanted=True)
        assert unenforced == ()


UNENFORCED = (
    UnenforcedLimit("cpu.max", Reason.LIMIT_NOT_WRITTEN, EROFS, V2.quota),
    UnenforcedLimit("state file", Reason.STATE_NOT_SAVED, "/state: No space left on device"),
)


def test_no_more_is_lent_than_requested(build: Any, terms: Any) -> None:
    """CPU and memory, batch and mid: a pod that asks for one uses both. The zones offer nothing."""
    batch = build.lending(500, 9).prepared[:2]
    lent = msgspec.structs.replace(
        build.lending(500, 9, mid=(200, 7)),
        zones=(ZoneLending(0, "node-0", batch, batch),),
        origin=ResourceVector({BATCH_CPU: 900, BATCH_MEMORY: 9}),
    )
    pods = (build.batch("a", batch_cpu=300, batch_memory=20),)
    capped = within_requests(lent, UNENFORCED, pods[0].spec.requests)
    wanted = {BATCH_CPU: 300, BATCH_MEMORY: 9, MID_CPU: 0, MID_MEMORY: 0}
    assert {d.name: d.value for d in capped.reclaimable} == {d.name: d.value for d in capped.final} == wanted
    assert terms(capped.final[0]) == {"x": 500, "cap: a limit is not in force": -200}
    assert {(d.reason, d.detail) for d in capped.final} == {(Reason.LIMIT_NOT_WRITTEN, f"{EROFS}, and 1 more")}
    (zone,) = capped.zones
    assert [d.value for d in (*zone.decisions, *zone.prepared)] == [0, 0, 0, 0]
    assert capped.origin == ResourceVector({BATCH_CPU: 300, BATCH_MEMORY: 9})
    told = offered(capped, pods, (), {BATCH_CPU: 500, BATCH_MEMORY: 20}, may_grow=True)
    assert {d.name: d.value for d in told} == {**wanted, BATCH_MEMORY: 20}


def test_the_condition_names_the_file(build: Any) -> None:
    """False, the code, and the place with what is wrong there."""
    capped = within_requests(build.lending(500, 9), UNENFORCED, ResourceVector())
    why = degraded(capped.reclaimable, "")
    assert condition(why, "", (EROFS,), UNENFORCED) == (
        "False",
        "LimitNotWritten",
        f"{words(Reason.LIMIT_NOT_WRITTEN)}: {EROFS}",
    )


def test_another_reason_to_lend_nothing_goes_first(build: Any) -> None:
    """The condition says what to mend first; without an unenforced limit nothing changes."""
    off = build.lending(reason=Reason.LENDING_DISABLED)
    assert within_requests(off, UNENFORCED, ResourceVector()) == off
    assert within_requests(build.lending(500, 9), (), ResourceVector()) == build.lending(500, 9)


def test_the_limit_itself_says_so() -> None:
    """`sublet explain limit`."""
    told = explained(limits(), UNENFORCED)
    assert told.decisions[V2.quota].detail == f"not in force (LimitNotWritten): {EROFS}"
    assert told.decisions[WEIGHT] == limits().decisions[WEIGHT]
