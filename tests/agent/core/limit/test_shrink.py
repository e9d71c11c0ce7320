"""Shrinking before evicting: when, of whom, in which steps, and how long evictions wait for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from agent.core.limit.shrink import (
    NAME,
    PodLook,
    ReclaimAnswer,
    ReclaimOrder,
    ShrinkFacts,
    Shrinking,
    ShrinkMemory,
    decide_shrinking,
)
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, CgroupSample, Missing, NodeSample, Observation, Places, PodPlace
from agent.tick import TickState
from model.decision import Decision
from model.pod.pod import Pod
from model.qos import KubernetesQoS
from model.reason import Reason
from model.strategy import EvictionStrategy
from tests.agent.conftest import Build

MIB, GIB = 1 << 20, 1 << 30
V2 = Layout("/kubepods", 2)
BUILD = Build()
STRATEGY = EvictionStrategy()
CALM, MARK, OVER = 6700, 6900, 7300
"""MiB in use of 10,000: below the mark of 67 %, above it, beyond the threshold of 70 %."""


def look(memory: int = 1000, inactive: int = 800, refaulted: int = 0, stall: float = 0.0) -> PodLook:
    """MiB."""
    return PodLook(memory * MIB, inactive * MIB, refaulted * MIB, stall)


def answer(
    uid: str, seen: PodLook | None = None, asked: int = 0, freed: int = 0, *, unsupported: bool = False
) -> ReclaimAnswer:
    return ReclaimAnswer(uid, asked * MIB, freed * MIB, seen, unsupported)


def place(pod: Pod) -> PodPlace:
    return PodPlace(V2.pod(pod.status.kubernetes_qos, pod.uid))


class Play:
    """One agent's shrinking, a tick a second unless told otherwise; pods a and b are best effort."""

    def __init__(self, *pods: Pod, strategy: EvictionStrategy = STRATEGY, layout: Layout = V2) -> None:
        self.pods = pods or (BUILD.batch("a"), BUILD.batch("b"))
        self.strategy = strategy
        self.layout = layout
        self.memory = ShrinkMemory()
        self.now = 100.0

    def seen(self, used: int, **more: Any) -> Observation:
        places = {pod.uid: place(pod) for pod in self.pods}
        below = tuple(each.path for each in places.values() if each.path.startswith(self.layout.best_effort))
        fields: dict[str, Any] = {
            "node_sample": NodeSample(0, used * MIB, 2, swap_free_bytes=GIB),
            "node": BUILD.node(memory=10_000 * MIB),
            "places": Places(places, below),
        }
        seen: Observation = BUILD.seen(self.now, **{**fields, **more})
        return seen

    def tick(self, used: int, *answers: ReclaimAnswer, after: float = 1.0, **more: Any) -> Shrinking:
        self.now += after
        facts = ShrinkFacts(self.strategy, self.pods, answers)
        self.memory, found = decide_shrinking(self.memory, self.layout, self.seen(used, **more), facts)
        return found

    def looked(self, used: int = MARK, **looks: PodLook | None) -> Shrinking:
        """After a tick that had every pod looked at."""
        self.tick(used)
        looks = looks or {"a": look(), "b": look()}
        return self.tick(used, *(answer(f"uid-{name}", seen) for name, seen in looks.items()))


def reason(found: Shrinking) -> Reason | None:
    return found.decisions[0].reason if found.decisions else None


