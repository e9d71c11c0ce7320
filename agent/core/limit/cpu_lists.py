"""CPU lists of the best-effort root and, on v1, of every cgroup below it; and giving them back.

On v2 the kernel clips what is below the root. On v1 a cgroup cannot lose a CPU that a child holds, so that all of them
are read in each tick in which the policy is in force.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from agent.core.limit.cpu_selection import CpuSituation, child_limit, cpu_ceiling
from agent.core.limit.ownership import gives_more, left_to_us
from agent.core.limit.release import to_original
from agent.core.limit.suppress import CpuCeiling
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import PERIOD_US, cpuset_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob, KnobReading, Missing, Observation, Places, Value
from model.pod.pod import Pod
from model.reason import Reason
from model.strategy import SuppressPolicy, SuppressStrategy
from model.topology import parse_cpus

_STEP_SECONDS = 0.9
"""A second, less what a tick may come early."""


class CpuListMemory(msgspec.Struct, frozen=True):
    """What one tick must know of the one before: whether lists of ours may be in force, the last step (monotonic
    seconds), and the root's list as it was decided."""

    in_force: bool = False
    widened_seconds: float = 0.0
    wanted: str = ""


class CpuLists(msgspec.Struct, frozen=True):
    """`ceiling` is None where the policy is not in force; `in_force`: the kernel holds the root's new list, or less;
    `failed`: it does not hold the one of the tick before, or cannot be read."""

    limits: tuple[Limit, ...] = ()
    ceiling: CpuCeiling | None = None
    in_force: bool = False
    failed: bool = False


def wants_cpus(strategy: SuppressStrategy) -> bool:
    """CPUs are what suppression takes away."""
    return strategy.enable and strategy.policy is SuppressPolicy.CPUSET


def may_widen(state: CpuListMemory, monotonic_seconds: float) -> bool:
    """The last step is a second ago."""
    return monotonic_seconds - state.widened_seconds >= _STEP_SECONDS


def children_to_read(state: CpuListMemory, layout: Layout, places: Places, wanted: bool) -> tuple[Knob, ...]:
    """Lists below the root that may have to change with it, where one is `wanted` or may be in force."""
    if layout.version != 1 or not (state.in_force or wanted):
        return ()
    return tuple(cpuset_knob(layout, cgroup) for cgroup in places.best_effort)


def cpu_lists(
    state: CpuListMemory,
    layout: Layout,
    observation: Observation,
    about: CpuSituation,
    cap: Value | None,
    pods: tuple[Pod, ...],
) -> tuple[CpuListMemory, CpuLists]:
    """The lists that the policy asks for; `cap` is what another writer left us of the root."""
    root = cpuset_knob(layout, layout.best_effort)
    limit, ceiling = cpu_ceiling(root, about)
    widened = limit.decision.reason is Reason.CPUS_WIDENED
    _, limit = left_to_us(limit, about.reading, cap)
    in_force_us = limit.decision.value * PERIOD_US
    ceiling = msgspec.structs.replace(ceiling, decision=limit.decision, in_force_us=in_force_us)
    children = _children(layout, observation.places, limit, pods) if ceiling.base_terms else ()
    wanted = str(limit.value) if ceiling.base_terms else ""
    after = CpuListMemory(True, observation.monotonic_seconds if widened else state.widened_seconds, wanted)
    kernel = about.reading.kernel
    if isinstance(kernel, Missing):
        return after, CpuLists((limit, *children), ceiling, failed=state.in_force)
    in_force = bool(ceiling.base_terms) and not gives_more(root, kernel, limit.value)
    failed = bool(state.wanted) and gives_more(root, kernel, state.wanted)
    return after, CpuLists((limit, *children), ceiling, in_force, failed)


def kept_off(
    state: CpuListMemory,
    layout: Layout,
    observation: Observation,
    limit: Limit,
    cap: Value | None,
    pods: tuple[Pod, ...],
) -> tuple[CpuListMemory, CpuLists]:
    """The lists that keep best effort off CPUs of LSE pods, where CPUs are not what suppression takes away."""
    _, limit = left_to_us(limit, observation.knobs[limit.knob], cap)
    children = _children(layout, observation.places, limit, pods)
    return CpuListMemory(True, state.widened_seconds, str(limit.value)), CpuLists((limit, *children))


def given_back(state: CpuListMemory, layout: Layout, observation: Observation) -> tuple[CpuListMemory, CpuLists]:
    """What stood before the policy, once for every list that still holds ours; nothing that somebody else wrote since.

    Root and children together, since what was born below the root knows its original from there: that takes a tick
    in which all were read.
    """
    root = cpuset_knob(layout, layout.best_effort)
    reading = observation.knobs.get(root)
    below = [cpuset_knob(layout, cgroup) for cgroup in observation.places.best_effort] if layout.version == 1 else []
    if reading is None or (not _holds_ours(reading) and not state.in_force):
        return CpuListMemory(), CpuLists()
    if not all(knob in observation.knobs for knob in below):
        return CpuListMemory(in_force=True), CpuLists()
    limits = tuple(_returned(root, reading, below, observation.knobs, observation.at_seconds))
    return CpuListMemory(in_force=bool(limits)), CpuLists(limits)


def _returned(
    root: Knob, reading: KnobReading, below: list[Knob], readings: Mapping[Knob, KnobReading], now: float
) -> Iterator[Limit]:
    if _holds_ours(reading):
        yield to_original(root, str(reading.original), now)
    for knob in below:
        own = readings[knob]
        if _holds_ours(own):
            yield to_original(knob, str(own.original), now, root)
        elif own.last_written is None and own.kernel == reading.last_written and _holds_ours(reading):
            yield to_original(knob, str(reading.original), now, root)


def _holds_ours(reading: KnobReading) -> bool:
    """The list is ours, and not yet what it was."""
    return (
        reading.last_written is not None
        and reading.original not in (None, reading.last_written)
        and reading.kernel == reading.last_written
    )


def _children(layout: Layout, places: Places, root: Limit, pods: tuple[Pod, ...]) -> tuple[Limit, ...]:
    """On v1 all below the root."""
    if layout.version != 1:
        return ()
    own = _own_cpus(places, pods)
    knobs = (cpuset_knob(layout, cgroup) for cgroup in places.best_effort)
    return tuple(child_limit(knob, root, own.get(knob.cgroup, ())) for knob in knobs)


def _own_cpus(places: Places, pods: tuple[Pod, ...]) -> dict[str, tuple[int, ...]]:
    """By container cgroup, of batch pods that were given CPUs."""
    placed = [(pod, places.pods[pod.uid]) for pod in pods if pod.colocation.cpuset and pod.uid in places.pods]
    return {path: parse_cpus(pod.colocation.cpuset) for pod, place in placed for path in place.containers.values()}
