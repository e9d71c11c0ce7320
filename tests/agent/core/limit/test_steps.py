"""Every step is one that cgroup v1 accepts, and in between nobody has more than before or after."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.limit.ownership import looser
from agent.core.limit.steps import out_of_the_way, steps
from agent.core.observe.knobs import UNLIMITED, cpuset_knob, quota_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob, Value
from model.topology import format_cpus, parse_cpus

LAYOUT = Layout("/k")
GROUPS = ("/k/be", "/k/be/p", "/k/be/p/c", "/k/be/p/d", "/k/be/q", "/k/be/q/e")
V2_QUOTA = Knob("/k/be", "", "cpu.max")


class Kernel:
    """cgroup v1's two rules about nested values; refuses like the kernel does."""

    def __init__(self, held: Mapping[Knob, Value]) -> None:
        self.held = dict(held)
        assert all(self.valid(knob) for knob in held), "an impossible beginning"

    def write(self, knob: Knob, value: Value) -> None:
        before, self.held[knob] = self.held[knob], value
        refused = [name for name in self.held if not self.valid(name)]
        assert not refused, f"{knob} {before} → {value} breaks {refused}"

    def valid(self, knob: Knob) -> bool:
        above = [other for other in self.held if knob.cgroup.startswith(f"{other.cgroup}/") and other.file == knob.file]
        above.sort(key=lambda other: other.cgroup)
        value = self.held[knob]
        if isinstance(value, str):
            return not above or not looser(value, self.held[above[-1]])
        limited = [held for other in above if (held := self.held[other]) != UNLIMITED]
        return value == UNLIMITED or not limited or not looser(value, limited[-1])


def quotas(values: Mapping[str, int]) -> dict[Knob, Value]:
    return {quota_knob(LAYOUT, cgroup): value for cgroup, value in values.items()}


def cpusets(values: Mapping[str, str]) -> dict[Knob, Value]:
    return {cpuset_knob(LAYOUT, cgroup): value for cgroup, value in values.items()}


@st.composite
def quota_trees(draw: st.DrawFn) -> dict[Knob, Value]:
    """Any state the kernel can be in."""
    values: dict[str, int] = {}
    for cgroup in GROUPS:
        above = [values[other] for other in sorted(values, reverse=True) if cgroup.startswith(f"{other}/")]
        most = next((value for value in above if value != UNLIMITED), 100)
        values[cgroup] = draw(st.sampled_from([UNLIMITED, *range(10, most + 1, 10)]))
    return quotas(values)


@st.composite
def cpuset_trees(draw: st.DrawFn) -> dict[Knob, Value]:
    values: dict[str, str] = {}
    for cgroup in GROUPS:
        above = [values[other] for other in sorted(values, reverse=True) if cgroup.startswith(f"{other}/")]
        among = parse_cpus(above[0] if above else "0-5")
        values[cgroup] = format_cpus(draw(st.sets(st.sampled_from(among)))) if among else ""
    return cpusets(values)


@given(st.one_of(st.tuples(quota_trees(), quota_trees()), st.tuples(cpuset_trees(), cpuset_trees())))
def test_the_kernel_accepts_every_step(both: tuple[dict[Knob, Value], dict[Knob, Value]]) -> None:
    """From any tree to any other; each step starts where the one before it ended."""
    held, wanted = both
    kernel = Kernel(held)
    for step in steps(wanted, held):
        assert kernel.held[step.knob] == step.previous != step.value
        kernel.write(step.knob, step.value)
    assert kernel.held == wanted


@given(quota_trees(), quota_trees())
def test_nobody_gets_more_in_between(held: dict[Knob, Value], wanted: dict[Knob, Value]) -> None:
    """The best-effort root never exceeds the larger of old and new; children are bound by it."""
    root = quota_knob(LAYOUT, "/k/be")
    for step in (step for step in steps(wanted, held) if step.knob == root):
        assert step.value == wanted[root]
    assert sum(step.knob == root for step in steps(wanted, held)) <= 1


@given(cpuset_trees(), cpuset_trees())
def test_cpu_lists_shrink_last(held: dict[Knob, Value], wanted: dict[Knob, Value]) -> None:
    """Nothing is written twice the same, and no cgroup ever holds a CPU of neither list."""
    for step in steps(wanted, held):
        either = {*parse_cpus(str(held[step.knob])), *parse_cpus(str(wanted[step.knob]))}
        assert set(parse_cpus(str(step.value))) <= either


