"""Victims: filters, order, cost, and no more than needed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.evict.eviction_request import RUNNING_BATCH_CPU, USED_CPU, USED_MEMORY
from agent.core.evict.needs import EvictionNeed
from agent.core.evict.tick_facts import TickFacts
from agent.core.evict.victims import GangAccount, choose, may_go
from model.decision import Term
from model.pod.colocation import EvictionTerms
from model.pod.spec import Container
from model.pod.status import PodPhase
from model.qos import QoSClass
from model.reason import Reason
from model.report import EvictionCost
from model.resources import BATCH_CPU, ResourceVector
from model.strategy import EvictionStrategy
from tests.agent.core.evict.evicting import MIB, Holding, batch, costs, known, limited, online, piping
from tests.pods import make_pod

BY_PRIORITY = EvictionStrategy(priority_threshold=5999, allocatable_priority_threshold=4999)


def missing(mib: int, rule: Reason = Reason.BE_MEMORY_EVICT) -> EvictionNeed:
    return EvictionNeed(rule, USED_MEMORY, "memory to free", (Term("missing", mib * MIB),))


def chosen(
    facts: TickFacts, *needs: EvictionNeed, terminating: tuple[str, ...] = (), passed_over: tuple[str, ...] = ()
) -> list[str]:
    choice = choose(needs, facts, GangAccount(facts.costs, terminating), frozenset(passed_over))
    return [victim.pod.name for victim in choice.victims]


def allowed(**terms: Any) -> Holding:
    return batch("p", eviction=EvictionTerms(enabled=True, **terms))


ANY = Reason.BE_MEMORY_EVICT
MAY: dict[str, tuple[Holding, Reason, bool]] = {
    "labelled BE": (batch("p"), ANY, True),
    "labelled BE, waiting": (batch("p", phase=PodPhase.PENDING), ANY, True),
    "labelled BE, lost sight of": (batch("p", phase=PodPhase.UNKNOWN), ANY, True),
    "BestEffort without the label": (batch("p", qos_label=QoSClass.NONE), ANY, False),
    "online": (online("p"), ANY, False),
    "done": (batch("p", phase=PodPhase.SUCCEEDED), ANY, False),
    "being deleted": (batch("p", deleting=True), ANY, False),
    "a static pod's mirror": (batch("p", cgroup_uid="0aF9"), ANY, False),
    "its own cgroup": (batch("p", cgroup_uid="p"), ANY, True),
    "its policy names the rule": (batch("p", eviction=EvictionTerms(features=frozenset({"BEMemoryEvict"}))), ANY, True),
    "its policy names another": (batch("p", eviction=EvictionTerms(features=frozenset({"CPUEvict"}))), ANY, False),
    "its policy names none": (batch("p", eviction=EvictionTerms(features=frozenset())), ANY, False),
    "by priority, enabled": (allowed(), Reason.MEMORY_EVICT, True),
    "by priority, not enabled": (batch("p"), Reason.MEMORY_EVICT, False),
    "by priority, too high": (
        online("p", priority=6000, eviction=EvictionTerms(enabled=True)),
        Reason.MEMORY_EVICT,
        False,
    ),
    "by priority, an online pod of a low one": (
        online("p", priority=5999, eviction=EvictionTerms(enabled=True)),
        Reason.CPU_EVICT,
        True,
    ),
    "by priority, its band's": (online("p", eviction=EvictionTerms(enabled=True)), Reason.CPU_EVICT, False),
    "by priority, never measured": (
        batch("p", memory=None, eviction=EvictionTerms(enabled=True)),
        Reason.MEMORY_EVICT,
        False,
    ),
    "by priority, lost sight of": (
        batch("p", phase=PodPhase.UNKNOWN, eviction=EvictionTerms(enabled=True)),
        Reason.MEMORY_EVICT,
        False,
    ),
    "by request has a threshold of its own": (allowed(), Reason.CPU_ALLOCATABLE_EVICT, False),
    "by request, low enough": (
        batch("p", priority=4999, eviction=EvictionTerms(enabled=True)),
        Reason.MEMORY_ALLOCATABLE_EVICT,
        True,
    ),
}


@pytest.mark.parametrize(("holding", "rule", "expected"), MAY.values(), ids=MAY.keys())
def test_who_may_be_evicted(holding: Holding, rule: Reason, expected: bool) -> None:
    """Raw label for the rules of best effort; switch, priority and a metric for the others; the pod's own policy."""
    assert may_go(rule, holding.pod, known(holding, strategy=BY_PRIORITY)) is expected


