"""CPU selection: the CPUs best effort may run on, for policy `cpuset`.

As many as the allowance, rounded up; whole cores and in turn from each socket, so that online pods keep whole cores
too. Never those of LSE pods, nor those reserved or the system's own. Source: Koordinator
pkg/koordlet/qosmanager/plugins/cpusuppress; what differs is in docs/adr/0009.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby

import msgspec

from agent.core.limit.allowance import MILLI, US_PER_MILLI, Demand, NodeSize, allowance, base
from agent.core.limit.ownership import looser
from agent.core.limit.suppress import FLOOR_NOTE, CpuCeiling, Situation, floor_us
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import PERIOD_US
from agent.core.observe.observation import Knob, KnobReading, Missing, Value
from model.decision import Decision, TermSum, Unit
from model.pod.pod import Pod
from model.qos import QoSClass
from model.reason import Reason
from model.strategy import SuppressStrategy
from model.topology import Processor, format_cpus, parse_cpus

_STEP_PARTS = 10
_TWO_FROM_CPUS = 8
"""Koordinator never gives fewer than two CPUs; on a smaller node these would be more than a quarter of it."""
_CPUS = Unit.CPUS


class Pools(msgspec.Struct, frozen=True):
    """CPUs best effort may use: those nobody has for himself, and those of LSR pods. `spare` is for want of both."""

    shared: tuple[Processor, ...] = ()
    pinned: tuple[Processor, ...] = ()
    spare: tuple[int, ...] = ()

    @property
    def usable(self) -> int:
        return len(self.shared) + len(self.pinned)


class CpuSituation(msgspec.Struct, frozen=True):
    """What the list follows from; `pools` is None while CPUs or pods are unknown, `cpus` counts the node's.

    `may_widen`: the last step is a second ago.
    """

    situation: Situation
    reading: KnobReading
    pools: Pools | None
    cpus: int
    may_widen: bool = True


def pools(processors: Iterable[Processor], kept_free: Collection[int], pods: Iterable[Pod]) -> Pools:
    """`kept_free` are reserved or the system's own. Where nothing else is left, one of them is the spare CPU."""
    found = tuple(processors)
    running = [pod for pod in pods if pod.colocation.cpuset and not pod.terminal and _keeps_cpus(pod)]
    exclusive = exclusive_cpus(running)
    theirs = {cpu for pod in running for cpu in parse_cpus(pod.colocation.cpuset)}
    usable = [p for p in found if p.cpu not in exclusive and p.cpu not in kept_free]
    spare = sorted(found, key=lambda p: (p.cpu in exclusive, p.cpu))
    return Pools(
        shared=tuple(p for p in usable if p.cpu not in theirs),
        pinned=tuple(p for p in usable if p.cpu in theirs),
        spare=tuple(p.cpu for p in spare[:1]),
    )


def exclusive_cpus(pods: Iterable[Pod]) -> frozenset[int]:
    """CPUs of LSE pods that have not ended: nobody else's, whatever the policy."""
    exclusive = (pod for pod in pods if pod.colocation.qos_label is QoSClass.LSE and not pod.terminal)
    return frozenset(cpu for pod in exclusive for cpu in parse_cpus(pod.colocation.cpuset))


def _keeps_cpus(pod: Pod) -> bool:
    """An LSE or LSR label says so whatever the pod requests; batch work shares its CPUs with all other."""
    return pod.colocation.qos_label in (QoSClass.LSE, QoSClass.LSR) or not pod.best_effort


