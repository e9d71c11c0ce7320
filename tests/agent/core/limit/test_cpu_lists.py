"""CPU lists of the whole best-effort tree: set together, given back together."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agent.core.limit.allowance import NodeSize, by_pods
from agent.core.limit.cpu_lists import CpuListMemory, children_to_read, cpu_lists, given_back, may_widen, wants_cpus
from agent.core.limit.cpu_selection import CpuSituation, pools
from agent.core.limit.ownership import Ownership
from agent.core.limit.suppress import Situation
from agent.core.observe.knobs import cpuset_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, Knob, KnobReading, Missing, Places, PodPlace
from model.reason import Reason
from model.strategy import SuppressPolicy, SuppressStrategy
from model.topology import Processor
from tests.pods import with_fields

V1, V2 = Layout("/kubepods"), Layout("/kubepods", version=2)
CPUSET = SuppressStrategy(policy=SuppressPolicy.CPUSET)
POD, BOX = "/kubepods/besteffort/podx", "/kubepods/besteffort/podx/box"
PLACES = Places({"uid-job": PodPlace(POD, {"box": BOX})}, (POD, BOX))
MACHINE = tuple(Processor(cpu, cpu, 0, 0) for cpu in range(8))


def lists(layout: Layout = V1) -> tuple[Knob, Knob, Knob]:
    root, pod, box = (cpuset_knob(layout, path) for path in (layout.best_effort, POD, BOX))
    return root, pod, box


@pytest.mark.parametrize(
    ("strategy", "wanted"),
    [(CPUSET, True), (SuppressStrategy(), False), (SuppressStrategy(False, policy=SuppressPolicy.CPUSET), False)],
)
def test_what_is_read(strategy: SuppressStrategy, wanted: bool) -> None:
    """Below the root on v1 alone, while lists of ours may be in force."""
    assert wants_cpus(strategy) is wanted
    assert children_to_read(CpuListMemory(), V1, PLACES, wants_cpus(strategy)) == (lists()[1:] if wanted else ())
    assert children_to_read(CpuListMemory(in_force=True), V1, PLACES, wanted=False) == lists()[1:]
    assert children_to_read(CpuListMemory(in_force=True), V2, PLACES, wanted=True) == ()


def confine(build: Any, layout: Layout, root: KnobReading, **more: Any) -> tuple[CpuListMemory, dict[Knob, Any], Any]:
    """65 % of 8 CPUs less 1600m: 3600m, 4 CPUs."""
    usage = build.usage(pods={"uid-web": build.averages(1500)}, unlisted_system=build.averages(100))
    situation = Situation(CPUSET, Ownership(-1), 100.0, NodeSize(8000), by_pods(usage, (), ()))
    situation = replace(situation, **more.pop("situation", {}))
    seen = build.seen(50.0, places=PLACES, knobs=dict.fromkeys(lists(layout), root))
    about = CpuSituation(situation, root, pools(MACHINE, (), ()), 8)
    state, found = cpu_lists(CpuListMemory(), layout, seen, about, more.pop("cap", None), more.pop("pods", ()))
    return state, {limit.knob: limit.value for limit in found.limits}, found.ceiling


@pytest.mark.parametrize(
    ("layout", "kernel", "known", "listed"),
    [
        (V1, "0-7", True, False),
        (V1, "0-3", True, True),
        (V1, "0-1", True, True),
        (V1, "1-4", True, False),
        (V1, "0-3", False, False),
        (V2, "", True, False),
        (V2, "0-3", True, True),
    ],
)
def test_a_list_is_in_force(build: Any, layout: Layout, kernel: str, known: bool, listed: bool) -> None:
    """Once the kernel holds it, or less: until then another ceiling stands."""
    usage = build.usage(pods={"uid-web": build.averages(1500)}, unlisted_system=build.averages(100))
    demand = by_pods(usage, (), ()) if known else None
    about = CpuSituation(
        Situation(CPUSET, Ownership(-1), 100.0, NodeSize(8000), demand, window_full=False),
        KnobReading(kernel),
        pools(MACHINE, (), ()),
        8,
    )
    state, found = cpu_lists(CpuListMemory(), layout, build.seen(places=PLACES), about, None, ())
    assert state.in_force and found.in_force is listed


def test_on_v1_every_list_is_set(build: Any) -> None:
    """And the root's is the one they inherit."""
    state, found, ceiling = confine(build, V1, KnobReading("0-7"))
    assert found == dict.fromkeys(lists(), "0-3") and state == CpuListMemory(True, wanted="0-3")
    assert ceiling.decision.value == 4


