"""Shrinking: memory of best-effort pods is reclaimed in small steps, so that none of them need end for a shortage.

    missing = used - (threshold - margin) x whole      of the node, or of kubepods' limit: what is shorter
    step    = the least of 32 MiB, a quarter of what the pod holds, and what is missing

What counts is memory that cannot be dropped: page cache is no part of what eviction measures, and the kernel drops it
by itself. So nothing is reclaimed without free swap. The pod whose memory is coldest comes first (inactive by the
kernel's lists); one that gives less than half of a step, reads back half of it or waits for memory rests a minute.
Evictions for memory in use wait while steps free memory, for a bounded time (docs/adr/0042). An upstream proposal
reclaims in steps of that size too (koordinator#3189).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from agent.core.limit.memory_headroom import MemoryLevel, memory_levels
from agent.core.observe.layout import Layout
from agent.core.observe.observation import NodeSample, Observation
from model.decision import Decision, TermSum, Unit
from model.explain import amount
from model.pod.pod import Pod
from model.reason import Reason
from model.strategy import EvictionStrategy

NAME = "memory to reclaim"
_STEP_BYTES = 32 << 20
_LEAST_BYTES = 1 << 20
_STEP_PARTS = 4
_MOST_STEPS = 2
"""In a tick: 64 MiB a second, which cost up to a tenth of a CPU where they are compressed."""
_STALL_PCT = 10.0
_REST_SECONDS = 60.0
_LOOK_SECONDS = 5.0
"""A look at every best-effort pod this often, while memory is short alone."""
_PATIENCE_SECONDS = 3.0
"""Evictions wait no longer for the next step that frees memory, or for the first."""


class PodLook(msgspec.Struct, frozen=True, gc=False):
    """One pod, bytes: memory that cannot be dropped, its inactive anonymous part, what was read back of that since the
    cgroup exists; and how much of the last ten seconds some task of it waited for memory, in percent."""

    memory_bytes: int
    inactive_bytes: int
    refaulted_bytes: int
    stall_pct: float


class ReclaimOrder(msgspec.Struct, frozen=True):
    """Reclaim `bytes` of a pod's cgroup, or look at it alone (0)."""

    uid: str
    cgroup: str
    bytes: int = 0


class ReclaimAnswer(msgspec.Struct, frozen=True):
    """What came of an order: `freed_bytes` of memory that cannot be dropped, and the pod afterwards.

    `look` is None where a file of it cannot be read; `unsupported`: this kernel has no memory.reclaim.
    """

    uid: str
    asked_bytes: int = 0
    freed_bytes: int = 0
    look: PodLook | None = None
    unsupported: bool = False

    @property
    def fruitful(self) -> bool:
        """At least half of what was asked for."""
        return self.asked_bytes > 0 and self.freed_bytes * 2 >= self.asked_bytes


class PodRecord(msgspec.Struct, frozen=True):
    """What is known of a pod, when it was seen, what its last step freed, until when it rests; times are monotonic."""

    look: PodLook | None = None
    seen_seconds: float | None = None
    taken_bytes: int = 0
    rests_until: float = 0.0


class OpenOrder(msgspec.Struct, frozen=True):
    """An order that is not answered yet: when it was given (monotonic), and for how much."""

    since_seconds: float
    bytes: int


class ShrinkMemory(msgspec.Struct, frozen=True):
    """What one tick must know of the one before; times are monotonic.

    By uid: `pods`, and `ordered` what is not answered yet. `over_since` is since when the eviction threshold is
    reached, `progress_seconds` when a step was fruitful last. The rest are totals since the start.
    """

    pods: Mapping[str, PodRecord] = {}
    ordered: Mapping[str, OpenOrder] = {}
    over_since: float | None = None
    progress_seconds: float | None = None
    unsupported: bool = False
    reclaimed_bytes: int = 0
    fruitful_steps: int = 0
    fruitless_steps: int = 0


class ShrinkFacts(msgspec.Struct, frozen=True):
    """What shrinking depends on beside the observation; `answers` came since the last tick."""

    strategy: EvictionStrategy
    pods: tuple[Pod, ...] | None
    answers: tuple[ReclaimAnswer, ...] = ()


class Shrinking(msgspec.Struct, frozen=True):
    """One tick's orders; `decisions` are the shortage and a step each. `holds_evictions`: they may wait for it."""

    orders: tuple[ReclaimOrder, ...] = ()
    decisions: tuple[Decision, ...] = ()
    holds_evictions: bool = False