def steps(found: Shrinking) -> dict[str, int]:
    """MiB by pod, in order."""
    return {order.uid.removeprefix("uid-"): order.bytes // MIB for order in found.orders if order.bytes}


def test_looks_come_first_and_then_steps_of_the_coldest() -> None:
    """A tick that knows nobody looks at everybody; each step is explained, and none is larger than 32 MiB."""
    play = Play()
    first = play.tick(MARK)
    assert first.orders == (
        ReclaimOrder("uid-a", "/kubepods/besteffort/poduid-a"),
        ReclaimOrder("uid-b", "/kubepods/besteffort/poduid-b"),
    )
    assert reason(first) is Reason.SHRINKING and not first.holds_evictions
    found = play.tick(MARK, answer("uid-a", look(inactive=100)), answer("uid-b", look(inactive=900)))
    assert list(steps(found).items()) == [("b", 32), ("a", 32)]
    whole, step, _ = found.decisions
    assert (whole.subject, whole.name, whole.value) == ("node/n", NAME, 200 * MIB)
    assert {term.name: term.value // MIB for term in whole.terms} == {"used": MARK, "mark": -CALM}
    assert (step.subject, step.value) == ("pod/default/b", 32 * MIB)


WHEN: Mapping[str, tuple[int, dict[str, Any], Reason | None]] = {
    "enough memory": (CALM, {}, None),
    "short": (MARK, {}, Reason.SHRINKING),
    "no free swap": (MARK, {"node_sample": NodeSample(0, MARK * MIB, 2)}, Reason.NO_SWAP),
    "kubepods' own limit is short": (
        100,
        {"kubepods": CgroupSample(0, 690 * MIB), "kubepods_memory_limit_bytes": 1000 * MIB},
        Reason.SHRINKING,
    ),
    "the node's memory is not known": (MARK, {"node_sample": Missing("/m", Absence.UNREADABLE)}, None),
    "no Node object": (MARK, {"node": None}, None),
}


@pytest.mark.parametrize(("used", "more", "expected"), WHEN.values(), ids=WHEN)
def test_when(used: int, more: dict[str, Any], expected: Reason | None) -> None:
    found = Play().tick(used, **more)
    assert reason(found) is expected
    assert bool(found.orders) is (expected is Reason.SHRINKING)


OFF = {
    "evictions are off": EvictionStrategy(enable=False),
    "memory evicts nobody": EvictionStrategy(memory_threshold_pct=None),
    "shrinking is off": EvictionStrategy(shrink_margin_pct=None),
}


@pytest.mark.parametrize("strategy", OFF.values(), ids=OFF)
def test_switched_off(strategy: EvictionStrategy) -> None:
    """Nothing is said or done."""
    assert Play(strategy=strategy).tick(OVER) == Shrinking()


def test_a_kernel_without_memory_reclaim() -> None:
    """v1 never, v2 after the first answer; evictions wait for neither."""
    on_v1 = Play(layout=Layout("/kubepods", 1)).tick(OVER)
    assert (reason(on_v1), on_v1.orders, on_v1.holds_evictions) == (Reason.SHRINK_UNSUPPORTED, (), False)
    play = Play()
    play.tick(OVER)
    found = play.tick(OVER, answer("uid-a", unsupported=True))
    assert (reason(found), found.orders, found.holds_evictions) == (Reason.SHRINK_UNSUPPORTED, (), False)


SIZES: Mapping[str, tuple[int, dict[str, PodLook | None], dict[str, int]]] = {
    "a quarter of a small pod": (MARK, {"a": look(memory=40)}, {"a": 10}),
    "no more than is missing": (CALM + 40, {"a": look(), "b": look(900)}, {"a": 32, "b": 8}),
    "too little to be worth it": (MARK, {"a": look(memory=3)}, {}),
    "nothing of a pod that cannot be read": (MARK, {"a": None}, {}),
    "two at once": (MARK, {"a": look(), "b": look(), "c": look()}, {"a": 32, "b": 32}),
    "one that waits for memory rests": (MARK, {"a": look(stall=10.0), "b": look()}, {"b": 32}),
}


@pytest.mark.parametrize(("used", "looks", "expected"), SIZES.values(), ids=SIZES)
def test_sizes(used: int, looks: dict[str, PodLook | None], expected: dict[str, int]) -> None:
    play = Play(*(BUILD.batch(name) for name in looks))
    assert steps(play.looked(used, **looks)) == expected


OTHERS = {
    "an online pod": BUILD.pod("a"),
    "one that its kubelet keeps elsewhere": BUILD.batch("a", kubernetes=KubernetesQoS.BURSTABLE),
}


@pytest.mark.parametrize("pod", OTHERS.values(), ids=OTHERS)
def test_nobody_else_is_touched(pod: Pod) -> None:
    found = Play(pod).tick(OVER)
    assert (reason(found), found.orders, found.holds_evictions) == (Reason.SHRINK_EXHAUSTED, (), False)


STOPS = {
    "less than half was freed": answer("uid-a", look(), asked=32, freed=15),
    "what was taken is read back": answer("uid-a", look(refaulted=16), asked=32, freed=32),
    "it waits for memory": answer("uid-a", look(stall=12.0), asked=32, freed=32),
    "it cannot be read any more": answer("uid-a", None, asked=32),
}


@pytest.mark.parametrize("told", STOPS.values(), ids=STOPS)
def test_a_pod_that_gives_no_more_rests_and_the_next_gives(told: ReclaimAnswer) -> None:
    """For a minute, then it is looked at again."""
    play = Play(BUILD.batch("a"))
    assert steps(play.looked(a=look())) == {"a": 32}
    fine = play.tick(MARK, answer("uid-a", look(), asked=32, freed=32))
    assert steps(fine) == {"a": 32}
    found = play.tick(MARK, told)
    assert (reason(found), found.orders) == (Reason.SHRINK_EXHAUSTED, ())
    play.pods = (*play.pods, BUILD.batch("b"))
    play.tick(MARK)
    assert steps(play.tick(MARK, answer("uid-b", look()))) == {"b": 32}
    play.tick(MARK, answer("uid-b", None), after=50)
    again = play.tick(MARK, after=10)
    assert [order.uid for order in again.orders] == ["uid-a"]
    assert steps(play.tick(MARK, answer("uid-a", look(refaulted=16)))) == {"a": 32}


def test_what_was_taken_is_watched_until_the_next_look() -> None:
    """A pod that reads it back some seconds later rests, too."""
    play = Play(BUILD.batch("a"))
    play.looked(CALM + 32, a=look())
    play.tick(CALM, answer("uid-a", look(), asked=32, freed=32))
    assert [order.bytes for order in play.tick(MARK, after=20).orders] == [0]
    assert play.tick(MARK, answer("uid-a", look(refaulted=20))).orders == ()


def test_one_order_a_pod() -> None:
    """While it is under way; after five seconds it keeps nobody else from giving."""
    play = Play(BUILD.batch("a"), BUILD.batch("b"), BUILD.batch("c"))
    assert steps(play.looked(a=look(), b=look(), c=look())) == {"a": 32, "b": 32}
    assert steps(play.tick(MARK)) == {}
    assert steps(play.tick(MARK, answer("uid-a", look(inactive=1), asked=32, freed=32))) == {"c": 32}
    assert [order.uid for order in play.tick(MARK, after=9).orders] == ["uid-a"]
    assert steps(play.tick(MARK, answer("uid-a", look(inactive=1)))) == {"a": 32}


def test_evictions_wait_while_steps_free_memory() -> None:
    """Three seconds for the first fruitful step, as long after each; none before the threshold."""
    play = Play()
    assert not play.looked(MARK).holds_evictions
    assert play.tick(OVER).holds_evictions
    assert play.tick(OVER, answer("uid-a", look(), asked=32, freed=32), after=2).holds_evictions
    assert play.tick(OVER, answer("uid-a", look(), asked=32, freed=32), after=2).holds_evictions
    assert not play.tick(OVER, after=3).holds_evictions


def test_nobody_waits_for_steps_that_free_nothing() -> None:
    play = Play(BUILD.batch("a"))
    play.looked(OVER, a=look())
    found = play.tick(OVER, answer("uid-a", look(), asked=32))
    assert (reason(found), found.holds_evictions) == (Reason.SHRINK_EXHAUSTED, False)


def test_the_wait_is_bounded() -> None:
    """By the setting, from the moment the threshold was reached; below it a new wait may begin."""
    play = Play(strategy=EvictionStrategy(longest_shrink_seconds=4.0))
    fruitful = answer("uid-a", look(), asked=32, freed=32)
    play.looked(MARK)
    assert [play.tick(OVER, fruitful).holds_evictions for _ in range(6)] == [True] * 4 + [False] * 2
    assert not play.tick(MARK, fruitful).holds_evictions
    assert play.tick(OVER, fruitful).holds_evictions


def test_totals_are_kept_and_pods_that_are_gone_are_not() -> None:
    play = Play()
    play.looked()
    play.pods = (BUILD.batch("b"),)
    play.tick(MARK, answer("uid-a", look(), asked=32, freed=32), answer("uid-b", look(), asked=32, freed=1))
    memory = play.memory
    assert (memory.reclaimed_bytes, memory.fruitful_steps, memory.fruitless_steps) == (33 * MIB, 1, 1)
    assert list(memory.pods) == ["uid-b"]


def test_the_memory_can_be_written_down() -> None:
    """A journal's head has it."""
    play = Play()
    play.looked(OVER)
    state = TickState(shrink=play.memory)
    assert msgspec.json.decode(msgspec.json.encode(state), type=TickState) == state


def test_every_decision_is_whole(terms: Any) -> None:
    """A step's terms say what made it so small."""
    found = Play(BUILD.batch("a")).looked(CALM + 5, a=look(memory=40))
    step: Decision = found.decisions[1]
    assert terms(step) == {"a step": 32 * MIB, "a part of what it holds": -22 * MIB, "missing": -5 * MIB}