def picked(pools: Pools, count: int) -> tuple[int, ...]:
    """`count` CPUs, ascending: LSR pods' CPUs in proportion, the rest shared ones; the spare one for want of both."""
    if not pools.usable:
        return pools.spare
    count = min(count, pools.usable)
    # The nearest whole number, half a CPU going to the shared ones.
    share = -(-(2 * count * len(pools.pinned) - pools.usable) // (2 * pools.usable))
    share = max(share, count - len(pools.shared))
    return tuple(sorted((*_spread(pools.pinned, share), *_spread(pools.shared, count - share))))


def cpu_ceiling(knob: Knob, about: CpuSituation) -> tuple[Limit, CpuCeiling]:
    """The list for the best-effort root, and what the brake needs, in quota. Missing facts hold the list in force.

    Narrowing is at once, widening by a tenth of the node's CPUs a second.
    """
    situation, kernel = about.situation, about.reading.kernel
    if isinstance(kernel, Missing):
        return _limited(knob, situation, "", TermSum(), Reason.KNOB_UNREADABLE, f"{kernel.path}: {kernel.detail}")
    text = _in_force(str(kernel), about.reading.last_written)
    size, demand = situation.size, situation.demand
    if size is None or demand is None or about.pools is None:
        reason = Reason.CPUS_HELD if size and demand else situation.unknown
        held = TermSum().add("held", len(parse_cpus(text)))
        return _limited(knob, situation, text, held, reason, "not all is known, the list stays")
    room = _room(size, demand, situation.strategy)
    terms = TermSum().add("allowance, rounded up", -(-room.value // 1000), f"{room.value}m")
    terms.at_least("fewest CPUs", 2 if about.cpus >= _TWO_FROM_CPUS else 1)
    defended = _defended(size, demand, situation.strategy, terms.value)
    # An empty list, on v2, stands for all CPUs.
    reason = _stepped(terms, len(parse_cpus(text)) or about.cpus, about)
    cpus = picked(about.pools, terms.value)
    if len(cpus) != terms.value:
        terms, reason = terms.become("CPUs that may be used", len(cpus)), Reason.TOO_FEW_CPUS
    limit, ceiling = _limited(knob, situation, format_cpus(cpus), terms, reason, _written(room))
    floor = floor_us(size, situation.strategy)
    return limit, msgspec.structs.replace(ceiling, base_terms=defended.terms, floor_us=floor)


def kept_off_limit(knob: Knob, pools: Pools, before: str, now: float) -> Limit:
    """What best effort had `before` (empty: all) less what it may not use; the spare CPU for want of any.

    For policies under which another file is the ceiling.
    """
    usable = [processor.cpu for processor in (*pools.shared, *pools.pinned)]
    had = set(parse_cpus(before)) or {*usable, *pools.spare}
    kept = [cpu for cpu in usable if cpu in had] or [*pools.spare]
    terms = TermSum().add("CPUs before", len(had)).become("not an LSE pod's, reserved or the system's", len(kept))
    decision = Decision(knob.subject, knob.file, terms.value, _CPUS, Reason.CPUS_KEPT_OFF, terms.terms, "", now)
    return Limit(knob, format_cpus(kept), decision)


def child_limit(knob: Knob, root: Limit, own_cpus: Collection[int] = ()) -> Limit:
    """The root's list for a cgroup below it; a container with CPUs of its own keeps to those of them that are left."""
    decision = msgspec.structs.replace(root.decision, subject=knob.subject)
    kept = [cpu for cpu in parse_cpus(str(root.value)) if cpu in own_cpus] if own_cpus else []
    if not kept:
        return Limit(knob, root.value, decision, inherits=root.knob)
    terms = TermSum().add("the root's", decision.value).become("not its own", len(kept)).terms
    return Limit(
        knob, format_cpus(kept), msgspec.structs.replace(decision, value=len(kept), terms=terms), inherits=root.knob
    )


def _in_force(kernel: str, ours: Value | None) -> str:
    """What to start from: ours where somebody loosened it."""
    return ours if isinstance(ours, str) and looser(kernel, ours) else kernel


def _room(size: NodeSize, demand: Demand, strategy: SuppressStrategy) -> TermSum:
    """The allowance in milli-CPU."""
    room = allowance(size, demand.now, strategy.ceiling_pct, MILLI)
    return room.at_least("floor", floor_us(size, strategy) // US_PER_MILLI, FLOOR_NOTE)


def _defended(size: NodeSize, demand: Demand, strategy: SuppressStrategy, cpus: int) -> TermSum:
    """What the brake subtracts online use from, in us: with the use of now, exactly the CPUs wanted."""
    online_us = (demand.now.online_millis + demand.apart_millis) * US_PER_MILLI
    terms = base(size, demand.now, strategy.ceiling_pct)
    return terms.become("whole CPUs, and online by cgroups", cpus * PERIOD_US + online_us)


def _stepped(terms: TermSum, current: int, about: CpuSituation) -> Reason:
    if terms.value <= current:
        return Reason.CPUS_NARROWED if terms.value < current else Reason.CPUS_HELD
    if about.situation.not_yet is not None:
        terms.become("held: too early to widen", current)
        return about.situation.not_yet
    if not about.may_widen:
        terms.become("held: the last step was just now", current)
        return Reason.CPUS_HELD
    terms.at_most("growth limited to a step", current + -(-about.cpus // _STEP_PARTS), "a tenth of the node a second")
    return Reason.CPUS_WIDENED


def _limited(
    knob: Knob, situation: Situation, cpus: str, terms: TermSum, reason: Reason, detail: str
) -> tuple[Limit, CpuCeiling]:
    policy, now = situation.strategy.policy, situation.at_seconds
    decision = Decision(knob.subject, knob.file, terms.value, _CPUS, reason, terms.terms, policy, now, detail)
    return Limit(knob, cpus, decision), CpuCeiling(decision, in_force_us=terms.value * PERIOD_US)


def _written(room: TermSum) -> str:
    return "allowance in milli-CPU: " + " ".join(f"{term.value:+d} {term.name}" for term in room.terms)


def _spread(processors: Iterable[Processor], count: int) -> list[int]:
    """Whole cores in turn from each socket of a NUMA node, the largest first; then single CPUs from the next one on."""
    buckets = _buckets(processors)
    pairs = [deque(_pairs(bucket)) for bucket in buckets]
    taken: dict[int, None] = {}
    turn = 0
    while count - len(taken) > 1 and any(pairs):
        if pairs[turn]:
            taken.update(dict.fromkeys(pairs[turn].popleft()))
        turn = (turn + 1) % len(buckets)
    turn = turn if count - len(taken) <= 1 else 0
    singles = [deque(p.cpu for p in bucket if p.cpu not in taken) for bucket in buckets]
    while len(taken) < count:
        if singles[turn]:
            taken[singles[turn].popleft()] = None
        turn = (turn + 1) % len(buckets)
    return list(taken)


def _buckets(processors: Iterable[Processor]) -> list[list[Processor]]:
    """By NUMA node and socket, core by core."""
    found: dict[tuple[int, int], list[Processor]] = defaultdict(list)
    for processor in sorted(processors, key=lambda p: (p.core, p.cpu)):
        found[processor.node, processor.socket].append(processor)
    return sorted(found.values(), key=lambda bucket: (-len(bucket), bucket[0].cpu))


def _pairs(bucket: Iterable[Processor]) -> Iterator[list[int]]:
    """Two CPUs of one core, core after core."""
    for _, core in groupby(bucket, lambda p: p.core):
        cpus = [p.cpu for p in core]
        yield from (cpus[i : i + 2] for i in range(0, len(cpus) - 1, 2))
