"""CPU QoS and clamps, the values.

    cpu.bvt_warp_ns = groupIdentity of the class, of the classes' cgroups, pods and containers; kubepods keeps 0
    cpu.idle = 1 of batch pods, where schedIdle of beClass says so
    cpu.uclamp.min = of a pod's class, of its containers, and the largest of them above
    cpu.uclamp.max = of the best-effort root

What was there before us is not made worse: a larger clamp below and a smaller one above stay. Source: Koordinator
pkg/koordlet/runtimehooks/hooks/{groupidentity,coresched}; kernel Documentation/scheduler/sched-util-clamp.rst and
admin-guide/cgroup-v2.rst (CPU Interface Files).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from agent.core.limit.cpu_qos.wishes import CpuWish, CpuWishes, max_pct, tier_knobs
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knob_table import row_of
from agent.core.observe.knobs import (
    CLAMP_MAX_FILE,
    CLAMP_MIN_FILE,
    CPU_QOS_FILES,
    IDENTITY_FILE,
    IDLE_FILE,
    cpu_qos_knob,
    shares_knob,
)
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob, KnobReading, Missing, Observation
from model.decision import Decision, TermSum
from model.pod.pod import Pod
from model.reason import Reason


class _Group(msgspec.Struct, frozen=True):
    """One cgroup, a pod's or a container's (then `pod_cgroup` is that of its pod), and what its pod wants."""

    detail: str
    wish: CpuWish
    pod_cgroup: str = ""


def identity_and_idle(layout: Layout, observation: Observation, now: CpuWishes) -> Iterator[Limit]:
    """Of every file of CPU QoS of single pods that was read: what is wanted."""
    for group, knob, reading in _read(layout, observation, now, (IDENTITY_FILE, IDLE_FILE)):
        if knob.file == IDENTITY_FILE and group.wish.identity:
            born_from = cpu_qos_knob(layout, group.pod_cgroup, IDENTITY_FILE) if group.pod_cgroup else None
            terms = TermSum().add("groupIdentity", group.wish.identity)
            yield _limit(knob, terms, Reason.CPU_QOS, observation.at_seconds, group.detail, born_from)
        elif knob.file == IDLE_FILE and group.wish.idle:
            yield _idle(layout, observation, group, knob, reading)


def clamps_of_pods(layout: Layout, observation: Observation, now: CpuWishes) -> Iterator[Limit]:
    """Of every clamp of single pods that was read: what is wanted."""
    for group, knob, reading in _read(layout, observation, now, (CLAMP_MIN_FILE,)):
        if group.wish.min_pct:
            terms = _as_before(knob, TermSum().add("by setting", group.wish.min_pct), reading)
            yield _limit(knob, terms, Reason.UCLAMP, observation.at_seconds, group.detail)


def tier_identities(layout: Layout, observation: Observation, now: CpuWishes) -> Iterator[Limit]:
    """Of the burstable and the best-effort root, as their classes."""
    for knob, _ in _tiers(layout, observation, now, (IDENTITY_FILE,)):
        qos = now.strategy.ls if knob.cgroup == layout.burstable else now.strategy.be
        if qos is not None:
            terms = TermSum().add("groupIdentity", qos.identity)
            yield _limit(knob, terms, Reason.CPU_QOS, observation.at_seconds)


def tier_clamps(layout: Layout, observation: Observation, now: CpuWishes) -> Iterator[Limit]:
    """Above pods the largest that any of them has: the kernel gives no more below than above. Best effort's own."""
    largest = max((wish.min_pct for wish in now.by_uid.values()), default=0)
    for knob, reading in _tiers(layout, observation, now, (CLAMP_MIN_FILE, CLAMP_MAX_FILE)):
        wanted = max_pct(now.clamps) if knob.file == CLAMP_MAX_FILE else largest
        if wanted is not None:
            name = "by setting" if knob.file == CLAMP_MAX_FILE else "the largest of its pods"
            terms = _as_before(knob, TermSum().add(name, wanted), reading)
            yield _limit(knob, terms, Reason.UCLAMP, observation.at_seconds)


def _tiers(
    layout: Layout, observation: Observation, now: CpuWishes, files: tuple[str, ...]
) -> Iterator[tuple[Knob, KnobReading]]:
    for knob in tier_knobs(now, layout):
        reading = observation.knobs.get(knob)
        if knob.file in files and reading is not None and not isinstance(reading.kernel, Missing):
            yield knob, reading


def _read(
    layout: Layout, observation: Observation, now: CpuWishes, files: tuple[str, ...]
) -> Iterator[tuple[_Group, Knob, KnobReading]]:
    """Files of single pods that could be read, and whose they are."""
    read = observation.knobs.items() if now.by_uid else ()
    found = {knob: reading for knob, reading in read if knob.file in files}
    groups = _groups(observation, now) if found else {}
    for knob, reading in found.items():
        group = groups.get(knob.cgroup)
        if group is not None and not isinstance(reading.kernel, Missing):
            yield group, knob, reading


def _groups(observation: Observation, now: CpuWishes) -> dict[str, _Group]:
    """By cgroup, of pods with a wish of which something was read."""
    read = {knob.cgroup for knob in observation.knobs if knob.file in CPU_QOS_FILES or knob.file == IDLE_FILE}
    found: dict[str, _Group] = {}
    for pod in now.pods or ():
        place, wish = observation.places.pods.get(pod.uid), now.by_uid.get(pod.uid)
        if place is None or wish is None:
            continue
        if place.path in read:
            found[place.path] = _Group(f"pod {pod.key}", wish)
        for name, path in place.containers.items():
            if path in read:
                found[path] = _Group(_of_container(pod, name), wish, place.path)
    return found


def _of_container(pod: Pod, name: str) -> str:
    return f"pod {pod.key}, container {name}"


def _idle(layout: Layout, observation: Observation, group: _Group, knob: Knob, reading: KnobReading) -> Limit:
    """A weight is lost while its cgroup is idle: it must be known what it was before any of us."""
    weight = observation.knobs.get(shares_knob(layout, knob.cgroup))
    ours = reading.original is not None
    if ours or (weight is not None and weight.original is not None):
        terms = TermSum().add("schedIdle", 1, "runs only where none of its siblings wants to")
    else:
        held = reading.kernel if isinstance(reading.kernel, int) else 0
        terms = TermSum().add("as it was", held, "its weight is the runtime's own")
    return _limit(knob, terms, Reason.CPU_QOS, observation.at_seconds, group.detail)


def _as_before(knob: Knob, terms: TermSum, reading: KnobReading) -> TermSum:
    """Never worse than whoever made the cgroup wanted it."""
    before = reading.original if reading.last_written is not None else reading.kernel
    if not isinstance(before, int):
        return terms
    if knob.file == CLAMP_MAX_FILE:
        return terms.at_most("before us", before)
    return terms.at_least("before us", before)


def _limit(
    knob: Knob, terms: TermSum, reason: Reason, now: float, detail: str = "", inherits: Knob | None = None
) -> Limit:
    unit = row_of(knob).unit
    decision = Decision(knob.subject, knob.file, terms.value, unit, reason, terms.terms, "", now, detail)
    return Limit(knob, terms.value, decision, inherits)
