"""The agent's writes on real cgroup v2: executor, brake, and the whole tick with both."""

from __future__ import annotations

import subprocess

import pytest

from agent.core.limit.brake import BrakePlan
from agent.core.limit.plan import Write
from agent.core.limit.watch import Watch
from agent.core.observe.observation import Missing
from agent.edge.executor import KnobExecutor
from cgroup_fixtures.live import MOUNT
from model.decision import Decision, Term, Unit
from model.fault import KernelFault
from model.reason import Reason
from model.resources import BATCH_CPU
from tests.guest.inside.live_node import SPIN, LiveNode, eventually

FULL_US = 200_000
"""Two CPUs a period; of them 1 % stays free."""
MOST_US = 198_000
FLOOR_US = 2000


def planned(node: LiveNode, value: int) -> Write:
    knob = node.knobs.quota
    term = (Term("x", value),)
    decision = Decision(knob.subject, knob.file, value, Unit.MICROSECONDS, Reason.QUOTA_LOWERED, term)
    return Write(knob, value, -1, decision)


def write(node: LiveNode, value: int) -> str:
    """What went wrong; empty if nothing."""
    return node.executor.apply((planned(node, value),), 0)[0].error


def test_what_is_written_the_kernel_holds_and_restore_undoes(node: LiveNode) -> None:
    """cpu.max as quota and period, cpu.weight as a number; an executor that wrote neither itself can undo both."""
    weight = node.knobs.fixed[0].knob
    assert (node.executor.read(node.knobs.quota), node.executor.read(weight)) == (-1, 100)
    assert write(node, 50_000) == "" and node.knob("cpu.max") == "50000 100000\n"
    assert node.executor.lower(weight, 1) == 100 and node.knob("cpu.weight") == "1\n"
    assert node.originals.originals == {node.knobs.quota: "max 100000", weight: "100"}
    assert KnobExecutor(MOUNT, node.originals).restore().changed == 2
    assert (node.knob("cpu.max"), node.knob("cpu.weight")) == ("max 100000\n", "100\n")


def test_what_the_kernel_refuses_is_an_error_and_changes_nothing(node: LiveNode) -> None:
    """A quota below a millisecond, and a cgroup that is gone."""
    assert "Invalid argument" in write(node, 500) and node.knob("cpu.max") == "max 100000\n"
    node.rmdir(node.job.container, node.job.path, node.best_effort)
    outcome = node.executor.apply((planned(node, 50_000),), 0)[0]
    assert outcome.dropped and outcome.error == ""
    assert isinstance(node.executor.read(node.knobs.quota), Missing)


def test_a_foreign_period_is_the_same_number(node: LiveNode) -> None:
    """Somebody's 25 ms in 50 are our 50 ms in 100: nothing lower, so the brake leaves it, and cuts below it."""
    node.set_knob("cpu.max", "25000 50000")
    assert node.executor.read(node.knobs.quota) == 50_000
    assert node.executor.lower(node.knobs.quota, 50_000) is None and node.knob("cpu.max") == "25000 50000\n"
    assert node.executor.lower(node.knobs.quota, 40_000) == 50_000 and node.knob("cpu.max") == "40000 100000\n"


def test_the_brake_cuts_the_kernels_ceiling_in_a_surge(node: LiveNode) -> None:
    """Without any tick: one online CPU in use leaves best effort less than it held; a later raise is dropped."""
    write(node, 140_000)
    seen = node.executor.readings((node.knobs.quota,)).brake_cuts
    terms = (Term("capacity", FULL_US), Term("margin", MOST_US - FULL_US))
    node.brake.arm(Watch(BrakePlan(node.knobs.quota, terms, MOST_US, FLOOR_US, 140_000, 10_000)))
    node.brake.start()
    node.tree.run(node.web.container, SPIN)
    assert node.woken.wait(60) and node.brake.alive
    node.brake.stop()
    cuts = node.brake.drain()
    assert cuts[0].previous_us == 140_000 and cuts[0].value_us <= 130_000
    assert node.knob("cpu.max") == f"{cuts[-1].value_us} 100000\n"
    assert node.executor.apply((planned(node, 140_000),), seen)[0].dropped
    assert node.knob("cpu.max") == f"{cuts[-1].value_us} 100000\n"


def test_a_whole_tick_decides_and_writes(node: LiveNode) -> None:
    """The weight at once, the ceiling as soon as usage is known: to the microsecond what its terms sum to."""
    first = node.tick.run()
    assert first.usage is None and (node.knob("cpu.max"), node.knob("cpu.weight")) == ("max 100000\n", "1\n")
    result = node.tick_until(lambda result: result.usage is not None)
    decision = result.limits.decisions[node.knobs.quota]
    assert not any(outcome.error for outcome in result.outcomes) and decision.reason is Reason.QUOTA_LOWERED
    assert FLOOR_US <= decision.value == sum(term.value for term in decision.terms) <= FULL_US * 105 // 100
    assert node.knob("cpu.max") == f"{decision.value} 100000\n"
    lent = next(d for d in result.lent_decisions if d.name == BATCH_CPU)
    # 60 % of 2000 milli-CPU, less what system and service use.
    assert 0 < lent.value == sum(term.value for term in lent.terms) <= 1200
    assert result.report is not None and result.degraded_reason == "" and result.observation.unlisted_pods == ()
    node.executor.restore()
    assert (node.knob("cpu.max"), node.knob("cpu.weight")) == ("max 100000\n", "100\n")