class _Shortage(msgspec.Struct, frozen=True):
    """What is missing at the mark, in terms; `over`: the eviction threshold is reached."""

    terms: TermSum
    over: bool


def decide_shrinking(
    memory: ShrinkMemory, layout: Layout, observation: Observation, facts: ShrinkFacts
) -> tuple[ShrinkMemory, Shrinking]:
    """One tick's steps and looks. A pod that cannot be read is left out; eviction waits for none such."""
    now, strategy = observation.monotonic_seconds, facts.strategy
    memory = _heard(memory, facts.answers, now)
    shortage = _shortage(observation, strategy)
    if shortage is None or observation.node is None:
        return replace(memory, over_since=None), Shrinking()
    memory = replace(memory, over_since=_since(memory.over_since, shortage.over, now))
    missing = shortage.terms.value
    if missing <= 0:
        return memory, Shrinking()
    subject = f"node/{observation.node.name}"
    if (blocked := _blocked(memory, layout, observation)) is not None:
        return memory, Shrinking(decisions=(_decision(subject, shortage.terms, blocked, observation),))
    pods = _candidates(observation, facts.pods or ())
    memory = _of_present(memory, pods)
    steps = _steps(memory, pods, missing, now)
    looks = _looks(memory, observation, pods.keys() - {uid for uid, _ in steps}, now)
    orders = (*(ReclaimOrder(uid, _path(observation, uid), each.value) for uid, each in steps), *looks)
    given = {order.uid: OpenOrder(now, order.bytes) for order in orders}
    memory = replace(memory, ordered={**memory.ordered, **given})
    busy = any(each.bytes or uid not in memory.pods for uid, each in _under_way(memory, now))
    reason = Reason.SHRINKING if busy else Reason.SHRINK_EXHAUSTED
    of_steps = (_decision(f"pod/{pods[uid].key}", terms, reason, observation) for uid, terms in steps)
    detail = f"{len(pods)} best-effort pods, {amount(memory.reclaimed_bytes, Unit.BYTES)} reclaimed since the start"
    whole = _decision(subject, shortage.terms, reason, observation, detail)
    holds = busy and _may_wait(memory, strategy, now)
    return memory, Shrinking(orders, (whole, *of_steps), holds)


def _shortage(observation: Observation, strategy: EvictionStrategy) -> _Shortage | None:
    """Of the level that lacks most; None where shrinking is off or no level is known."""
    threshold, margin = strategy.memory_threshold_pct, strategy.shrink_margin_pct
    if not strategy.enable or threshold is None or margin is None:
        return None
    mark = max(threshold - margin, 0)
    levels = memory_levels(observation, observation.node)
    if not levels:
        return None
    level = max(levels, key=lambda each: each.used - _part(each, mark))
    terms = TermSum().add("used", level.used, level.of)
    terms.add("mark", -_part(level, mark), f"{mark} % of {amount(level.whole, Unit.BYTES)}").at_least("within it", 0)
    return _Shortage(terms, any(each.used * 100 >= each.whole * threshold for each in levels))


def _part(level: MemoryLevel, percent: int) -> int:
    return level.whole * percent // 100


def _blocked(memory: ShrinkMemory, layout: Layout, observation: Observation) -> Reason | None:
    """Why no memory can be reclaimed at all."""
    if layout.version == 1 or memory.unsupported:
        return Reason.SHRINK_UNSUPPORTED
    sample = observation.node_sample
    return Reason.NO_SWAP if not isinstance(sample, NodeSample) or sample.swap_free_bytes < _STEP_BYTES else None


def _candidates(observation: Observation, pods: Iterable[Pod]) -> dict[str, Pod]:
    """Pods that borrow, below the best-effort root, by uid."""
    below, places = frozenset(observation.places.best_effort), observation.places.pods
    there = (pod for pod in pods if pod.borrows and not pod.terminal and pod.uid in places)
    return {pod.uid: pod for pod in there if places[pod.uid].path in below}


def _of_present(memory: ShrinkMemory, pods: Mapping[str, Pod]) -> ShrinkMemory:
    """Without pods that are gone."""
    records = {uid: record for uid, record in memory.pods.items() if uid in pods}
    return replace(memory, pods=records, ordered={uid: at for uid, at in memory.ordered.items() if uid in pods})


