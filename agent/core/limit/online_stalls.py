"""From an observation to relief for online pods: who waits, is that suffering, and whose word wakes the brake."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agent.core.limit.stall_relief import CALM, Grip, Relief, Suffering, relieve
from agent.core.limit.stall_signals import Wait, Witness, signs, watched, witnesses
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Observation
from agent.core.observe.usage import NodeUsage
from model.pod import Pod
from model.strategy import SuppressStrategy


class Listening(msgspec.Struct, frozen=True):
    """What one tick must know of the one before; `waits` by cgroup."""

    waits: Mapping[str, Wait] = {}
    suffering: Suffering = Suffering()


class Heard(msgspec.Struct, frozen=True):
    """`online` are the cgroups whose waiting counts and may be watched between ticks."""

    relief: Relief = CALM
    online: tuple[str, ...] = ()


class Ears(msgspec.Struct, frozen=True):
    """What listening depends on beside the observation; `pods` is None until they were listed.

    `cut_us` is what the brake cut best effort to since the tick before, because somebody waited.
    """

    layout: Layout
    strategy: SuppressStrategy
    pods: tuple[Pod, ...] | None
    grip: Grip | None
    cut_us: int | None = None


def listen(state: Listening, seen: Observation, usage: NodeUsage | None, ears: Ears) -> tuple[Listening, Heard]:
    """Without usage everything stays as it is; without suppression or best effort there is nothing to cut."""
    if not ears.strategy.enable or _absent(seen, usage):
        return Listening(), Heard()
    found = witnesses(ears.layout, seen, usage, ears.pods, ears.strategy)
    if usage is None or ears.grip is None:
        return state, Heard(online=_trusted(found, state.suffering, seen.monotonic_seconds))
    waits = watched(state.waits, found, seen.monotonic_seconds)
    told = signs(waits, found, usage, ears.pods, ears.strategy)
    suffering, relief = relieve(state.suffering, told, ears.grip, seen.monotonic_seconds, ears.cut_us)
    return Listening(waits, suffering), Heard(relief, _trusted(found, suffering, seen.monotonic_seconds))


def _absent(seen: Observation, usage: NodeUsage | None) -> bool:
    """Nobody is there to be cut."""
    return usage is not None and not seen.places.best_effort and usage.best_effort.last.cpu_millis == 0


def _trusted(found: tuple[Witness, ...], suffering: Suffering, now: float) -> tuple[str, ...]:
    """Without those that wait whatever best effort gets: they would wake the brake for nothing."""
    return tuple(witness.cgroup for witness in found if not suffering.disregards(witness.cgroup, now))
