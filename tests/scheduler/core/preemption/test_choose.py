"""Up to which level victims are looked for, the lowest that helps, a higher one only to break fewer budgets; and that
what gangs can spare goes before any job does.
"""

from __future__ import annotations

import pytest
from preemption_builders import NOW, Arena, members, node, resident, victims, waiting
from preemption_reference import budget
from scheduler_builders import gang

from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.core.preemption.choose import lowest
from scheduler.core.preemption.costs import VictimCosts
from scheduler.core.preemption.facts import GangFacts, PreemptionFacts
from scheduler.core.preemption.lost_work import saved_by_all
from scheduler.core.preemption.victims import OUTSIDE, victims_of

# level -> the pods that go: x… break the closed budget, p… do not, o… are outside the bands
LEVELS: dict[str, tuple[dict[int, str], str]] = {
    "the lowest that helps": ({1: "", 2: "p2", 3: "p1"}, "p2"),
    "none": ({1: "", 2: ""}, ""),
    "a higher one that breaks no budget": ({1: "x1", 2: "x2", 3: "p3", 4: "p4"}, "p3"),
    "the lowest of those that break fewest": ({1: "x1 x2", 2: "x1 x2", 3: "x1 p1", 4: "x1 p2", 5: "x1 p3"}, "x1 p1"),
    "the lowest of the few that break fewest": ({1: "x1 x2", 2: "x1 x2", 3: "x1 x2", 4: "x1 p1", 5: "x1 p2"}, "x1 p1"),
    "the lowest where none breaks fewer": ({1: "x1", 2: "x2", 3: "x3"}, "x1"),
    "not the highest where that breaks more": ({1: "x1", 2: "x1", 3: "x1 x2"}, "x1"),
    "no level outside the bands for the sake of a budget": ({1: "x1", 2: "x2", OUTSIDE: "o1"}, "x1"),
    "a higher one below those outside the bands": ({1: "x1", 2: "p1", OUTSIDE: "o1"}, "p1"),
    "a higher one outside where all that help are": ({1: "", OUTSIDE: "x1 o1", OUTSIDE + 1: "o2"}, "o2"),
    "only one level": ({1: "x1"}, "x1"),
}


@pytest.mark.parametrize(("plans", "expected"), LEVELS.values(), ids=LEVELS.keys())
def test_level(plans: dict[int, str], expected: str) -> None:
    pods = [
        resident(f"{kind}{i}", cpu=1, priority=i, below_prod=kind != "o", labels={"app": kind})
        for kind in "xpo"
        for i in range(1, 5)
    ]
    residents = Arena([node(cpu=99)], pods).residents()
    found = victims_of(residents, residents.rows >= 0, [0], {}, 1)
    costs = VictimCosts(found, residents, PreemptionFacts(budgets=(budget("x"),)), NOW)
    of = {costs.key(index).removeprefix("default/"): index for index in range(len(found))}

    def up_to(level: int) -> frozenset[int] | None:
        return frozenset(of[name] for name in plans[level].split()) or None

    chosen = lowest(sorted(plans), up_to, costs)
    assert (chosen or frozenset()) == frozenset(of[name] for name in expected.split())


HOURS, MINUTES = NOW - 9000, NOW - 300


def job(name: str, size: int, first_node: int, started: float = MINUTES, **more: object) -> list[Pod]:
    """Members of 1 CPU, four on a node."""
    own = {"group": name, "started_seconds": started} | more
    return [resident(f"{name}{i}", f"n{first_node + i // 4}", 1, **own) for i in range(size)]


def crowd() -> list[Pod]:
    """Sixteen nodes full of lone pods that have run for hours: more than can be compared one set with another."""
    return [resident(f"z{n}-{i}", f"n{n}", 1, started_seconds=HOURS) for n in range(100, 116) for i in range(4)]


# pods, gangs with their minimum, who asks (members, CPUs), when pods saved, and who goes
SPARED: dict[str, tuple[list[Pod], dict[str, int], tuple[int, int], dict[str, float], str]] = {
    "four that a gang can spare, not the one lone pod": (
        [*job("a", 8, 0, HOURS), resident("lone", "n9", 4, started_seconds=MINUTES), *crowd()],
        {"a": 4}, (1, 4), {}, "a4 a5 a6 a7",
    ),
    "of two jobs what loses less": (
        [*job("a", 8, 0, HOURS), *job("b", 8, 4), *crowd()], {"a": 4, "b": 4}, (1, 1), {}, "b",
    ),
    "of two jobs the one of which a member saved": (
        [*job("a", 8, 0, HOURS), *job("b", 8, 4), *crowd()], {"a": 4, "b": 4}, (1, 1), {"a0": NOW - 5}, "a",
    ),
    "of members that save each for itself, those that did": (
        [*job("a", 8, 0, HOURS), *crowd()], {"a": 4}, (1, 2), {f"a{i}": NOW - (5 if i in (5, 7) else 8000) for i in range(8)},
        "a5 a7",
    ),
    "all that can be spared, and the smaller of two jobs": (
        [*job("a", 8, 0), *job("b", 8, 4, MINUTES), *job("c", 4, 8, HOURS), *crowd()],
        {"a": 4, "b": 8, "c": 4}, (2, 4), {}, "a4 a5 a6 a7 c0 c1 c2 c3",
    ),
    "a job of lower priority before what a higher one can spare": (
        [*job("a", 8, 0, priority=9), *job("b", 4, 4, HOURS, priority=1), *(resident(f"y{i}", f"n{20 + i}", 4, priority=50) for i in range(64))],
        {"a": 4, "b": 4}, (1, 4), {}, "b0 b1 b2 b3",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("pods", "least", "ask", "saved", "expected"), SPARED.values(), ids=SPARED.keys())
def test_what_gangs_can_spare_goes_first(
    pods: list[Pod], least: dict[str, int], ask: tuple[int, int], saved: dict[str, float], expected: str
) -> None:
    """Across jobs, the least lost work first; none of the first four of each goes unless its whole job does."""
    first = {f"{name}{i}" for name in least for i in range(least[name])}
    pods = [
        resident(pod.name, pod.spec.node_name, pod.spec.requests.amounts["cpu"] / 1000, priority=pod.spec.priority,
                 group=pod.spec.gang.name if pod.spec.gang else "", started_seconds=pod.status.started_seconds,
                 minimum_member=pod.name in first)
        for pod in pods
    ]  # fmt: skip
    uids = {pod.name: pod.uid for pod in pods}
    facts = {
        WorkloadId.gang(f"default/{name}"): GangFacts(minimum, sum(pod.name[0] == name for pod in pods))
        for name, minimum in least.items()
    }
    number, cpu = ask
    preemptors = members(number, cpu) if number > 1 else [waiting(cpu=cpu)]
    reported = {uids[name]: at for name, at in saved.items()}
    safe: dict[str, float] = {}
    for name in least:
        safe |= saved_by_all(reported, frozenset(pod.uid for pod in pods if pod.name[0] == name))
    arena = Arena([node(name) for name in {pod.spec.node_name for pod in pods}], pods)
    outcome = arena.ask(
        preemptors,
        gang(number) if number > 1 else None,
        gangs=facts,
        saved=safe,
    )
    gone = " ".join(sorted(victims(outcome)))
    assert gone == expected if len(expected) > 1 else gone[0] == expected and gone[1] in "4567", gone
