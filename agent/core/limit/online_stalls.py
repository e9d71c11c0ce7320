"""Online stalls: from an observation to relief for online pods, and the node's services, that wait for CPU, and which
pods' word wakes the brake."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agent.core.limit.stall_relief import CALM, CutRange, Relief, ReliefMemory, relieve
from agent.core.limit.stall_signals import StallSource, StallTrack, stall_signals, stall_sources, stall_tracks
from agent.core.observe.layout import SERVICES, Layout
from agent.core.observe.observation import Observation
from agent.core.observe.usage import NodeUsage
from model.pod.pod import Pod
from model.strategy import SuppressStrategy

MOST_WATCHED = 64
"""Between ticks the kernel watches each by a descriptor and a trigger of its own."""
_LISTEN_SECONDS = 60.0
"""After a cut: who waited may wait again. At rest a pass costs less so."""


class StallMemory(msgspec.Struct, frozen=True):
    """What one tick must know of the one before; `tracks` by cgroup.

    `heard` are the cgroups that the brake listens to, while a cut is in force and until `listen_until` (monotonic): how
    long these waited is read in each pass then, since a cut that was made for them is no noise, and not futile, merely
    because nobody looked.
    """

    tracks: Mapping[str, StallTrack] = {}
    relief: ReliefMemory = ReliefMemory()
    heard: tuple[str, ...] = ()
    listen_until: float = 0.0


class OnlineStalls(msgspec.Struct, frozen=True):
    """`online` are the cgroups whose waiting counts and may be watched between ticks."""

    relief: Relief = CALM
    online: tuple[str, ...] = ()


class StallFacts(msgspec.Struct, frozen=True):
    """What stalls are judged by beside the observation; `pods` is None until they were listed.

    `cut_us` is what the brake cut best effort to since the tick before, because somebody waited.
    """

    layout: Layout
    strategy: SuppressStrategy
    pods: tuple[Pod, ...] | None
    cut_range: CutRange | None
    cut_us: int | None = None


def online_stalls(
    state: StallMemory, observation: Observation, usage: NodeUsage | None, facts: StallFacts
) -> tuple[StallMemory, OnlineStalls]:
    """Without usage everything stays as it is; without suppression or best effort there is nothing to cut."""
    if not facts.strategy.enable or _absent(observation, usage):
        return StallMemory(), OnlineStalls()
    now = observation.monotonic_seconds
    apart = state.relief.disregards(facts.layout.burstable, now)
    found = stall_sources(
        facts.layout, observation, usage, facts.pods, facts.strategy, root_disregarded=apart, heard=state.heard
    )
    if usage is None or facts.cut_range is None:
        return state, OnlineStalls(online=_trusted(found, state.relief, state.tracks, now))
    tracks = stall_tracks(state.tracks, found, observation.monotonic_seconds)
    told = stall_signals(tracks, found, usage, facts.pods, facts.strategy)
    after, relief = relieve(state.relief, told, facts.cut_range, observation.monotonic_seconds, facts.cut_us)
    trusted = _trusted(found, after, tracks, now)
    until = now + _LISTEN_SECONDS if after.cap_us is not None else state.listen_until
    return StallMemory(tracks, after, trusted if now < until else (), until), OnlineStalls(relief, trusted)


def _absent(observation: Observation, usage: NodeUsage | None) -> bool:
    """Nobody is there to be cut."""
    return usage is not None and not observation.places.best_effort and usage.best_effort.last.cpu_millis == 0


def _trusted(
    found: tuple[StallSource, ...], relief: ReliefMemory, tracks: Mapping[str, StallTrack], now: float
) -> tuple[str, ...]:
    """Without those that wait whatever best effort gets: they would wake the brake for nothing. The root, then who
    waited most. The node's services can wait for a tick: where a burst of theirs was noise, nobody would be heard."""
    trusted = [s for s in found if s.cgroup != SERVICES and not relief.disregards(s.cgroup, now)]
    trusted.sort(key=lambda each: (not each.is_root, -tracks[each.cgroup].ratio if each.cgroup in tracks else 0.0))
    return tuple(source.cgroup for source in trusted[:MOST_WATCHED])
