"""Batch pods that are idle beside their siblings, and the weights they get back."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agent.core.limit.cpu_qos.idle_weights import beside_idle, weights_of
from agent.core.limit.cpu_qos.values import identity_and_idle
from agent.core.limit.cpu_qos.wishes import CpuWishes, wishes
from agent.core.limit.pod_limits import pod_limits
from agent.core.observe.knob_table import Strategy
from agent.core.observe.knobs import UNLIMITED
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob, KnobReading, Places, PodPlace
from model.qos import CpuQosStrategy
from model.reason import Reason
from tests.agent.core.limit.cpu_qos.cpu_kernel import CpuKernel
from tests.agent.core.limit.cpu_qos.test_wishes import IDLE, NO_CLAMPS, batch

V1, V2 = Layout(), Layout(version=2)
JOB = "/kubepods/besteffort/poduid-job"
HALF = {1: 512, 2: 20}
"""The weight of half a CPU, by cgroup version."""


@pytest.mark.parametrize("layout", [V1, V2], ids=["cgroup v1", "cgroup v2"])
def test_on_and_off(build: Any, layout: Layout) -> None:
    """Idle once the weight before us is known; nothing is written to the weight meanwhile; off, it is as it was."""
    kernel, job = CpuKernel(build, layout), (batch(build),)
    kernel.run(3, job)
    weight, idle, wanted = kernel.weight(JOB), kernel.idle(JOB), HALF[layout.version]
    assert kernel.held[weight] == wanted
    limits = kernel.run(12, job, cpu_qos=IDLE)
    assert kernel.changed(Strategy.CPU_QOS) == {(JOB, "cpu.idle"): 1}
    decision = limits.limits[weight].decision
    assert (decision.value, decision.reason) == (kernel.value(weight), Reason.IDLE_HELD)
    assert kernel.value(weight) == (3 if layout.version == 1 else 0)
    counts = [(kernel.run(1, job, cpu_qos=IDLE), kernel.looked_at())[1] for _ in range(10)]
    # On cgroup v1 the quota of half a CPU is in the way of a lower ceiling: the pod is looked at each tick.
    assert sorted(counts) == ([0] * 9 + [1] if layout.version == 2 else [1] * 10)
    kernel.run(1, job)
    assert (kernel.held[idle], kernel.held[weight]) == (0, wanted), "in the same tick"
    kernel.run(12, job)
    assert kernel.changed(Strategy.CPU_QOS) == {} and kernel.looked_at() == 0
    assert kernel.originals[weight] == kernel.kubelets_weight


def test_a_new_pod_has_its_weight_first(build: Any) -> None:
    """What stood there before is known by then, so that it can be restored."""
    kernel, job = CpuKernel(build, V1), (batch(build),)
    kernel.run(1, job, cpu_qos=IDLE)
    kernel.run(1, job, cpu_qos=IDLE)
    assert kernel.originals[kernel.weight(JOB)] == 2
    kernel.run(12, job, cpu_qos=IDLE)
    assert kernel.held[kernel.idle(JOB)] == 1 and kernel.originals[kernel.weight(JOB)] == 2


def test_the_agent_is_restarted_without_the_setting(build: Any) -> None:
    """What it finds is given back as in any other tick."""
    kernel, job = CpuKernel(build, V1), (batch(build),)
    kernel.run(15, job, cpu_qos=IDLE)
    kernel.restart()
    kernel.run(2, job)
    assert (kernel.held[kernel.idle(JOB)], kernel.held[kernel.weight(JOB)]) == (0, 512)
    assert kernel.idle(JOB) not in kernel.originals


def test_settings_that_may_be_looser_end_nothing(build: Any) -> None:
    """A document that cannot be read: idle stays, and no weight is written that the kernel would refuse."""
    kernel, job = CpuKernel(build, V1), (batch(build),)
    kernel.run(15, job, cpu_qos=IDLE)
    kernel.run(12, job, unsettled=Reason.CONFIGURATION_INVALID)
    assert kernel.held[kernel.idle(JOB)] == 1
    kernel.run(1, job)
    assert (kernel.held[kernel.idle(JOB)], kernel.held[kernel.weight(JOB)]) == (0, 512)


def test_another_writer(build: Any) -> None:
    """What somebody ended begins again; what stood there before us stays when the setting ends."""
    kernel, job = CpuKernel(build, V1), (batch(build),)
    kernel.run(15, job, cpu_qos=IDLE)
    kernel.put(kernel.idle(JOB), 0)
    kernel.run(12, job, cpu_qos=IDLE)
    assert kernel.held[kernel.idle(JOB)] == 1
    kernel.run(2, job)
    kernel.put(kernel.idle(JOB), 1)
    kernel.run(12, job, cpu_qos=IDLE)
    assert kernel.idle(JOB) not in kernel.originals and kernel.held[kernel.idle(JOB)] == 1


# what idle's and the weight's files say, wanted, may end -> weight's value and reason; the weight that counts as ours
STATES: dict[str, tuple[KnobReading, KnobReading, bool, bool, tuple[int, Reason], int | None]] = {
    "neither": (KnobReading(0), KnobReading(2), False, True, (512, Reason.BATCH_RESOURCES), None),
    "begins": (KnobReading(0), KnobReading(512, 512, 2), True, True, (512, Reason.IDLE_HELD), 512),
    "stands": (KnobReading(1, 1, 0), KnobReading(3, 512, 2), True, True, (3, Reason.IDLE_HELD), 3),
    "ends": (KnobReading(1, 1, 0), KnobReading(3, 512, 2), False, True, (512, Reason.BATCH_RESOURCES), 3),
    "may not end": (KnobReading(1, 1, 0), KnobReading(3, 512, 2), False, False, (3, Reason.IDLE_HELD), 3),
    "another program's": (KnobReading(1), KnobReading(3, 512, 2), False, True, (3, Reason.IDLE_HELD), 3),
}


@pytest.mark.parametrize(("idle", "weight", "wanted", "may_end", "expected", "ours"), STATES.values(), ids=STATES)
def test_states(
    build: Any,
    idle: KnobReading,
    weight: KnobReading,
    wanted: bool,
    may_end: bool,
    expected: tuple[int, Reason],
    ours: int | None,
) -> None:
    """A weight is written only where the kernel takes it."""
    job = batch(build)
    places = Places({job.uid: PodPlace(JOB, {"main": f"{JOB}/main"})})
    knobs = dict(zip(weights_of(V1, [JOB]), (idle, weight), strict=True))
    seen = build.seen(knobs=knobs, places=places)
    batch_limits = pod_limits(V1, places, (job,), None, UNLIMITED, {})
    strategy = IDLE if wanted else CpuQosStrategy()
    limits = [*identity_and_idle(V1, seen, wishes(CpuWishes(), strategy, NO_CLAMPS, (job,)))]
    found = beside_idle(V1, seen, batch_limits, limits, may_end=may_end)
    shares = Knob(JOB, "cpu", "cpu.shares")
    limit = found.limits[shares]
    assert (limit.value, limit.decision.reason) == expected and limit.decision.value == limit.value
    assert found.readings[shares] == replace(weight, last_written=ours)


def test_nothing_idle_is_nothing_to_do(build: Any) -> None:
    """The same values, not copies."""
    seen = build.seen(knobs={Knob(V1.best_effort, "cpu", "cpu.idle"): KnobReading(1)})
    found = beside_idle(V1, seen, {}, (), may_end=True)
    assert found.readings is seen.knobs and found.limits == {}
