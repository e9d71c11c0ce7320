"""Unenforced limits: those that protect online services and are not in force. Meanwhile no more is lent than requested.

A limit is unenforced where it cannot be read or written, where another program loosens it again and again, and where
what it held before cannot be saved, so that it must not be written. Each counts for CPU and for memory: a pod that asks
for one of them uses both (docs/adr/0027). CPUs the node lost count as well: online use that cannot rise looks idle.
So does a pod that cannot be read: what it was promised is not known, and it has no limits of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from agent.core.lend.reclaimable import NodeLending, ZoneLending
from agent.core.limit.decide import NodeLimits
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import CPUSET_FILE, IDLE_FILE, is_quota
from agent.core.observe.observation import Knob, Observation
from model.decision import Decision, TermSum
from model.reason import Reason, words
from model.resources import ResourceVector

STATE_FILE, OFFLINE_CPUS, UNREAD_PODS = "state file", "offline CPUs", "pods"
_AGAIN_SECONDS = 45.0
"""Two losses within so long are a program that goes on; one alone is a reset, as a daemon-reload of systemd makes it,
and once a minute each kubelet with the systemd driver (koordinator#1734). For as long the limit must be kept until it
counts as in force again."""
_LIFTED = (Reason.KNOB_RELEASED, Reason.SUPPRESSION_DISABLED)
"""A file that is to hold nothing of ours protects nobody."""
_NOT_HELD = (Reason.IDLE_HELD, Reason.FOREIGN_WRITER_TIGHTER)
"""Something weaker than this value holds best effort, and the file reads differently meanwhile."""

_NOTHING = ResourceVector()


class WriteFailure(msgspec.Struct, frozen=True):
    """One write of this tick that the kernel or the disk refused."""

    knob: Knob
    reason: Reason
    detail: str


class UnenforcedLimit(msgspec.Struct, frozen=True):
    """One limit that is not in force; `file` names it in metrics, `detail` the place and what is wrong there."""

    file: str
    reason: Reason
    detail: str
    knob: Knob | None = None

    @property
    def text(self) -> str:
        """One line of text."""
        return f"{words(self.reason)}: {self.detail}"


class Loosened(msgspec.Struct, frozen=True):
    """When somebody loosened a limit last (monotonic seconds), and whether that was not the first time."""

    monotonic_seconds: float
    again: bool = False


class EnforcementMemory(msgspec.Struct, frozen=True):
    """What one tick must know of the one before: limits that were loosened lately."""

    loosened: tuple[tuple[Knob, Loosened], ...] = ()


def find_unenforced(
    memory: EnforcementMemory,
    limits: NodeLimits,
    observation: Observation,
    failures: Iterable[WriteFailure],
    *,
    ceilings_wanted: bool,
) -> tuple[EnforcementMemory, tuple[UnenforcedLimit, ...]]:
    """What of the best-effort root's limits is not in force, once this tick has written; and what to remember.

    Of single pods nothing counts but that their originals cannot be saved: they protect batch pods from each other.
    """
    known, failed = dict(memory.loosened), {failure.knob: failure for failure in failures}
    protecting = [limit for limit in limits.of_all if limit.decision.reason not in _LIFTED]
    loosened = {
        limit.knob: now
        for limit in protecting
        if (now := _loosened(known.get(limit.knob), limit, observation)) is not None
    }
    found = [each for limit in protecting for each in _of(limit, failed, loosened, ceilings_wanted=ceilings_wanted)]
    unsaved = observation.unsaved or next((f.detail for f in failed.values() if f.reason is Reason.STATE_NOT_SAVED), "")
    if unsaved and all(each.reason is not Reason.STATE_NOT_SAVED for each in found):
        found.append(UnenforcedLimit(STATE_FILE, Reason.STATE_NOT_SAVED, unsaved))
    if limits.lost_cpus:
        detail = f"{limits.lost_cpus} CPUs are offline, and the Node object still has them"
        found.append(UnenforcedLimit(OFFLINE_CPUS, Reason.CPUS_OFFLINE, detail))
    return EnforcementMemory(tuple(loosened.items())), tuple(found)


def of_unread(pods: Sequence[str]) -> tuple[UnenforcedLimit, ...]:
    """Pods of the node that cannot be read, each by what is wrong with it."""
    if not pods:
        return ()
    more = f", and {len(pods) - 1} more" if len(pods) > 1 else ""
    return (UnenforcedLimit(UNREAD_PODS, Reason.POD_UNREADABLE, pods[0] + more),)


def _loosened(before: Loosened | None, limit: Limit, observation: Observation) -> Loosened | None:
    """None once the limit was kept for long enough."""
    now, reading = observation.monotonic_seconds, observation.knobs.get(limit.knob)
    if reading is not None and reading.loosened and limit.decision.reason not in _NOT_HELD:
        return Loosened(now, again=before is not None)
    return before if before is not None and now - before.monotonic_seconds < _AGAIN_SECONDS else None


def _of(
    limit: Limit, failed: Mapping[Knob, WriteFailure], loosened: Mapping[Knob, Loosened], *, ceilings_wanted: bool
) -> Iterator[UnenforcedLimit]:
    """One at most: what cannot be read is not written, and what cannot be written is not kept."""
    knob, place = limit.knob, f"{limit.knob.cgroup}/{limit.knob.file}"
    if limit.decision.reason is Reason.KNOB_UNREADABLE:
        is_ceiling = is_quota(knob) or knob.file == CPUSET_FILE
        # Without cpu.idle, which older kernels do not know, the weight is held.
        if knob.file != IDLE_FILE and (ceilings_wanted or not is_ceiling):
            reason = Reason.CEILING_NOT_POSSIBLE if is_ceiling else Reason.KNOB_UNREADABLE
            yield UnenforcedLimit(knob.file, reason, limit.decision.detail, knob)
    elif knob in failed:
        failure = failed[knob]
        # The values change each second; a condition that did as well would be patched as often.
        detail = place if failure.reason is Reason.LIMIT_NOT_KEPT else failure.detail
        yield UnenforcedLimit(knob.file, failure.reason, detail, knob)
    elif knob in loosened and loosened[knob].again:
        yield UnenforcedLimit(knob.file, Reason.LIMIT_NOT_KEPT, place, knob)


def within_requests(
    lent: NodeLending, unenforced: tuple[UnenforcedLimit, ...], requested: ResourceVector
) -> NodeLending:
    """What is lent while limits are not in force: at most what admitted pods request already, in zones nothing more.

    Another reason to lend nothing goes first.
    """
    if not unenforced or lent.degraded:
        return lent

    def capped(decisions: Iterable[Decision], most: ResourceVector) -> tuple[Decision, ...]:
        return tuple(_capped(decision, unenforced, most[decision.name]) for decision in decisions)

    def of_zone(zone: ZoneLending) -> ZoneLending:
        return replace(zone, decisions=capped(zone.decisions, _NOTHING), prepared=capped(zone.prepared, _NOTHING))

    return replace(
        lent,
        reclaimable=capped(lent.reclaimable, requested),
        prepared=capped(lent.prepared, requested),
        zones=tuple(of_zone(zone) for zone in lent.zones),
        origin=lent.origin and ResourceVector({name: min(lent.origin[name], requested[name]) for name in lent.origin}),
    )


def explained(limits: NodeLimits, unenforced: Iterable[UnenforcedLimit]) -> NodeLimits:
    """The same limits; those that are not in force say so."""
    found = dict(limits.limits)
    for each in unenforced:
        limit = found.get(each.knob) if each.knob else None
        if limit is not None and each.knob is not None:
            detail = f"not in force ({each.reason.value}): {each.detail}"
            found[each.knob] = replace(limit, decision=replace(limit.decision, detail=detail))
    return replace(limits, limits=found)


def _capped(decision: Decision, unenforced: tuple[UnenforcedLimit, ...], most: int) -> Decision:
    terms = TermSum()
    for term in decision.terms:
        terms.add(term.name, term.value, term.note)
    first, more = unenforced[0], len(unenforced) - 1
    terms.at_most("cap: a limit is not in force", most, "what running pods request already")
    detail = first.detail + (f", and {more} more" if more else "")
    return replace(decision, value=terms.value, terms=terms.terms, reason=first.reason, detail=detail)
