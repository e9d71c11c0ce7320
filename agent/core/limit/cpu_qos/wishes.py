"""CPU QoS and clamps, the wishes: what each pod wants, and which control files that needs.

A file whose neutral value is wanted is left alone, so what asks for nothing costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from agent.core.observe.knobs import (
    CLAMP_MAX_FILE,
    CLAMP_MIN_FILE,
    CPU_QOS_FILES,
    IDENTITY_FILE,
    IDLE_FILE,
    cpu_qos_knob,
)
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, Knob, Missing, Observation, Places
from model.pod.pod import Pod
from model.qos import CpuQosStrategy, UclampStrategy
from model.resources import BATCH_CPU, MID_CPU

_LENT = (BATCH_CPU, MID_CPU)
_UNCLAMPED_PCT = 100


class CpuWish(msgspec.Struct, frozen=True):
    """Of one pod: its group identity, whether it is idle beside its siblings, the clamp below it in percent."""

    identity: int = 0
    idle: bool = False
    min_pct: int = 0

    @property
    def files(self) -> Iterator[str]:
        """Of its containers as well; `cpu.idle` is the pod's alone."""
        if self.identity:
            yield IDENTITY_FILE
        if self.min_pct:
            yield CLAMP_MIN_FILE


class CpuWishes(msgspec.Struct, frozen=True):
    """What is wanted of these pods under this strategy and these clamps: by uid, and the files of all together."""

    pods: tuple[Pod, ...] | None = None
    strategy: CpuQosStrategy = CpuQosStrategy()
    clamps: UclampStrategy = UclampStrategy()
    by_uid: Mapping[str, CpuWish] = {}
    files: frozenset[str] = frozenset()

    def idle(self, uid: str) -> bool:
        return uid in self.by_uid and self.by_uid[uid].idle


_NOTHING = CpuWishes()
"""Of nobody's pods, so that a journal does not hold them once more."""


class CpuQosMemory(msgspec.Struct, frozen=True):
    """What one tick must know of the one before: the wishes, which files the kernel was seen to have or not, and the
    uids of pods whose `cpu.idle` may be ours."""

    wishes: CpuWishes = CpuWishes()
    seen: Mapping[str, bool] = {}
    idle: frozenset[str] = frozenset()

    @property
    def absent(self) -> tuple[str, ...]:
        """Files that are wanted and that this kernel does not have."""
        return tuple(sorted(file for file in self.wishes.files if self.seen.get(file) is False))

    def has(self, file: str) -> bool:
        """It was seen."""
        return self.seen.get(file, False)


def wishes(
    known: CpuWishes, strategy: CpuQosStrategy, clamps: UclampStrategy, pods: tuple[Pod, ...] | None
) -> CpuWishes:
    """The `known` ones while nothing they depend on changed."""
    if strategy == CpuQosStrategy() and clamps == UclampStrategy():
        return _NOTHING
    if pods is known.pods and strategy == known.strategy and clamps == known.clamps:
        return known
    told = ((pod.uid, _of(pod, strategy, clamps)) for pod in pods or () if not pod.terminal)
    found = {uid: wish for uid, wish in told if wish != CpuWish()}
    files = {file for wish in found.values() for file in wish.files}
    files.update((IDLE_FILE,) if any(wish.idle for wish in found.values()) else ())
    files.update((IDENTITY_FILE,) if any(qos and qos.identity for qos in (strategy.ls, strategy.be)) else ())
    files.update((CLAMP_MAX_FILE,) if max_pct(clamps) is not None else ())
    return CpuWishes(pods, strategy, clamps, found, frozenset(files))


def max_pct(clamps: UclampStrategy) -> int | None:
    """The clamp above best effort, None where there is none."""
    return None if clamps.be_max_pct == _UNCLAMPED_PCT else clamps.be_max_pct


def _of(pod: Pod, strategy: CpuQosStrategy, clamps: UclampStrategy) -> CpuWish:
    """Online pods are never idle; of batch pods only those whose weight says more than the kernel's smallest."""
    about = pod.colocation
    qos = strategy.of_pod(about.qos, about.qos_label, about.cpu_identity)
    return CpuWish(
        identity=qos.identity if qos else 0,
        idle=bool(qos and qos.idle) and pod.best_effort and pod.borrows and _asks(pod),
        min_pct=0 if pod.best_effort or pod.borrows else clamps.min_pct(about.qos),
    )


def _asks(pod: Pod) -> bool:
    """For lent CPU, by which it has a weight."""
    everyone = (*pod.spec.containers, *pod.spec.init_containers)
    return any(name in amounts for each in everyone for amounts in (each.requests, each.limits) for name in _LENT)


