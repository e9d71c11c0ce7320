"""Thrashing told by counters: what online pods read back of what the shortage took."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.evict.thrashing import Activities, remembered, thrashing
from agent.core.observe.observation import MemoryActivity
from model.decision import Decision
from model.reason import Reason
from model.strategy import EvictionStrategy
from tests.agent.core.evict.evicting import GIB, MIB, NOW, node, seen, terms

PAGES = MIB // 4096
"""Pages of a MiB."""


def activity(reclaimed: int = 0, pods: int | None = 0, best_effort: int | None = 0, limit_hits: int | None = 0) -> Any:
    """In MiB; limit hits as they are."""
    mib = [None if value is None else value * PAGES for value in (reclaimed, pods, best_effort)]
    return MemoryActivity(mib[0] or 0, mib[1], mib[2], limit_hits)


def found(*passes: MemoryActivity | None, used: int = 9216, every: float = 1.0, **more: Any) -> Decision | None:
    """The last of several passes; of 10 GiB, 1 GiB is left."""
    strategy, memory = more.pop("strategy", EvictionStrategy()), Activities()
    for number, counters in enumerate(passes):
        look = seen(used=used, at=NOW + number * every, memory_activity=counters, **more)
        memory = remembered(memory, look)
    return thrashing(memory, look, node(), strategy)


CASES: dict[str, tuple[list[MemoryActivity | None], dict[str, Any], tuple[int, Reason]]] = {
    "half of what is left": ([activity(), activity(600, 512)], {}, (512, Reason.THRASHING)),
    "less": ([activity(), activity(600, 511)], {}, (511, Reason.WITHIN_THRESHOLD)),
    "by setting": (
        [activity(), activity(600, 103)],
        {"strategy": EvictionStrategy(thrash_refault_pct=10)},
        (103, Reason.THRASHING),
    ),
    "adds up over ten seconds": (
        [activity(at * 60, at * 60) for at in range(11)],
        {},
        (600, Reason.THRASHING),
    ),
    "what was before counts no more": (
        [activity(), *[activity(900, 900)] * 12],
        {},
        (0, Reason.WITHIN_THRESHOLD),
    ),
    "best effort's own does not count": ([activity(), activity(900, 900, 400)], {}, (500, Reason.WITHIN_THRESHOLD)),
    "best effort's alone": ([activity(), activity(900, 900, 900)], {}, (0, Reason.WITHIN_THRESHOLD)),
    "within limits of their own: nobody took it": ([activity(), activity(0, 9000)], {}, (0, Reason.WITHIN_THRESHOLD)),
    "no more than the node took": ([activity(), activity(100, 9000)], {}, (100, Reason.WITHIN_THRESHOLD)),
    "taken, and not read back": ([activity(), activity(9000, 0)], {}, (0, Reason.WITHIN_THRESHOLD)),
    "more is left": ([activity(), activity(600, 512)], {"used": 9000}, (512, Reason.WITHIN_THRESHOLD)),
    "nothing is left": ([activity(), activity(1, 1)], {"used": 10_240}, (1, Reason.THRASHING)),
    "nothing is left, nothing comes back": ([activity()] * 2, {"used": 10_240}, (0, Reason.WITHIN_THRESHOLD)),
    "at the limit of all pods": (
        [activity(), activity(0, 600, 0, 4000)],
        {"kubepods_memory_limit_bytes": GIB},
        (600, Reason.THRASHING),
    ),
    "at that limit, as much as it took": (
        [activity(), activity(0, 600, 0, 40)],
        {"kubepods_memory_limit_bytes": GIB},
        (10, Reason.WITHIN_THRESHOLD),
    ),
    "a cgroup made again": (
        [activity(500, 500), activity(600, 0), activity(600, 400)],
        {},
        (0, Reason.WITHIN_THRESHOLD),
    ),
}


@pytest.mark.parametrize(("passes", "more", "expected"), CASES.values(), ids=CASES.keys())
def test_thrashing(passes: list[MemoryActivity | None], more: dict[str, Any], expected: tuple[int, Reason]) -> None:
    """A share of what is left, read back by online pods after node or kubepods' limit had taken it."""
    decision = found(*passes, **more)
    assert decision is not None
    assert (decision.value // MIB, decision.reason) == expected


NOT_KNOWN: dict[str, tuple[list[MemoryActivity | None], dict[str, Any]]] = {
    "switched off": ([activity(), activity(900, 900)], {"strategy": EvictionStrategy(thrash_refault_pct=None)}),
    "one pass is no difference": ([activity(900, 900)], {}),
    "the kernel counts nothing": ([None, None], {}),
    "a gap": ([activity(), None, activity(900, 900)], {}),
    "pods are not counted": ([activity(0, None, None), activity(900, None, None)], {}),
    "best effort is not counted": ([activity(0, 0, None), activity(900, 900, None)], {}),
    "so long ago": ([activity(), activity(900, 900)], {"every": 11.0}),
}


@pytest.mark.parametrize(("passes", "more"), NOT_KNOWN.values(), ids=NOT_KNOWN.keys())
def test_not_known(passes: list[MemoryActivity | None], more: dict[str, Any]) -> None:
    """Nothing is said."""
    assert found(*passes, **more) is None


def test_the_record() -> None:
    """Terms, and what is left of what."""
    decision = found(activity(), activity(700, 800, 50))
    assert decision is not None and terms(decision) == {
        "read back by all pods": 800 * MIB,
        "by best effort": -50 * MIB,
        "taken": -50 * MIB,
    }
    assert decision.detail == (
        "within 1 s; 50 % of the 1Gi that are left of the node, MemTotal - MemAvailable are thrashing"
    )


def test_memory_is_bounded() -> None:
    """However often something wakes the tick."""
    memory = Activities()
    for number in range(200):
        memory = remembered(memory, seen(at=NOW + number * 0.5, memory_activity=activity(number, number)))
    assert len(memory.seen) == 21
