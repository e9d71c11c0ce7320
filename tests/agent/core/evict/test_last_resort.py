"""What the brake's thread may kill, and in which order."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent.core.evict.departed import DepartedPods
from agent.core.evict.last_resort import last_resort, urgency
from agent.core.limit.watch import LastResort
from agent.core.observe.observation import CgroupPressure, CgroupSample, Places, PodPlace, Stall
from model.node import Node
from model.pod.colocation import EvictionTerms
from model.pod.status import PodPhase
from model.qos import KubernetesQoS, QoSClass
from model.report import EvictionCost
from model.resources import MEMORY, ResourceVector
from model.strategy import EvictionStrategy
from tests.agent.core.evict.evicting import GIB, MIB, ROOT, Holding, batch, costs, limited, node, online, piping, seen


def prepared(*holdings: Holding, terminating: tuple[str, ...] = (), told: Any = (), **more: Any) -> LastResort | None:
    fields = {"strategy": EvictionStrategy(), "look": seen(*holdings), "node": node(), **more}
    pods = DepartedPods().followed(fields["look"], (each.pod for each in holdings))
    return last_resort(fields["look"], fields["node"], pods, fields["strategy"], costs(*told), frozenset(terminating))


def order(*holdings: Holding, **more: Any) -> list[str]:
    found = prepared(*holdings, **more)
    assert found is not None
    return [victim.name for victim in found.victims]


def test_the_marks() -> None:
    """Three percent of the node, and of what all pods together may have; 100 MiB where that is more."""
    found = prepared()
    assert found is not None
    assert (found.node_available_bytes, found.kubepods_room_bytes, found.kubepods_limit_bytes) == (
        10 * GIB * 3 // 100,
        None,
        None,
    )
    limited = prepared(look=seen(kubepods_memory_limit_bytes=GIB), strategy=EvictionStrategy(last_resort_pct=5))
    assert limited is not None
    assert (limited.kubepods_room_bytes, limited.kubepods_limit_bytes) == (100 * MIB, GIB)


NONE: dict[str, dict[str, Any]] = {
    "evictions are off": {"strategy": EvictionStrategy(enable=False)},
    "it is off": {"strategy": EvictionStrategy(last_resort_pct=None)},
    "no capacity is known": {"node": node(0)},
}


@pytest.mark.parametrize("more", NONE.values(), ids=NONE.keys())
def test_no_last_resort(more: dict[str, Any]) -> None:
    """Nothing is killed by guess."""
    assert prepared(batch("a"), **more) is None


def test_a_victim() -> None:
    """What the thread needs, and nothing else."""
    found = prepared(batch("a", 10))
    assert found is not None
    (victim,) = found.victims
    assert msgspec.structs.astuple(victim) == ("a", "d", "a", f"{ROOT}/poda", 10 * MIB)


def spared(name: str, memory: int) -> Holding:
    return batch(name, memory, eviction=EvictionTerms(features=frozenset({"CPUEvict"})))


ORDER: dict[str, tuple[list[Holding], dict[str, Any], list[str]]] = {
    "the largest": ([batch("a", 1), batch("b", 3), batch("c", 2)], {}, ["b", "c", "a"]),
    "priority first": ([batch("a", 3), batch("b", 1, priority=4000)], {}, ["b", "a"]),
    "cost before size": (
        [batch("a", 3), batch("b", 1)],
        {"told": [EvictionCost("a", "g"), EvictionCost("b", "g2", 1)]},
        ["b", "a"],
    ),
    "the terminating pod first": ([batch("a", 3), batch("b", 1, priority=9000)], {"terminating": ("b",)}, ["b", "a"]),
    "who is being deleted first": ([batch("a", 3), batch("b", 1, priority=9000, deleting=True)], {}, ["b", "a"]),
    "who holds more than its own limit first": (
        [batch("a", 3), limited("b", 2, 2), limited("c", 2, 1, priority=9000)],
        {},
        ["c", "a", "b"],
    ),
    "who forbids it while it holds more than its own limit": (
        [limited("a", 9, 8, eviction=EvictionTerms(features=frozenset())), batch("b", 10)],
        {},
        ["a", "b"],
    ),
    "who forbids it last": ([spared("a", 9), batch("b", 1, priority=9000)], {}, ["b", "a"]),
    "BestEffort without the label counts": ([batch("a", 1, qos_label=QoSClass.NONE)], {}, ["a"]),
    "switches of the rules by priority do not": ([batch("a", 1, eviction=EvictionTerms(enabled=False))], {}, ["a"]),
    "uid at last": ([batch("b", 1), batch("a", 1)], {}, ["a", "b"]),
    "never online": ([online("a", 9), batch("b", 1)], {}, ["b"]),
    "never who ended": ([batch("a", 9, phase=PodPhase.FAILED), batch("b", 1)], {}, ["b"]),
    "never who holds nothing": ([batch("a", 0), batch("c", None), batch("b", 1)], {}, ["b"]),
    "never a static pod": ([batch("a", 9, cgroup_uid="hash"), batch("b", 1, cgroup_uid="b")], {}, ["b"]),
    "never what the node lives on": (
        [
            batch("a", 9, priority=2_000_001_000),
            batch("b", 8, priority=2 * 10**9),
            batch("c", 1, priority=2 * 10**9 - 1),
        ],
        {},
        ["c"],
    ),
    "labelled BE, but it lives elsewhere": (
        [batch("a", 9, kubernetes_qos=KubernetesQoS.BURSTABLE), batch("b", 1)],
        {},
        ["b"],
    ),
    "the large one behind many small": (
        [*(batch(f"p{i}", 1, priority=4000) for i in range(12)), batch("z", 900)],
        {},
        [*(f"p{i}" for i in range(7)), "z"],
    ),
    "who holds pipes, before eight that hold more memory": (
        [*(batch(f"p{i}", 9) for i in range(8)), piping("z", 1, 900)],
        {},
        ["z", *(f"p{i}" for i in range(7))],
    ),
    "small ones that help together": (
        [*(batch(f"p{i}", 9, priority=4000) for i in range(8)), batch("z", 900)],
        {},
        [f"p{i}" for i in range(8)],
    ),
    "eight at most": ([batch(f"p{i}", 20 - i) for i in range(12)], {}, [f"p{i}" for i in range(8)]),
}


@pytest.mark.parametrize(("pods", "more", "expected"), ORDER.values(), ids=ORDER.keys())
def test_order(pods: list[Holding], more: dict[str, Any], expected: list[str]) -> None:
    """As an eviction for memory would choose, of pods that live below the best-effort root."""
    assert order(*pods, **more) == expected


@pytest.mark.parametrize(("others", "ending"), [(1, 7), (9, 4)])
def test_pods_that_never_end_leave_room_for_others(others: int, ending: int) -> None:
    """Whoever terminates is tried first, and may hold what it holds for ever, as processes that trace each other do."""
    stuck = [batch(f"s{number}", 90 + number, deleting=True) for number in range(9)]
    found = order(*stuck, *(batch(f"o{number}", 80) for number in range(others)))
    assert [name[0] for name in found] == ["s"] * ending + ["o"] * (8 - ending)


def test_neither_do_these_hide_who_would_help() -> None:
    """Small pods of low priority stand before a large one, and what never ends helps nobody."""
    stuck = [batch(f"s{number}", 1000, deleting=True) for number in range(4)]
    small = [batch(f"o{number}", 1, priority=5001) for number in range(4)]
    assert "large" in order(*stuck, *small, batch("large", 900, priority=5500))


@pytest.mark.parametrize(
    "path", ["/kubepods/burstable/poda", "/kubepods/besteffort", "/kubepods/besteffort2/poda", "/"]
)
def test_only_below_the_root(path: str) -> None:
    """Whatever a pod is said to be: its cgroup must be one of those that exist below the root."""
    pod = batch("a", 9)
    places = Places({"a": PodPlace(path)}, (f"{ROOT}/podb",))
    assert order(pod, look=seen(pod, places=places)) == []


STALLS: dict[str, tuple[EvictionStrategy, float, bool]] = {
    "below": (EvictionStrategy(), 9.9, False),
    "at it": (EvictionStrategy(), 10.0, True),
    "never": (EvictionStrategy(thrash_full_pct=None), 100.0, False),
    "any": (EvictionStrategy(thrash_full_pct=0), 0.1, True),
    "none at all": (EvictionStrategy(thrash_full_pct=0), 0.0, False),
}


@pytest.mark.parametrize(("strategy", "stall", "urgent"), STALLS.values(), ids=STALLS.keys())
def test_thrashing(strategy: EvictionStrategy, stall: float, urgent: bool) -> None:
    """Full pressure over ten seconds; a kernel without pressure files never says so."""
    pressure = CgroupPressure(memory_full=Stall(avg10_pct=stall), memory_some=Stall(avg10_pct=100.0))
    assert bool(urgency(seen(node_pressure=pressure), node(), strategy)) is urgent
    assert urgency(seen(), node(), strategy) == ""


def waiting(some: float | None) -> CgroupSample:
    return CgroupSample(0, 0, pressure=CgroupPressure(memory_some=None if some is None else Stall(avg10_pct=some)))


WAITING: dict[str, tuple[dict[str, Any], bool]] = {
    "nobody's pressure is known": ({"burstable": waiting(None)}, True),
    "burstable pods do not wait": ({"burstable": waiting(0)}, False),
    "they hardly do": ({"burstable": waiting(9.9)}, False),
    "they do": ({"burstable": waiting(10)}, True),
    "a guaranteed pod does": ({"burstable": waiting(0), "pods": {"g": waiting(30)}}, True),
    "a best-effort pod does": ({"burstable": waiting(0), "pods": {"b": waiting(99)}}, False),
}


@pytest.mark.parametrize("whose", ["node", "pods"])
@pytest.mark.parametrize(("look", "urgent"), WAITING.values(), ids=WAITING.keys())
def test_thrashing_is_urgent_where_online_pods_wait(look: dict[str, Any], urgent: bool, whose: str) -> None:
    """Best effort at its own memory.high is every task of an otherwise idle node."""
    thrashing = CgroupPressure(memory_full=Stall(avg10_pct=90.0))
    full = {"node_pressure": thrashing} if whose == "node" else {"kubepods": CgroupSample(0, 0, pressure=thrashing)}
    places = Places({"g": PodPlace("/kubepods/podg"), "b": PodPlace(f"{ROOT}/podb")}, (f"{ROOT}/podb",))
    assert bool(urgency(seen(places=places, **full, **look), node(), EvictionStrategy())) is urgent


def test_marks_without_huge_pages() -> None:
    """Three percent of what can be used at all."""
    huge = Node("n", ResourceVector({MEMORY: 10 * GIB, "hugepages-1Gi": 5 * GIB}), ResourceVector())
    found = prepared(node=huge)
    assert found is not None and found.node_available_bytes == 5 * GIB * 3 // 100
    assert not urgency(seen(used=9000), huge, EvictionStrategy())
    assert urgency(seen(used=10100), huge, EvictionStrategy())


@pytest.mark.parametrize(("used", "urgent"), [(9932, False), (9933, True)])
def test_at_the_last_resort(used: int, urgent: bool) -> None:
    """3 % of 10 GiB are 307 MiB."""
    assert bool(urgency(seen(used=used), node(), EvictionStrategy())) is urgent
    assert urgency(seen(used=used), node(), EvictionStrategy(last_resort_pct=None)) == ""