def test_without_a_priority_threshold_nobody_goes_by_priority() -> None:
    """The rules are off then."""
    assert not may_go(Reason.MEMORY_EVICT, allowed().pod, known(allowed()))


def cost(uid: str, gang: str = "", spare: int = 0, age: float | None = None) -> EvictionCost:
    return EvictionCost(uid, gang, spare, age)


# pods in the order of listing, costs, missing MiB -> victims, in order
ORDER: dict[str, tuple[list[Holding], list[EvictionCost], int, list[str]]] = {
    "the largest first": ([batch("a", 10), batch("b", 30), batch("c", 20)], [], 60, ["b", "c", "a"]),
    "kernel memory is memory": ([batch("a", 30), piping("b", 1, 50), batch("c", 20)], [], 51, ["b"]),
    "priority before size": ([batch("a", 30), batch("b", 10, priority=4000)], [], 40, ["b", "a"]),
    "priority before cost": (
        [batch("a", 30), batch("b", 10, priority=4000)],
        [cost("a", age=1.0), cost("b", "g")],
        40,
        ["b", "a"],
    ),
    "who holds more than its own limit first": (
        [batch("a", 40, priority=3000), limited("b", 30, 30, priority=3000), limited("c", 10, 9, priority=5999)],
        [cost("a", "g"), cost("c", age=9999.0)],
        50,
        ["c", "a"],
    ),
    "uid at last": ([batch("b", 10), batch("a", 10)], [], 20, ["a", "b"]),
    "the freshest checkpoint before size": (
        [batch("a", 30), batch("b", 10), batch("c", 20)],
        [cost("a"), cost("b", age=100.0), cost("c", age=10.0)],
        60,
        ["c", "b", "a"],
    ),
    "no cost known is no cheaper than an old checkpoint": (
        [batch("a", 30), batch("b", 10)],
        [cost("b", age=9999.0)],
        40,
        ["b", "a"],
    ),
    "a member to spare before one that ends its gang": (
        [batch("a", 30), batch("b", 10)],
        [cost("a", "g", age=1.0), cost("b", "h", 1)],
        40,
        ["b", "a"],
    ),
    "no gang before one that ends its gang": (
        [batch("a", 30), batch("b", 10)],
        [cost("a", "g", age=1.0), cost("b")],
        40,
        ["b", "a"],
    ),
    "a gang spares only what it has": (
        [batch("g1", 30), batch("g2", 29), batch("x", 10)],
        [cost("g1", "g", 1), cost("g2", "g", 1), cost("x")],
        69,
        ["g1", "x", "g2"],
    ),
    "the rest of a broken gang before breaking another": (
        [batch("g1", 10), batch("g2", 10), batch("h1", 30)],
        [cost("g1", "g", age=1.0), cost("g2", "g"), cost("h1", "h", age=2.0)],
        20,
        ["g1", "g2"],
    ),
    "the rest of a gang that broke before": (
        [batch("g1", 10), batch("x", 30)],
        [cost("g1", "g", -1), cost("x", age=1.0)],
        10,
        ["g1"],
    ),
}


@pytest.mark.parametrize(("pods", "told", "mib", "expected"), ORDER.values(), ids=ORDER.keys())
def test_order_of_best_effort(pods: list[Holding], told: list[EvictionCost], mib: int, expected: list[str]) -> None:
    """spec.priority, then what the loss costs, then what it frees."""
    assert chosen(known(*pods, costs=costs(*told)), missing(mib)) == expected


