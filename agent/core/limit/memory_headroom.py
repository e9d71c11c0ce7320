"""Memory headroom: how far best effort's memory may grow before eviction starts; memory.high on v2, and early ticks.

    headroom = the smaller of  node capacity x threshold - node use  and  kubepods limit x threshold - kubepods use

On v2 `memory.high` of the best-effort root is what it is charged with plus the headroom, and no less than 1/16 of the
node: beyond it the kernel slows it down and reclaims its cache, which buys eviction the time it needs (docs/adr/0010).
Huge pages that were set aside are neither in use nor part of the node.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from agent.core.limit.wanted_limit import Limit
from agent.core.limit.watch import MemoryMark, MemorySigns
from agent.core.observe.knobs import UNLIMITED
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, CgroupSample, Knob, KnobReading, Missing, NodeSample, Observation
from model.decision import Decision, TermSum, Unit
from model.node import Node
from model.qos import KubernetesQoS
from model.reason import Reason
from model.resources import MEMORY
from model.strategy import EvictionStrategy

_PAGE_BYTES = 4096
_LAST_BYTES = 100 << 20
_LAST_AT_MOST_BYTES = 4 << 30
_FLOOR_PARTS = 16
_HUGE_PAGES = "hugepages-"
_STEADY_PARTS = 64
"""A value that would change by less than one part of these stays."""


class MemoryLevel(msgspec.Struct, frozen=True):
    """How much of a whole is used, and whose that is; `of_pods` where it is kubepods' limit."""

    used: int
    whole: int
    of: str
    of_pods: bool = False


class MemoryHeadroom(msgspec.Struct, frozen=True):
    """Bytes left to the threshold, negative beyond it, and of what; best effort may hold `floor_bytes` in any case."""

    bytes: int
    note: str
    floor_bytes: int = 0


def node_memory_bytes(node: Node) -> int:
    """Capacity without the huge pages that were set aside (Node capacity hugepages-*): no eviction frees them."""
    return max(node.capacity[MEMORY] - _huge_pages(node), 0)


def memory_levels(observation: Observation, node: Node | None) -> tuple[MemoryLevel, ...]:
    """Of the node, and of all pods together where they have a limit: whichever runs out first counts."""
    levels = []
    limit = observation.kubepods_memory_limit_bytes
    if node is not None and isinstance(observation.node_sample, NodeSample) and (whole := node_memory_bytes(node)) > 0:
        huge = _huge_pages(node)
        missing = observation.node_sample.missing_bytes(node)
        used = max(observation.node_sample.memory_used_bytes + missing - huge, 0)
        words = " + what the machine has no more" if missing else ""
        of = f"the node, MemTotal - MemAvailable{words}{' - huge pages' if huge else ''}"
        levels.append(MemoryLevel(used, whole, of))
    if isinstance(observation.kubepods, CgroupSample) and limit:
        levels.append(
            MemoryLevel(observation.kubepods.memory_bytes, limit, "all pods, which have a limit together", True)
        )
    return tuple(levels)


def _huge_pages(node: Node) -> int:
    return sum(node.capacity[name] for name in node.capacity if name.startswith(_HUGE_PAGES))