def test_order_and_economy() -> None:
    """v2: narrow from the leaves, then widen from the root; what the kernel holds already is not written."""
    wanted = {"/a": (100, 50), "/a/b": (100, 50), "/c": (10, 50), "/c/d": (10, 50), "/e": (7, 7)}
    knobs = {name: Knob(name, "", "cpu.max") for name in wanted}
    found = steps({knobs[n]: new for n, (new, _) in wanted.items()}, {knobs[n]: old for n, (_, old) in wanted.items()})
    assert [step.knob.cgroup for step in found] == ["/c/d", "/c", "/a", "/a/b"]


def test_a_quota_above_a_falling_root_becomes_unlimited_first_and_is_limited_last() -> None:
    """v1 refuses both other orders."""
    held = quotas({"/k/be": 100, "/k/be/p": 80, "/k/be/q": 20})
    down = quotas({"/k/be": 50, "/k/be/p": UNLIMITED, "/k/be/q": 30})
    assert [(step.knob.cgroup, step.value) for step in steps(down, held)] == [
        ("/k/be/p", UNLIMITED),
        ("/k/be", 50),
        ("/k/be/q", 30),
    ]
    assert [(step.knob.cgroup, step.value) for step in steps(held, down)] == [
        ("/k/be/q", 20),
        ("/k/be", 100),
        ("/k/be/p", 80),
    ]


def test_a_root_that_had_no_quota_is_limited_at_once() -> None:
    """Only below it -1 stands for what is above; the root's own first quota waits for nothing."""
    held, wanted = quotas({"/k/be": UNLIMITED, "/k/be/p": 80}), quotas({"/k/be": 50, "/k/be/p": 40})
    assert [step.knob.cgroup for step in steps(wanted, held)] == ["/k/be/p", "/k/be"]


def test_idle_ends_before_the_weight_is_written() -> None:
    """While it is set no weight can be; it begins after nothing else is to be written."""
    idle, weight = Knob("/k/be", "cpu", "cpu.idle"), Knob("/k/be", "cpu", "cpu.shares")
    assert [step.knob for step in steps({weight: 2, idle: 0}, {weight: 3, idle: 1})] == [idle, weight]


def test_memory_limits_of_whole_pages_are_not_written_again() -> None:
    """The kernel keeps less than it was told."""
    knob = Knob("/k/be/p", "memory", "memory.limit_in_bytes")
    assert steps({knob: 1_000_000}, {knob: 999_424}) == () != steps({knob: 1_000_000}, {knob: UNLIMITED})


@pytest.mark.parametrize(
    ("root", "value", "below", "expected"),
    [
        (quota_knob(LAYOUT, "/k/be"), 50, quotas({"/k/be/p": 80, "/k/be/q": 50, "/k/be/p/c": -1}), {"/k/be/p": -1}),
        (
            cpuset_knob(LAYOUT, "/k/be"),
            "0-1",
            cpusets({"/k/be/p": "0-2", "/k/be/q": "2", "/k/be/p/c": "1", "/k/be/p/d": ""}),
            {"/k/be/p": "0-1", "/k/be/q": "0-1"},
        ),
    ],
)
def test_children_step_aside(root: Knob, value: Value, below: dict[Knob, Value], expected: dict[str, Value]) -> None:
    """Those that hold more, and no others; a list that shares nothing gets all of the parent's."""
    assert {knob.cgroup: wanted for knob, wanted in out_of_the_way(root, value, below).items()} == expected


@given(cpuset_trees(), st.sets(st.integers(0, 5), min_size=1))
def test_children_step_aside_in_an_order_the_kernel_accepts(held: dict[Knob, Value], cpus: set[int]) -> None:
    """Then the parent's own write is accepted."""
    root = cpuset_knob(LAYOUT, "/k/be")
    held[root] = "0-5"
    kernel = Kernel(held)
    below = {knob: value for knob, value in held.items() if knob != root}
    for step in steps(out_of_the_way(root, format_cpus(cpus), below), below):
        kernel.write(step.knob, step.value)
    kernel.write(root, format_cpus(cpus))


@pytest.mark.parametrize(("held", "wanted", "widens"), [(5, 9, True), (9, 5, False), (9, -1, True)])
def test_a_step_knows_whether_it_gives_more(held: int, wanted: int, widens: bool) -> None:
    """Raises are dropped after a cut, cuts never."""
    assert [step.widens for step in steps({V2_QUOTA: wanted}, {V2_QUOTA: held})] == [widens]
