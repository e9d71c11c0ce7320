"""Thrashing: whether online pods read back what was taken from them, told by counters instead of waiting times.

    read back = pages of all pods - pages of best effort    (workingset_refault of memory.stat, within 10 s)
    reclaimed = pages of the node's own reclaim             (pgsteal of /proc/vmstat), or at kubepods' own limit
    thrashing = the smaller of both is a share of what is left of the node, or of kubepods' limit

Newer kernels count few of these waits as stalls (`full` of memory.pressure), however many pages come back. A pod that
reads back within its own limit is nobody's shortage: neither the node nor kubepods took anything then. Android's lmkd
compares refaults with the page cache in the same way (ro.lmk.thrashing_limit).
"""

from __future__ import annotations

import msgspec

from agent.core.limit.memory_headroom import MemoryLevel, memory_levels
from agent.core.observe.observation import MemoryActivity, Observation
from model.decision import Decision, TermSum, Unit
from model.explain import amount
from model.node import Node
from model.reason import Reason
from model.strategy import EvictionStrategy

_WINDOW_SECONDS = 10.0
_PAGES_A_HIT = 64
"""No more pages are taken for one charge that met the limit: the kernel charges in batches (MEMCG_CHARGE_BATCH)."""
NAME = "read back by online pods"


class Activities(msgspec.Struct, frozen=True):
    """The counters of the last ten seconds, oldest first, each with its monotonic time."""

    seen: tuple[tuple[float, MemoryActivity], ...] = ()


def remembered(before: Activities, observation: Observation) -> Activities:
    """With this pass; nothing is kept over a gap in the counters, or where one went back."""
    now, newest = observation.monotonic_seconds, observation.memory_activity
    if newest is None:
        return Activities()
    kept = tuple(each for each in before.seen if now - _WINDOW_SECONDS <= each[0] < now)
    if kept and _went_back(kept[-1][1], newest):
        kept = ()
    return Activities((*kept, (now, newest)))


def thrashing(
    activities: Activities, observation: Observation, node: Node, strategy: EvictionStrategy
) -> Decision | None:
    """What online pods read back, of the level that it hurts most; None where it is not counted, or not asked for."""
    percent = strategy.thrash_refault_pct
    if percent is None or len(activities.seen) < 2:
        return None
    first, last = activities.seen[0][1], activities.seen[-1][1]
    found = [(level, terms) for level in memory_levels(observation, node) if (terms := _refaulted(first, last, level))]
    if not found:
        return None
    level, terms = max(found, key=lambda each: each[1].value / max(_left(each[0]), 1))
    thrashes = terms.value > 0 and terms.value * 100 >= _left(level) * percent
    reason = Reason.THRASHING if thrashes else Reason.WITHIN_THRESHOLD
    seconds, left = activities.seen[-1][0] - activities.seen[0][0], amount(_left(level), Unit.BYTES)
    detail = f"within {seconds:.0f} s; {percent} % of the {left} that are left of {level.of} are thrashing"
    subject, now = f"node/{node.name}", observation.at_seconds
    return Decision(subject, NAME, terms.value, Unit.BYTES, reason, terms.terms, "", now, detail)


def _refaulted(first: MemoryActivity, last: MemoryActivity, level: MemoryLevel) -> TermSum | None:
    """In bytes, no more than what that level's shortage took."""
    pods = _grown(first.pods_refaulted, last.pods_refaulted)
    best_effort = _grown(first.best_effort_refaulted, last.best_effort_refaulted)
    limit_hits = _grown(first.pods_limit_hits, last.pods_limit_hits)
    reclaimed = (limit_hits or 0) * _PAGES_A_HIT if level.of_pods else last.reclaimed_pages - first.reclaimed_pages
    if pods is None or best_effort is None:
        return None
    terms = TermSum().add("read back by all pods", pods * last.page_bytes)
    terms.add("by best effort", -best_effort * last.page_bytes).at_least("none", 0)
    terms.at_most(
        "taken", reclaimed * last.page_bytes, "at kubepods' limit" if level.of_pods else "by the node's reclaim"
    )
    return terms


def _left(level: MemoryLevel) -> int:
    return max(level.whole - level.used, 0)


def _grown(first: int | None, last: int | None) -> int | None:
    return None if first is None or last is None else last - first


def _went_back(before: MemoryActivity, after: MemoryActivity) -> bool:
    """A cgroup was made again, or counters came or went: a difference says nothing."""
    pairs = (
        (before.reclaimed_pages, after.reclaimed_pages),
        (before.pods_refaulted, after.pods_refaulted),
        (before.best_effort_refaulted, after.best_effort_refaulted),
        (before.pods_limit_hits, after.pods_limit_hits),
    )
    return any((old is None) != (new is None) or (old or 0) > (new or 0) for old, new in pairs)