def memory_headroom(observation: Observation, strategy: EvictionStrategy) -> MemoryHeadroom | None:
    """None where memory is no reason to evict, or neither node nor kubepods tells how much there is."""
    pct = strategy.memory_threshold_pct
    if not strategy.enable or pct is None:
        return None
    return _least(observation, lambda whole: whole * pct // 100, f"{pct} %")


def last_resort_bytes(whole: int, pct: int) -> int:
    """How little of a node's memory, or of a limit, is too little: `pct` percent, and 100 MiB where that is more.

    Best effort may take 40 MB between two looks. The kubelet evicts at 100 MiB too (its memory.available), but of a
    small limit that would be much: at most a tenth. On a large node 4 GiB are time enough.
    """
    return min(max(whole * pct // 100, min(_LAST_BYTES, whole // 10)), _LAST_AT_MOST_BYTES)


def _least(observation: Observation, most: Callable[[int], int], words: str) -> MemoryHeadroom | None:
    """Up to `most` of the whole, of node or kubepods' limit: what leaves less headroom."""
    headrooms = [
        MemoryHeadroom(
            most(level.whole) - level.used, f"{words} less what is used of {level.of}", level.whole // _FLOOR_PARTS
        )
        for level in memory_levels(observation, observation.node)
    ]
    return min(headrooms, key=lambda headroom: headroom.bytes, default=None)


def memory_marks(layout: Layout, observation: Observation, strategy: EvictionStrategy) -> tuple[MemoryMark, ...]:
    """Charges of best effort and of all pods at which a tick is due.

    Once the threshold is passed it is the last resort that is next; none where that is passed too.
    """
    headroom, last = memory_headroom(observation, strategy), strategy.last_resort_pct
    if (headroom is None or headroom.bytes <= 0) and strategy.enable and last is not None:
        headroom = _least(
            observation, lambda whole: whole - last_resort_bytes(whole, last), "all but the last resort's part"
        )
    if headroom is None or headroom.bytes <= 0:
        return ()
    samples = ((layout.best_effort, observation.best_effort), (layout.root, observation.kubepods))
    return tuple(MemoryMark(path, _charge(s) + headroom.bytes) for path, s in samples if isinstance(s, CgroupSample))


def memory_signs(observation: Observation, strategy: EvictionStrategy) -> MemorySigns:
    """MemAvailable at which the next tick is due (at the threshold, then at the last resort), and what is thrashing."""
    if not strategy.enable:
        return MemorySigns()
    left = [
        (level.whole - level.used, level.whole)
        for level in memory_levels(observation, observation.node)
        if not level.of_pods
    ]
    threshold, last = strategy.memory_threshold_pct, strategy.last_resort_pct
    marks = [
        mark
        for headroom, whole in left
        for mark in (
            None if threshold is None else whole - whole * threshold // 100,
            None if last is None else last_resort_bytes(whole, last),
        )
        if mark is not None and headroom > mark
    ]
    return MemorySigns(max(marks, default=None), strategy.thrash_refault_pct)


def high_limit(
    knob: Knob,
    reading: KnobReading,
    observation: Observation,
    headroom: MemoryHeadroom | None,
    strategy: EvictionStrategy,
) -> Limit | None:
    """`memory.high` of the best-effort root; None where there is nothing to write, or no such file.

    Without a batch pod whoever is below that root belongs to the node, and is left alone.
    """
    kernel = reading.kernel
    if not strategy.enable or strategy.memory_threshold_pct is None or not _batch_may_run(observation):
        return None
    if isinstance(kernel, Missing) and kernel.absence is Absence.GONE:
        return None
    if not isinstance(kernel, int):
        detail = f"{kernel.path}: {kernel.detail}" if isinstance(kernel, Missing) else kernel
        return _limit(knob, TermSum(), Reason.KNOB_UNREADABLE, observation.at_seconds, detail)
    if headroom is None or not isinstance(observation.best_effort, CgroupSample):
        held = TermSum().add("held" if kernel != UNLIMITED else "unlimited", kernel)
        return _limit(knob, held, Reason.NODE_METRICS_MISSING, observation.at_seconds, "the current value stays")
    terms = TermSum().add("charged", _charge(observation.best_effort), "what best effort holds, page cache included")
    terms.add("room", max(headroom.bytes, 0), headroom.note)
    terms.at_least("floor", headroom.floor_bytes, f"1/{_FLOOR_PARTS} of the whole, whatever is left")
    terms.become("whole pages", max(terms.value // _PAGE_BYTES, 1) * _PAGE_BYTES)
    if kernel != UNLIMITED and abs(terms.value - kernel) * _STEADY_PARTS < terms.value:
        terms.become("held: change below 1/64", kernel)
        return _limit(knob, terms, Reason.BELOW_DEADBAND, observation.at_seconds)
    return _limit(knob, terms, Reason.MEMORY_ROOM, observation.at_seconds)


def _batch_may_run(observation: Observation) -> bool:
    """Some pod labelled BE or of band mid lives below the best-effort root, or that cannot be told."""
    return observation.listed is None or any(
        pod.borrows and pod.status.kubernetes_qos is KubernetesQoS.BEST_EFFORT and not pod.terminal
        for pod in observation.listed
    )


def _charge(sample: CgroupSample) -> int:
    """Kernel memory included, where the kernel was asked."""
    known = sample.charge_bytes
    return sample.memory_bytes + sample.page_cache_bytes if known is None else known


def _limit(knob: Knob, terms: TermSum, reason: Reason, now: float, detail: str = "") -> Limit:
    decision = Decision(knob.subject, knob.file, terms.value, Unit.BYTES, reason, terms.terms, "", now, detail)
    return Limit(knob, terms.value, decision)
