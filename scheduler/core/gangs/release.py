"""Gangs that are bound in part and can neither be completed nor left so: their bound members are given up.

A crash or a refused binding may leave some members bound. They count towards the minimum, so the gang is completed as
soon as there is room, which is kept for it; where it does not come in time, holding the room would only keep it from
others. A member that its kubelet rejected is a failure of the gang at once: the room it was placed by is not there.
Only Strict gangs are released, and never one whose minimum was met before: that one has work to lose.

Since when a gang is bound in part is read from its PodGroup, else from its bound members: a restart does not forget it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from model.pod.pod import Pod
from model.reason import Reason
from model.workload import GangMode, WorkloadId
from scheduler.core.gangs.minimum import GangPart, belongs, original

_ROUND_SECONDS = 60.0
"""Bindings this close together belong to one placement of a gang; a rejection long ago concerns another."""

_FRESH_SHARE = 0.25
"""Of the bound, what a process has in any case that has only just come to know of the gang."""


class ReleasePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether bound members of a gang that cannot be completed are evicted."""

    release_partial: Annotated[
        bool,
        Meta(
            description="Evict the bound members of a Strict gang that could not be completed in time, where a "
            "controller would replace them. Koordinator leaves them running and holding their room."
        ),
    ] = True
    partial_seconds: Annotated[
        float,
        Meta(
            gt=0,
            le=86_400,
            description="How long a Strict gang may be bound in part; its own timeout counts where that is shorter. In "
            "two minutes a binding without an answer is settled, a standby has taken over and victims have gone.",
        ),
    ] = 120.0


class Release(msgspec.Struct, frozen=True):
    """A gang to be tried again from nothing: `evict` goes; `stay` nobody would replace, so it is only named."""

    subject: WorkloadId
    reason: Reason
    detail: str
    evict: tuple[Pod, ...] = ()
    stay: tuple[Pod, ...] = ()
    waiting: tuple[str, ...] = ()


class _Partial(msgspec.Struct, frozen=True):
    """A gang bound in part: since when, known here since when, and which rejected pods say so."""

    since_seconds: float
    known_seconds: float
    limit_seconds: float
    parts: tuple[GangPart, ...]
    rejected: frozenset[str] = frozenset()

    @property
    def due_seconds(self) -> float:
        """When it is given up."""
        if self.rejected:
            return self.known_seconds
        fresh = self.known_seconds + _FRESH_SHARE * self.limit_seconds
        return max(self.since_seconds + self.limit_seconds, fresh)


class Releases:
    """By subject; Unix seconds. A rejection counts once: the failed pod stays in the API after its gang is placed.

    `until` says of a subject how long victims may take who were told to make room for it: it is not released before.
    """

    def __init__(self, policy: ReleasePolicy, until: Callable[[WorkloadId], float] = lambda subject: 0.0) -> None:
        self._policy = policy
        self._until = until
        self._partial: dict[WorkloadId, _Partial] = {}
        self._clocks: dict[WorkloadId, tuple[float, float]] = {}
        self._answered: dict[WorkloadId, frozenset[str]] = {}

    def update(self, subject: WorkloadId, parts: Sequence[GangPart], now: float) -> None:
        """Take in a gang, or all gangs of a group, as they stand; no parts: it is gone."""
        parts = tuple(part for part in parts if belongs(subject, part))
        rejected = frozenset(pod.uid for part in parts for pod in _rejected(part, parts))
        answered = self._answered.pop(subject, frozenset()) & rejected
        if not _is_partial(parts):
            self._partial.pop(subject, None)
            answered = rejected
            # Bindings that are on their way may be refused yet: only what is bound ends the time in which it was not.
            if all(pod.spec.node_name for part in parts for pod in part.members.placed):
                self._clocks.pop(subject, None)
        else:
            since, known = self._clocks.setdefault(subject, (_since(parts, now), now))
            self._partial[subject] = _Partial(since, known, self._limit(parts), parts, rejected - answered)
        if answered:
            self._answered[subject] = answered

    def take(self, now: float) -> list[Release]:
        """Gangs to be released now, sorted by subject; one that stays partial is due again after another timeout."""
        over = sorted(subject for subject in self._partial if self._due(subject) <= now)
        return [self._release(subject, self._partial[subject], now) for subject in over]

    def next_due(self) -> float | None:
        """Unix time of the next release, None where no gang is bound in part."""
        return min(map(self._due, self._partial), default=None)

    def since(self, subject: WorkloadId) -> float:
        """Since when it is bound in part, 0 where it is not."""
        partial = self._partial.get(subject)
        return partial.since_seconds if partial else 0.0

    def _due(self, subject: WorkloadId) -> float:
        partial = self._partial[subject]
        return partial.due_seconds if partial.rejected else max(partial.due_seconds, self._until(subject))

    def _limit(self, parts: Sequence[GangPart]) -> float:
        return min(self._policy.partial_seconds, max(part.spec.timeout_seconds for part in parts))

    def _release(self, subject: WorkloadId, partial: _Partial, now: float) -> Release:
        self._clocks[subject] = (now, now)
        self._partial[subject] = _Partial(now, now, partial.limit_seconds, partial.parts)
        self._answered[subject] = self._answered.get(subject, frozenset()) | partial.rejected
        bound = tuple(pod for part in partial.parts for pod in part.members.bound)
        evict = tuple(pod for pod in bound if pod.owned) if self._policy.release_partial else ()
        stay = tuple(pod for pod in bound if pod not in evict)
        reason = Reason.MEMBER_REJECTED if partial.rejected else Reason.GANG_RELEASED
        waiting = tuple(pod.uid for part in partial.parts for pod in part.members.pending)
        return Release(subject, reason, _detail(subject, partial, now, evict, stay), evict, stay, waiting)