def test_brake_and_tick_follow_a_surge_together(node: LiveNode) -> None:
    """The brake cuts what the tick had decided; the next tick tells it, explained, and goes on from there."""
    node.brake.start()
    before = node.tick_until(lambda result: result.usage is not None).limits.decisions[node.knobs.quota].value
    assert before > FLOOR_US
    node.tree.run(node.web.container, SPIN)
    assert node.woken.wait(60)
    told = node.tick.run()
    assert told.cuts and all(cut.reason is Reason.BRAKE for cut in told.cuts)
    assert all(cut.value == sum(term.value for term in cut.terms) < before for cut in told.cuts)
    # One online CPU of two is 100,000 us of the ceiling; half of it is certain even where the guest is short of time.
    node.tick_until(lambda result: node.executor.read(node.knobs.quota) <= max(before - 50_000, FLOOR_US))
    assert node.brake.unreadable == 0


def test_a_foreign_writer_is_undone_or_yielded_to(node: LiveNode) -> None:
    """systemd resets to `max`: ours comes back; a tighter value of anybody, whatever its period, stays."""
    node.tick_until(lambda result: result.usage is not None)
    ours = node.executor.read(node.knobs.quota)
    node.set_knob("cpu.max", "max 100000")
    node.set_knob("cpu.weight", "100")
    undone = node.tick.run().limits.decisions
    assert undone[node.knobs.quota].reason is Reason.FOREIGN_WRITER_LOOSENED
    assert node.executor.read(node.knobs.quota) <= ours and node.knob("cpu.weight") == "1\n"
    node.set_knob("cpu.max", "6000 200000")
    yielded = node.tick.run().limits.decisions[node.knobs.quota]
    assert (yielded.reason, yielded.value) == (Reason.FOREIGN_WRITER_TIGHTER, 3000)
    assert node.knob("cpu.max") == "6000 200000\n"


def test_an_idle_class_is_weaker_than_any_weight(node: LiveNode) -> None:
    """Somebody set cpu.idle, and the kernel takes no weight then: less than ours, so nothing is written or wrong."""
    node.set_knob("cpu.idle", "1")
    result = node.tick_until(lambda result: result.usage is not None)
    weight = result.limits.decisions[node.knobs.fixed[0].knob]
    # Linux 6.1 shows it as 0, 7.3 as 1.
    assert weight.value in (0, 1) and weight.reason == Reason.FOREIGN_WRITER_TIGHTER
    assert [outcome.error for outcome in result.outcomes if outcome.error] == [] and result.degraded_reason == ""


def test_a_knob_that_cannot_be_restored_keeps_no_other_back(node: LiveNode) -> None:
    """The fault names it, the ceiling is lifted all the same, and a second try finishes."""
    node.tick_until(lambda result: result.usage is not None)
    weight = node.file(node.best_effort, "cpu.weight")
    subprocess.run(["mount", "--bind", "-o", "ro", weight, weight], check=True)
    try:
        with pytest.raises(KernelFault, match=r"cpu\.weight"):
            node.executor.restore()
    finally:
        subprocess.run(["umount", weight], check=True)
    assert node.knob("cpu.max") == "max 100000\n"
    node.executor.restore()
    assert node.knob("cpu.weight") == "100\n" and node.originals.originals == {}


def test_a_weight_comes_back_where_somebody_made_the_cgroup_idle(node: LiveNode) -> None:
    """The kernel refuses the weight meanwhile, so it is not idle afterwards."""
    node.tick_until(lambda result: result.usage is not None)
    node.set_knob("cpu.idle", "1")
    node.executor.restore()
    assert node.knob("cpu.weight") == "100\n" and node.knob("cpu.idle") == "0\n" and node.originals.originals == {}


def test_a_class_that_kubelet_makes_again_gets_its_limits_again(node: LiveNode) -> None:
    """The new cgroup is unlimited: the tick puts the ceiling back at once, and the brake finds the new counters."""
    node.brake.start()
    node.tick_until(lambda result: result.usage is not None)
    ours = node.executor.read(node.knobs.quota)
    node.rmdir(node.job.container, node.job.path, node.best_effort)
    lost = node.tick.run()
    assert lost.limits.decisions[node.knobs.quota].reason is Reason.KNOB_UNREADABLE
    assert eventually(lambda: node.brake.unreadable > 0)
    node.tree.make(node.job.container)
    assert node.knob("cpu.max") == "max 100000\n"
    node.tick.run()
    assert node.executor.read(node.knobs.quota) <= ours and node.knob("cpu.weight") == "1\n"
    node.tick_until(lambda result: result.usage is not None)
    node.woken.clear()
    node.tree.run(node.web.container, SPIN)
    assert node.woken.wait(60) and node.brake.alive