def test_on_v2_the_root_is_enough(build: Any) -> None:
    """The kernel clips the rest."""
    assert confine(build, V2, KnobReading("0-7"))[1] == {lists(V2)[0]: "0-3"}


def test_a_tighter_foreign_root_holds_below_too(build: Any) -> None:
    """A child with more than its parent would be refused."""
    _, found, _ = confine(build, V1, KnobReading("2-5", "0-5"), cap=None)
    assert found == dict.fromkeys(lists(), "2-3")


def test_unknown_facts_leave_what_is_below(build: Any) -> None:
    """A narrower list there is not widened to the root's."""
    assert confine(build, V1, KnobReading("0-5"), situation={"demand": None})[1] == {lists()[0]: "0-5"}


def test_a_container_with_cpus_of_its_own(build: Any) -> None:
    """Keeps to those of them that are left."""
    job = with_fields(build.batch("job"), cpuset="3-6")
    root, pod, box = lists()
    assert confine(build, V1, KnobReading("0-7"), pods=(job,))[1] == {root: "0-3", pod: "0-3", box: "3"}


def test_widening_is_dated(build: Any) -> None:
    """So that the next step comes a second later."""
    state, found, _ = confine(build, V1, KnobReading("0-1", "0-1"))
    assert found[lists()[0]] == "0-2" and state.widened_seconds == 50.0
    assert (may_widen(state, 50.8), may_widen(state, 51.0)) == (False, True)


OURS = KnobReading("0-3", "0-3", "0-7")
ORIGINAL = KnobReading("0-7", "0-7", "0-7")
GIVEN_BACK: dict[str, tuple[tuple[KnobReading | None, ...], bool, list[str | None], bool]] = {
    # readings of root, pod, container; in force before; what is written; in force after
    "never ours": ((KnobReading("0-7"), None, None), False, [None] * 3, False),
    "all of ours": ((OURS, OURS, OURS), True, ["0-7"] * 3, True),
    "born with the root's": ((OURS, KnobReading("0-3"), OURS), True, ["0-7"] * 3, True),
    "somebody else's below": (
        (OURS, KnobReading("1"), KnobReading("2-3", "0-3", "0-7")),
        True,
        ["0-7", None, None],
        True,
    ),
    "of its own before us": ((OURS, OURS, KnobReading("0-1", "0-1", "0-2")), True, ["0-7", "0-7", "0-2"], True),
    "done": ((ORIGINAL, ORIGINAL, ORIGINAL), True, [None] * 3, False),
    "an agent before us left it": ((OURS, None, None), False, [None] * 3, True),
    "somebody else's root": ((KnobReading("0-1", "0-3", "0-7"), ORIGINAL, OURS), True, [None, None, "0-7"], True),
    "gone meanwhile": ((OURS, KnobReading(Missing("/p", Absence.GONE)), OURS), True, ["0-7", None, "0-7"], True),
}


@pytest.mark.parametrize(("readings", "before", "values", "after"), GIVEN_BACK.values(), ids=GIVEN_BACK.keys())
def test_given_back(
    build: Any, readings: tuple[KnobReading | None, ...], before: bool, values: list[str | None], after: bool
) -> None:
    """Only what still holds ours, and root and children in one tick; then it is forgotten."""
    known = {knob: reading for knob, reading in zip(lists(), readings, strict=True) if reading is not None}
    state, found = given_back(CpuListMemory(before), V1, build.seen(places=PLACES, knobs=known))
    assert {limit.knob: limit.value for limit in found.limits} == {
        k: v for k, v in zip(lists(), values, strict=True) if v
    }
    assert (state.in_force, found.ceiling) == (after, None)
    assert all(limit.decision.reason is Reason.KNOB_RELEASED for limit in found.limits)


def test_given_back_on_v2(build: Any) -> None:
    """To no list at all, where there was none."""
    root = lists(V2)[0]
    seen = build.seen(places=PLACES, knobs={root: KnobReading("0-3", "0-3", "")})
    state, found = given_back(CpuListMemory(), V2, seen)
    assert [(limit.knob, limit.value) for limit in found.limits] == [(root, "")] and state.in_force
