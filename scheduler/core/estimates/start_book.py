"""Start book: the newest estimate of each workload that waits, and the words that its condition says of it.

The words change rarely: where the start moved by a good part of the way to it, and not soon after the last change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from model.estimates.start_estimate import EstimateBasis, StartEstimate, estimate_words, seen_from
from model.workload import WorkloadId


class EstimatePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When starts are estimated, for how many, and how often what is told of them changes."""

    enable: Annotated[
        bool, Meta(description="Estimate when waiting workloads start, by deadlines and past runs of what runs.")
    ] = True
    every_seconds: Annotated[float, Meta(gt=0, le=86_400, description="Rest between two rounds of estimates.")] = 30.0
    most_workloads: Annotated[
        int, Meta(ge=1, le=100_000, description="So many of those that wait are looked at, in their order.")
    ] = 500
    passes: Annotated[
        int,
        Meta(
            ge=1,
            le=99,
            description="Courses of things that are gone through; the start that is told is the middle one of theirs.",
        ),
    ] = 5
    horizon_seconds: Annotated[
        float, Meta(gt=0, le=31_536_000, description="A start later than that is not estimated.")
    ] = 1_209_600.0
    change_ratio: Annotated[
        float,
        Meta(
            ge=0,
            le=10,
            description="What a condition says changes where the start moved by this part of the time left to it.",
        ),
    ] = 0.25
    change_seconds: Annotated[
        float, Meta(ge=0, le=86_400, description="And by this much at least, this long after the last change.")
    ] = 300.0


class _Told(msgspec.Struct, frozen=True):
    """What a condition says, by which estimate, since when."""

    words: str
    estimate: StartEstimate
    at_seconds: float


class StartBook:
    """By workload. `words` is None before the first estimate of this process."""

    def __init__(self, policy: EstimatePolicy | None = None) -> None:
        self.policy = policy or EstimatePolicy()
        self._estimates: Mapping[WorkloadId, StartEstimate] = {}
        self._told: dict[WorkloadId, _Told] = {}

    def __len__(self) -> int:
        return len(self._told)

    def put(self, estimates: Mapping[WorkloadId, StartEstimate], now: float) -> None:
        """These are the newest, of all that wait."""
        self._estimates = estimates
        before = self._told
        self._told = {
            subject: self._say(subject, before.get(subject), found, now) for subject, found in estimates.items()
        }

    def of(self, subject: WorkloadId) -> StartEstimate | None:
        """The newest estimate; None where there is none yet."""
        return self._estimates.get(subject)

    def words(self, subject: WorkloadId) -> str | None:
        """What its condition says of its start, empty where nothing is known of that; None: not looked at yet."""
        told = self._told.get(subject)
        return told.words if told is not None else None

    def _say(self, subject: WorkloadId, before: _Told | None, found: StartEstimate, now: float) -> _Told:
        if before is not None and not self._moved(before, found, now):
            return before
        namespace = subject.name.partition("/")[0]
        return _Told(estimate_words(seen_from(found, namespace)), found, now)

    def _moved(self, before: _Told, found: StartEstimate, now: float) -> bool:
        policy, said = self.policy, before.estimate.start_seconds
        if now - before.at_seconds < policy.change_seconds:
            return False
        if said is None or found.start_seconds is None:
            return said != found.start_seconds
        moved, left = abs(found.start_seconds - said), max(0.0, said - now)
        return moved >= max(policy.change_seconds, policy.change_ratio * left) or _kind(before.estimate) != _kind(found)


def _kind(estimate: StartEstimate) -> bool:
    return estimate.basis is EstimateBasis.UNKNOWN