def _is_partial(parts: Sequence[GangPart]) -> bool:
    """Whether members are bound, the gang or group as a whole is not, and never was."""
    if not any(part.members.bound for part in parts) or any(part.spec.problem for part in parts):
        return False
    if any(part.spec.mode is not GangMode.STRICT for part in parts) or all(_was_whole(part, parts) for part in parts):
        return False
    return any(part.counted < part.spec.min_member for part in parts)


def _rejected(part: GangPart, parts: Sequence[GangPart]) -> tuple[Pod, ...]:
    """Members rejected in the round in which some of those that are bound were bound too."""
    bound = [pod.status.scheduled_seconds for item in parts for pod in item.members.bound]
    return tuple(
        pod
        for pod in part.members.rejected
        if any(abs(pod.status.scheduled_seconds - seconds) <= _ROUND_SECONDS for seconds in bound)
    )


def _was_whole(part: GangPart, parts: Sequence[GangPart]) -> bool:
    """Whether a gang's minimum was met; where nothing says so, whether members it began with are gone since.

    Members exist before the first of them is bound, so a gang short of those may have been whole before it lost some.
    Not one that its PodGroup names bound in part: that one lost them before it was whole.
    """
    if part.met or (part.gang is not None and part.gang.partial_seconds):
        return part.met
    return len(original(part.members)) + len(_rejected(part, parts)) < part.spec.min_member


def _since(parts: Sequence[GangPart], now: float) -> float:
    """Since when members are bound that wait for others: as noted, else since the first of them was bound."""
    noted = [part.gang.partial_seconds for part in parts if part.gang is not None and part.gang.partial_seconds]
    times = (pod.status.scheduled_seconds for part in parts for pod in part.members.bound)
    bound = [seconds for seconds in times if seconds]
    return min(*(noted or bound), now, now)


def _detail(subject: WorkloadId, partial: _Partial, now: float, evict: tuple[Pod, ...], stay: tuple[Pod, ...]) -> str:
    minimum = sum(part.spec.min_member for part in partial.parts)
    number = sum(part.counted for part in partial.parts)
    why = f"it was not completed within {now - partial.since_seconds:.0f}s"
    if partial.rejected:
        pods = (pod for part in partial.parts for pod in part.members.rejected if pod.uid in partial.rejected)
        why = ", ".join(f"the kubelet rejected {pod.key}: {pod.status.rejected}" for pod in pods)
    said = [f"gang {subject.name}: {number} of {minimum} members are bound and {why}"]
    if evict:
        said.append(f"{len(evict)} bound {'pod is' if len(evict) == 1 else 'pods are'} evicted to try it again")
    if stay:
        names = ", ".join(pod.key for pod in stay)
        said.append(f"{names} {'stays bound, delete it' if len(stay) == 1 else 'stay bound, delete them'} to free room")
    return "; ".join(said)
