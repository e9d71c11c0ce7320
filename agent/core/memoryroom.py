"""How far best effort's memory may grow before eviction would start: a brake on v2, on both versions an early wake-up.

    room = the smaller of  node capacity x threshold - node use  and  kubepods limit x threshold - kubepods use

On v2 `memory.high` of the best-effort root is what it is charged with plus the room: beyond it the kernel slows it down
and reclaims its cache, which buys eviction the time it needs (docs/adr/0009).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from agent.core.knobs import UNLIMITED
from agent.core.layout import Layout
from agent.core.limit import Limit
from agent.core.observation import Absence, CgroupSample, Knob, KnobReading, Missing, NodeSample, Observation
from agent.core.watch import MemoryMark
from model.decision import Decision, TermSum, Unit
from model.reason import Reason
from model.resources import MEMORY
from model.strategy import EvictionStrategy

_PAGE_BYTES = 4096
_LAST_BYTES = 100 << 20
_STEADY_PARTS = 64
"""A value that would change by less than one part of these stays."""


class Room(msgspec.Struct, frozen=True):
    """Bytes left to the threshold, negative beyond it, and of what."""

    bytes: int
    note: str


def memory_room(seen: Observation, strategy: EvictionStrategy) -> Room | None:
    """None where memory is no reason to evict, or neither node nor kubepods tells how much there is."""
    pct = strategy.memory_threshold_pct
    if not strategy.enable or pct is None:
        return None
    return _least(seen, lambda whole: whole * pct // 100, f"{pct} %")


def last_resort_bytes(whole: int, pct: int) -> int:
    """How little of a node's memory, or of a limit, is too little: `pct` percent, and 100 MiB where that is more.

    Best effort may take 40 MB between two looks. The kubelet evicts at 100 MiB too (its memory.available), but of a
    small limit that would be much: at most a tenth.
    """
    return max(whole * pct // 100, min(_LAST_BYTES, whole // 10))


def _least(seen: Observation, most: Callable[[int], int], words: str) -> Room | None:
    """Up to `most` of the whole, of node or kubepods' limit: what leaves less room."""
    found = []
    if seen.node is not None and isinstance(seen.node_sample, NodeSample) and seen.node.capacity[MEMORY] > 0:
        room = most(seen.node.capacity[MEMORY]) - seen.node_sample.memory_used_bytes
        found.append(Room(room, f"{words} of the node less what it uses"))
    limit = seen.kubepods_memory_limit_bytes
    if limit is not None and isinstance(seen.kubepods, CgroupSample):
        room = most(limit) - seen.kubepods.memory_bytes
        found.append(Room(room, f"{words} of the limit of kubepods less what pods use"))
    return min(found, key=lambda room: room.bytes, default=None)


def memory_marks(layout: Layout, seen: Observation, strategy: EvictionStrategy) -> tuple[MemoryMark, ...]:
    """Charges of best effort and of all pods at which a tick is due.

    Once the threshold is passed it is the last resort that is next; none where that is passed too.
    """
    room, last = memory_room(seen, strategy), strategy.last_resort_pct
    if (room is None or room.bytes <= 0) and strategy.enable and last is not None:
        room = _least(seen, lambda whole: whole - last_resort_bytes(whole, last), "all but the last resort's part")
    if room is None or room.bytes <= 0:
        return ()
    samples = ((layout.best_effort, seen.best_effort), (layout.root, seen.kubepods))
    return tuple(MemoryMark(path, _charge(s) + room.bytes) for path, s in samples if isinstance(s, CgroupSample))


def high_limit(
    knob: Knob, reading: KnobReading, seen: Observation, room: Room | None, strategy: EvictionStrategy
) -> Limit | None:
    """`memory.high` of the best-effort root; None where there is nothing to write, or no such file."""
    kernel = reading.kernel
    if not strategy.enable or strategy.memory_threshold_pct is None:
        return _released(knob, reading, seen.at_seconds)
    if isinstance(kernel, Missing) and kernel.absence is Absence.GONE:
        return None
    if not isinstance(kernel, int):
        detail = f"{kernel.path}: {kernel.detail}" if isinstance(kernel, Missing) else kernel
        return _limit(knob, TermSum(), Reason.KNOB_UNREADABLE, seen.at_seconds, detail)
    if room is None or not isinstance(seen.best_effort, CgroupSample):
        held = TermSum().add("held" if kernel != UNLIMITED else "unlimited", kernel)
        return _limit(knob, held, Reason.NODE_METRICS_MISSING, seen.at_seconds, "the current value stays")
    terms = TermSum().add("charged", _charge(seen.best_effort), "what best effort holds, page cache included")
    terms.add("room", max(room.bytes, 0), room.note)
    terms.become("whole pages", max(terms.value // _PAGE_BYTES, 1) * _PAGE_BYTES)
    if kernel != UNLIMITED and abs(terms.value - kernel) * _STEADY_PARTS < terms.value:
        terms.become("held: change below 1/64", kernel)
        return _limit(knob, terms, Reason.BELOW_DEADBAND, seen.at_seconds)
    return _limit(knob, terms, Reason.MEMORY_ROOM, seen.at_seconds)


def _charge(sample: CgroupSample) -> int:
    """Kernel memory included, where the kernel was asked."""
    known = sample.charge_bytes
    return sample.memory_bytes + sample.page_cache_bytes if known is None else known


def _released(knob: Knob, reading: KnobReading, now: float) -> Limit | None:
    """What it held before us; nothing where it is not ours any more."""
    back = UNLIMITED if reading.original is None else reading.original
    if reading.ours is None or reading.kernel != reading.ours or reading.ours == back or isinstance(back, str):
        return None
    terms = TermSum().add("released" if back != UNLIMITED else "unlimited", back)
    return _limit(knob, terms, Reason.KNOB_RELEASED, now)


def _limit(knob: Knob, terms: TermSum, reason: Reason, now: float, detail: str = "") -> Limit:
    decision = Decision(knob.subject, knob.file, terms.value, Unit.BYTES, reason, terms.terms, "", now, detail)
    return Limit(knob, terms.value, decision)
