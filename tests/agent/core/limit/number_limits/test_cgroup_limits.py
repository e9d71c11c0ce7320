"""How many cgroups a batch pod may have below its own."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.limit.decide import LimitFacts, LimitMemory, decide_limits, knobs_to_read
from agent.core.limit.number_limits.cgroup_limits import (
    pods_cgroups,
    pods_cgroups_to_read,
    root_cgroups,
    root_cgroups_to_read,
)
from agent.core.observe.knobs import RootKnobs, cgroups_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, KnobReading, Missing, Places, PodPlace
from model.pod.status import PodPhase
from model.qos import KubernetesQoS
from model.reason import Reason
from model.strategy import EvictionStrategy, SuppressStrategy
from tests.pods import with_fields

V1, V2 = Layout("/kubepods"), Layout("/kubepods", version=2)
POD = "/kubepods/besteffort/podjob"
KNOB, ROOT = cgroups_knob(POD), cgroups_knob(V2.best_effort)
ON = SuppressStrategy()
READINGS: dict[str, tuple[KnobReading, SuppressStrategy, int | None]] = {
    "none before": (KnobReading(-1), ON, 1000),
    "by setting": (KnobReading(-1), SuppressStrategy(pod_cgroups=64), 64),
    "fewer before us": (KnobReading(20), ON, 20),
    "fewer before us, and ours by now": (KnobReading(10, 10, 20), ON, 20),
    "more before us": (KnobReading(5000), ON, 1000),
    "a kernel without it": (KnobReading(Missing("/x", Absence.GONE)), ON, None),
    "switched off": (KnobReading(-1), SuppressStrategy(pod_cgroups=None), None),
    "suppression is off": (KnobReading(-1), SuppressStrategy(enable=False), None),
}


@pytest.mark.parametrize(("reading", "told", "expected"), READINGS.values(), ids=READINGS)
def test_a_batch_pod(build: Any, reading: KnobReading, told: SuppressStrategy, expected: int | None) -> None:
    """Its setting, never more than it had before us."""
    pod = build.batch("job")
    seen = build.seen(knobs={KNOB: reading}, places=Places({pod.uid: PodPlace(POD)}))
    found = list(pods_cgroups(V2, seen, (pod,), told))
    assert [(limit.knob, limit.value) for limit in found] == ([] if expected is None else [(KNOB, expected)])
    assert all(limit.decision.reason is Reason.CGROUPS_LIMITED for limit in found)


@pytest.mark.parametrize("layout", [V1, V2])
def test_whose_it_is(build: Any, layout: Layout) -> None:
    """Of pods that run below the best-effort root, labelled or not, where the kernel has such a file."""
    job, web, ended = build.batch("job"), build.pod("web"), with_fields(build.batch("old"), phase=PodPhase.SUCCEEDED)
    plain = build.pod("plain", kubernetes=KubernetesQoS.BEST_EFFORT)
    places = Places(
        {
            job.uid: PodPlace(POD),
            web.uid: PodPlace("/kubepods/burstable/podweb"),
            ended.uid: PodPlace("/kubepods/besteffort/podold"),
            plain.uid: PodPlace("/kubepods/besteffort/podplain"),
        }
    )
    expected = (KNOB, cgroups_knob("/kubepods/besteffort/podplain")) if layout.version == 2 else ()
    assert pods_cgroups_to_read(layout, places, (job, web, ended, plain), ON) == expected
    assert root_cgroups_to_read(layout, ON) == ((ROOT,) if layout.version == 2 else ())


@pytest.mark.parametrize(("held", "expected"), [(-1, 8192), (100, 100)])
def test_all_of_best_effort_together(build: Any, held: int, expected: int) -> None:
    """An eighth of the numbers that a machine has for cgroups, never more than before us."""
    (limit,) = root_cgroups(V2, build.seen(knobs={ROOT: KnobReading(held)}), ON)
    assert (limit.knob, limit.value, limit.decision.reason) == (ROOT, expected, Reason.CGROUPS_LIMITED)


def test_in_the_tick(build: Any) -> None:
    """It is read in the pod's turn, and the limit is one of all."""
    pod = build.batch("job")
    places, facts = Places({pod.uid: PodPlace(POD)}), LimitFacts(ON, EvictionStrategy(), (pod,))
    knobs = knobs_to_read(LimitMemory(), V2, places, facts)
    assert {KNOB, ROOT} <= {*knobs}
    readings = {knob: KnobReading(-1) for knob in (*RootKnobs.of(V2).all, KNOB, ROOT)}
    seen = build.seen(50.0, knobs=readings, places=places)
    _, limits = decide_limits(LimitMemory(), V2, seen, build.usage(), facts)
    assert (limits.limits[KNOB].value, limits.limits[ROOT].value, limits.refused) == (1000, 8192, ())