def test_who_leaves_already_counts_against_its_gang() -> None:
    """As long as the scheduler still has it among the costs."""
    pods = [batch("g1", 10), batch("g2", 30), batch("x", 20)]
    told = costs(cost("g1", "g", 1), cost("g2", "g", 1), cost("x"))
    assert chosen(known(*pods, costs=told), missing(30)) == ["g2"]
    assert chosen(known(*pods, costs=told), missing(20), terminating=("g1",), passed_over=("g1",)) == ["x"]
    known_already = costs(cost("g2", "g", 1), cost("x"))
    assert chosen(known(*pods, costs=known_already), missing(30), terminating=("g1",), passed_over=("g1",)) == ["g2"]


def enabled(name: str, memory: int, priority: int = 5000, first: int = 0, sub: int | None = None) -> Holding:
    return batch(name, memory, priority=priority, eviction=EvictionTerms(True, None, first, sub))


BY_KEYS: dict[str, tuple[list[Holding], list[str]]] = {
    "eviction priority first": ([enabled("a", 9, 4000, 1), enabled("b", 1, 5000, 0)], ["b", "a"]),
    "then priority": ([enabled("a", 9, 5000, sub=1), enabled("b", 1, 4000, sub=9999)], ["b", "a"]),
    "then the label": ([enabled("a", 9, sub=2), enabled("b", 1, sub=1)], ["b", "a"]),
    "whose default is the priority": ([enabled("a", 9), enabled("b", 1, sub=4999)], ["b", "a"]),
    "then size": ([enabled("a", 1), enabled("b", 9)], ["b", "a"]),
}


@pytest.mark.parametrize(("pods", "expected"), BY_KEYS.values(), ids=BY_KEYS.keys())
def test_order_by_priority(pods: list[Holding], expected: list[str]) -> None:
    """Koordinator's keys of the rules by priority."""
    assert chosen(known(*pods, strategy=BY_PRIORITY), missing(10, Reason.MEMORY_EVICT)) == expected


def asking(millis: int, before: int = 0) -> dict[str, Any]:
    """A container that asks for batch-cpu, after an init container that asked for another amount."""
    running = ResourceVector({BATCH_CPU: millis})
    return {"containers": (Container("main", running),), "requests": ResourceVector({BATCH_CPU: max(millis, before)})}


def test_what_goes_for_satisfaction_and_for_requests() -> None:
    """One pod's end counts for each by its own measure: what ran, and all that was reserved for it."""
    pods = [batch("a", **asking(1000, 4000)), batch("b", **asking(1000))]
    satisfaction = EvictionNeed(Reason.BE_CPU_EVICT, RUNNING_BATCH_CPU, "x", (Term("missing", 1000),))
    requests = EvictionNeed(Reason.CPU_ALLOCATABLE_EVICT, BATCH_CPU, "y", (Term("missing", 4000),))
    found = choose([satisfaction, requests], known(*pods), GangAccount({}), frozenset())
    assert [(victim.pod.name, victim.frees) for victim in found.victims] == [("a", 1000)]


def test_order_of_satisfaction() -> None:
    """Who uses the largest part of its request, not who uses most; it frees its request."""
    pods = [batch("a", cpu=900, **asking(2000)), batch("b", cpu=500, **asking(500)), batch("c", cpu=900)]
    wanted = EvictionNeed(Reason.BE_CPU_EVICT, RUNNING_BATCH_CPU, "x", (Term("missing", 600),))
    found = choose([wanted], known(*pods), GangAccount({}), frozenset())
    assert [(victim.pod.name, victim.frees) for victim in found.victims] == [("a", 2000)], (
        "b is spared: a alone is enough"
    )
    more = EvictionNeed(Reason.BE_CPU_EVICT, RUNNING_BATCH_CPU, "x", (Term("missing", 2100),))
    assert chosen(known(*pods), more) == ["b", "a"]