def _steps(memory: ShrinkMemory, pods: Mapping[str, Pod], missing: int, now: float) -> list[tuple[str, TermSum]]:
    """The coldest first, no more in all than what is missing."""
    under_way = sum(order.bytes > 0 for _, order in _under_way(memory, now))
    ready = [(uid, record.look) for uid, record in memory.pods.items() if uid in pods and _ready(memory, uid, now)]
    coldest = sorted((-look.inactive_bytes, -look.memory_bytes, uid) for uid, look in ready if look is not None)
    found: list[tuple[str, TermSum]] = []
    for _, held, uid in coldest[: max(_MOST_STEPS - under_way, 0)]:
        terms = TermSum().add("a step", _STEP_BYTES).at_most("a part of what it holds", -held // _STEP_PARTS)
        terms.at_most("missing", missing)
        if terms.value >= _LEAST_BYTES:
            found.append((uid, terms))
            missing -= terms.value
    return found


def _under_way(memory: ShrinkMemory, now: float) -> list[tuple[str, OpenOrder]]:
    """Orders that may be answered soon; a kernel that hangs on one pod keeps nobody else from giving."""
    return [(uid, order) for uid, order in memory.ordered.items() if now - order.since_seconds < _LOOK_SECONDS]


def _ready(memory: ShrinkMemory, uid: str, now: float) -> bool:
    record = memory.pods[uid]
    return uid not in memory.ordered and now >= record.rests_until and not _out_of_date(record, now, 2 * _LOOK_SECONDS)


def _out_of_date(record: PodRecord, now: float, seconds: float) -> bool:
    return record.seen_seconds is None or now - record.seen_seconds >= seconds


def _looks(memory: ShrinkMemory, observation: Observation, uids: Iterable[str], now: float) -> tuple[ReclaimOrder, ...]:
    """At pods that do not rest and were not seen for a while."""
    none = PodRecord()
    records = {uid: memory.pods.get(uid, none) for uid in sorted(uids) if uid not in memory.ordered}
    return tuple(
        ReclaimOrder(uid, _path(observation, uid))
        for uid, record in records.items()
        if now >= record.rests_until and _out_of_date(record, now, _LOOK_SECONDS)
    )


def _heard(memory: ShrinkMemory, answers: Iterable[ReclaimAnswer], now: float) -> ShrinkMemory:
    for answer in answers:
        record = _learned(memory.pods.get(answer.uid, PodRecord()), answer, now)
        fruitless = answer.asked_bytes > 0 and not answer.fruitful
        memory = replace(
            memory,
            pods={**memory.pods, answer.uid: record},
            ordered={uid: at for uid, at in memory.ordered.items() if uid != answer.uid},
            progress_seconds=now if answer.fruitful else memory.progress_seconds,
            unsupported=memory.unsupported or answer.unsupported,
            reclaimed_bytes=memory.reclaimed_bytes + answer.freed_bytes,
            fruitful_steps=memory.fruitful_steps + answer.fruitful,
            fruitless_steps=memory.fruitless_steps + fruitless,
        )
    return memory


def _learned(before: PodRecord, answer: ReclaimAnswer, now: float) -> PodRecord:
    """The pod rests where a step frees too little, or where what was taken was in use."""
    taken = answer.freed_bytes if answer.asked_bytes else before.taken_bytes
    look = answer.look
    if look is None:
        return PodRecord(None, now, 0, now + _REST_SECONDS)
    refaulted = look.refaulted_bytes - before.look.refaulted_bytes if before.look else 0
    in_use = look.stall_pct >= _STALL_PCT or (before.taken_bytes > 0 and refaulted * 2 >= before.taken_bytes)
    if in_use or (answer.asked_bytes > 0 and not answer.fruitful):
        return PodRecord(look, now, 0, now + _REST_SECONDS)
    return PodRecord(look, now, taken, before.rests_until)


def _may_wait(memory: ShrinkMemory, strategy: EvictionStrategy, now: float) -> bool:
    """While a step was fruitful a moment ago, or the first may still be, and no longer than the settings allow."""
    since = memory.over_since
    if since is None or now - since >= strategy.longest_shrink_seconds:
        return False
    last = since if memory.progress_seconds is None else max(since, memory.progress_seconds)
    return now - last < _PATIENCE_SECONDS


def _since(before: float | None, holds: bool, now: float) -> float | None:
    return (now if before is None else before) if holds else None


def _path(observation: Observation, uid: str) -> str:
    return observation.places.pods[uid].path


def _decision(subject: str, terms: TermSum, reason: Reason, observation: Observation, detail: str = "") -> Decision:
    return Decision(subject, NAME, terms.value, Unit.BYTES, reason, terms.terms, "", observation.at_seconds, detail)