def cpu_qos_memory(known: CpuQosMemory, now: CpuWishes, layout: Layout, observation: Observation) -> CpuQosMemory:
    """After a tick that read what `knobs_to_read` named."""
    there = not isinstance(observation.kubepods, Missing)
    fresh = {
        knob.file: not (isinstance(reading.kernel, Missing) and reading.kernel.absence is Absence.GONE)
        for knob, reading in observation.knobs.items()
        if there and knob.file in now.files and knob.file not in known.seen and knob.cgroup == _probed(layout, knob)
    }
    seen = {**known.seen, **fresh} if fresh else known.seen
    wanting = {uid for uid, wish in now.by_uid.items() if wish.idle and seen.get(IDLE_FILE)}
    idle = wanting.union(uid for uid in known.idle if uid not in wanting and _is_idle(layout, observation, uid))
    return CpuQosMemory(now, seen, frozenset(idle))


def _probed(layout: Layout, knob: Knob) -> str:
    """Where a file is looked for; `cpu.idle` of the best-effort root is read each tick."""
    return layout.best_effort if knob.file == IDLE_FILE else layout.root


def _is_idle(layout: Layout, observation: Observation, uid: str) -> bool:
    """Or was not read."""
    place = observation.places.pods.get(uid)
    if place is None:
        return False
    reading = observation.knobs.get(cpu_qos_knob(layout, place.path, IDLE_FILE))
    return reading is None or reading.kernel == 1


def pod_knobs(memory: CpuQosMemory, now: CpuWishes, layout: Layout, places: Places, pod: Pod) -> Iterator[Knob]:
    """The control files of one pod and its containers that its wish needs, of those the kernel has; `cpu.idle` also
    where it ends."""
    wish, place = now.by_uid.get(pod.uid, CpuWish()), places.pods.get(pod.uid)
    if place is None or pod.terminal:
        return
    for file in (file for file in wish.files if memory.has(file)):
        yield from (cpu_qos_knob(layout, path, file) for path in (place.path, *place.containers.values()))
    if (wish.idle and memory.has(IDLE_FILE)) or pod.uid in memory.idle:
        yield from idle_knobs(layout, places, pod)


def idle_knobs(layout: Layout, places: Places, pod: Pod) -> Iterator[Knob]:
    """`cpu.idle` of a pod below the best-effort root."""
    place = places.pods.get(pod.uid)
    if place is not None and place.path.startswith(f"{layout.best_effort}/"):
        yield cpu_qos_knob(layout, place.path, IDLE_FILE)


def wanted_pod_knobs(now: CpuWishes, layout: Layout, places: Places, pod: Pod) -> Iterator[Knob]:
    """Those that hold a value of ours by these settings, whatever was measured."""
    wish, place = now.by_uid.get(pod.uid), places.pods.get(pod.uid)
    if wish is None or place is None or pod.terminal:
        return
    for file in wish.files:
        yield from (cpu_qos_knob(layout, path, file) for path in (place.path, *place.containers.values()))
    if wish.idle:
        yield from idle_knobs(layout, places, pod)


def tier_knobs(now: CpuWishes, layout: Layout) -> Iterator[Knob]:
    """Those of kubepods and the classes' cgroups that wishes need."""
    for qos, cgroup in ((now.strategy.ls, layout.burstable), (now.strategy.be, layout.best_effort)):
        if qos is not None and qos.identity:
            yield cpu_qos_knob(layout, cgroup, IDENTITY_FILE)
    if CLAMP_MIN_FILE in now.files:
        yield cpu_qos_knob(layout, layout.root, CLAMP_MIN_FILE)
        yield cpu_qos_knob(layout, layout.burstable, CLAMP_MIN_FILE)
    if CLAMP_MAX_FILE in now.files:
        yield cpu_qos_knob(layout, layout.best_effort, CLAMP_MAX_FILE)


def knobs_to_read(memory: CpuQosMemory, now: CpuWishes, layout: Layout) -> Iterator[Knob]:
    """Of the tiers, as far as the kernel is known to have them; of kubepods what is not known to be there or not."""
    unknown = sorted((now.files & CPU_QOS_FILES) - memory.seen.keys())
    yield from (cpu_qos_knob(layout, layout.root, file) for file in unknown)
    yield from (knob for knob in tier_knobs(now, layout) if memory.has(knob.file))


def ending(memory: CpuQosMemory, now: CpuWishes, pods: tuple[Pod, ...] | None) -> Iterator[Pod]:
    """Pods whose `cpu.idle` may be ours and is not wanted any more."""
    if memory.idle:
        yield from (pod for pod in pods or () if pod.uid in memory.idle and not now.idle(pod.uid))