# pods (MiB), missing MiB -> victims
ENOUGH: dict[str, tuple[list[Holding], int, list[str]]] = {
    "one is enough": ([batch("a", 50), batch("b", 60)], 40, ["b"]),
    "exactly": ([batch("a", 40), batch("b", 40)], 80, ["a", "b"]),
    "a small one that a later one makes needless": ([batch("a", 5, priority=1), batch("b", 90)], 80, ["b"]),
    "the costlier is spared first": (
        [batch("a", 50, priority=1), batch("b", 50, priority=2), batch("c", 60, priority=3)],
        105,
        ["a", "c"],
    ),
    "nothing to free": ([batch("a", 0), batch("b", memory=None), batch("c", 10)], 100, ["c"]),
    "not enough of them": ([batch("a", 10), batch("b", 20)], 100, ["b", "a"]),
    "nobody": ([online("a", 100)], 10, []),
}


@pytest.mark.parametrize(("pods", "mib", "expected"), ENOUGH.values(), ids=ENOUGH.keys())
def test_no_more_than_needed(pods: list[Holding], mib: int, expected: list[str]) -> None:
    """No pod is evicted whose stay would still leave the need covered, or who frees nothing of it."""
    assert chosen(known(*pods), missing(mib)) == expected


def test_one_ledger_for_all_needs() -> None:
    """What goes for memory counts for CPU too; and CPU's own victims may make one of memory's needless."""
    pods = [batch("a", 50, cpu=10), batch("b", 40, cpu=300, eviction=EvictionTerms(True))]
    cpu = EvictionNeed(Reason.CPU_EVICT, USED_CPU, "CPU", (Term("missing", 300),))
    facts = known(*pods, strategy=BY_PRIORITY)
    assert chosen(facts, missing(90), cpu) == ["a", "b"]
    assert chosen(facts, missing(40), cpu) == ["b"]


def test_who_is_passed_over() -> None:
    """The next one goes."""
    assert chosen(known(batch("a", 50), batch("b", 40)), missing(10), passed_over=("a",)) == ["b"]


def test_a_bound() -> None:
    """The rest waits for the next tick."""
    many = [batch(f"p{number:03}", 1) for number in range(40)]
    assert len(chosen(known(*many), missing(100))) == 32


# pods (MiB), MiB missing, MiB left (None: it cannot run out), least percent -> victims
HELPFUL: dict[str, tuple[list[Holding], int, int | None, int, list[str]]] = {
    "all together a thousandth": ([batch("a", 6), batch("b", 4)], 10_000, None, 5, []),
    "just less than the share": ([batch("a", 49)], 1000, None, 5, []),
    "the share": ([batch("a", 30), batch("b", 20)], 1000, None, 5, ["a", "b"]),
    "many small ones count together": (
        [batch(f"p{n:02}", 2) for n in range(25)],
        1000,
        None,
        5,
        [f"p{n:02}" for n in range(25)],
    ),
    "by setting, whoever frees anything": ([batch("a", 1), batch("b", 0)], 10_000, None, 0, ["a"]),
    "it holds pipes": ([batch("a", 1), piping("b", 1, 500)], 10_000, None, 5, ["b"]),
    "nobody frees anything": ([batch("a", 0), batch("b", None)], 10_000, 0, 0, []),
    "less is left than is missing": ([batch("a", 10)], 10_000, 200, 5, ["a"]),
    "still too little of what is left": ([batch("a", 9)], 10_000, 200, 5, []),
    "nothing is left: each MiB counts": ([batch("a", 1)], 10_000, 0, 5, ["a"]),
    "more is left than is missing": ([batch("a", 5)], 100, 10_000, 5, ["a"]),
    "a trifle beside one that helps": ([batch("a", 1, priority=1), batch("b", 500)], 1000, None, 5, ["b"]),
    "a trifle that is all that is missing then": (
        [batch("a", 1, priority=1), batch("b", 999)],
        1000,
        None,
        5,
        ["a", "b"],
    ),
    "no trifle, if only together they help": ([batch("a", 30), batch("b", 29)], 1000, None, 5, ["a", "b"]),
}


@pytest.mark.parametrize(("pods", "mib", "left", "least_pct", "expected"), HELPFUL.values(), ids=HELPFUL.keys())
def test_only_who_helps(pods: list[Holding], mib: int, left: int | None, least_pct: int, expected: list[str]) -> None:
    """No pod is evicted for a need that all possible victims would hardly change, nor beside others that do all there is to do."""
    facts = known(*pods, strategy=EvictionStrategy(least_help_pct=least_pct))
    need = msgspec.structs.replace(missing(mib), left=None if left is None else left * MIB)
    assert chosen(facts, need) == expected


def test_a_futile_need_names_what_could_be_freed() -> None:
    """And takes nobody from the need after it."""
    pods = [batch("a", 10, cpu=300, eviction=EvictionTerms(True))]
    cpu = EvictionNeed(Reason.CPU_EVICT, USED_CPU, "CPU", (Term("missing", 300),))
    choice = choose([missing(9000), cpu], known(*pods, strategy=BY_PRIORITY), GangAccount({}), frozenset())
    assert choice.futile == {missing(9000): 10 * MIB}
    assert [(victim.pod.name, victim.need.rule) for victim in choice.victims] == [("a", Reason.CPU_EVICT)]


WORDS: dict[str, tuple[EvictionCost | None, str]] = {
    "nothing known": (None, ""),
    "no gang": (cost("p", age=30.4), "checkpoint 30 s ago"),
    "no checkpoint": (cost("p"), "no checkpoint known"),
    "to spare": (cost("p", "ns/g", 2, 1.0), "gang ns/g can spare 2, checkpoint 1 s ago"),
    "the last": (cost("p", "ns/g"), "gang ns/g ends with it, no checkpoint known"),
    "broken": (cost("p", "ns/g", -1), "gang ns/g has ended already, no checkpoint known"),
}


@pytest.mark.parametrize(("told", "expected"), WORDS.values(), ids=WORDS.keys())
def test_the_cost_in_words(told: EvictionCost | None, expected: str) -> None:
    """For the pod's owner."""
    assert GangAccount(costs(told) if told else {}).words("p") == expected


@given(
    sizes=st.lists(st.integers(0, 50), max_size=12),
    priorities=st.lists(st.integers(0, 2), min_size=12, max_size=12),
    gangs=st.lists(st.sampled_from(["", "g", "h"]), min_size=12, max_size=12),
    mib=st.integers(1, 200),
)
def test_never_one_too_many(sizes: list[int], priorities: list[int], gangs: list[str], mib: int) -> None:
    """If all together are enough the need is covered, and without any one of the chosen it would not be."""
    pods = [batch(f"p{i}", size, priority=priorities[i]) for i, size in enumerate(sizes)]
    told = costs(*(cost(f"p{i}", gangs[i], 1, float(i)) for i in range(len(sizes))))
    held = {each.pod.name: each.memory or 0 for each in pods}
    picked = chosen(known(*pods, costs=told), missing(mib))
    freed = sum(held[name] for name in picked)
    assert (freed >= mib) == (sum(sizes) >= mib)
    assert len(set(picked)) == len(picked) and all(held[name] for name in picked)
    assert not picked or freed * 20 >= mib, "a victim helps"
    if freed >= mib:
        assert all(freed - held[name] < mib for name in picked)


def test_pods_are_not_confused() -> None:
    """A pod is known by its uid; same names in two namespaces are two pods."""
    one, other = batch("p", 10), Holding(make_pod("e", "p", "q", qos_label=QoSClass.BE), memory=20)
    choice = choose([missing(15)], known(one, other), GangAccount({}), frozenset())
    assert [victim.pod.uid for victim in choice.victims] == ["q"]
