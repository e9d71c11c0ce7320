"""Memory QoS, the wishes: which pods have one, and which control files it needs.

A file whose neutral value is wanted is left alone, so what asks for nothing costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from agent.core.observe.knobs import (
    MEMORY_HIGH_FILE,
    MEMORY_LOW_FILE,
    MEMORY_MIN_FILE,
    MEMORY_QOS_FILES,
    OOM_GROUP_FILE,
    PRIORITY_FILE,
    USE_PRIORITY_FILE,
    WMARK_ADJ_FILE,
    WMARK_RATIO_FILE,
    WMARK_SCALE_FILE,
    memory_qos_knob,
)
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, Knob, Missing, Observation, Places
from model.pod.pod import Pod
from model.qos import KubernetesQoS, MemoryQos, MemoryQosStrategy, QoSClass

_TIER_FILES = (MEMORY_MIN_FILE, MEMORY_LOW_FILE, USE_PRIORITY_FILE, PRIORITY_FILE)


class MemoryWishes(msgspec.Struct, frozen=True):
    """What is wanted of these pods under this strategy: by uid, and the files of all of them together."""

    pods: tuple[Pod, ...] | None = None
    strategy: MemoryQosStrategy = MemoryQosStrategy()
    by_uid: Mapping[str, MemoryQos] = {}
    files: frozenset[str] = frozenset()


class MemoryQosMemory(msgspec.Struct, frozen=True):
    """What one tick must know of the one before: the wishes, and which files kubepods was seen to have or not."""

    wishes: MemoryWishes = MemoryWishes()
    seen: Mapping[str, bool] = {}

    @property
    def absent(self) -> tuple[str, ...]:
        """Files that are wanted and that this kernel does not have."""
        return tuple(sorted(file for file in self.wishes.files if self.seen.get(file) is False))

    def has(self, file: str) -> bool:
        """Kubepods was seen to have it."""
        return self.seen.get(file, False)


def wishes(known: MemoryWishes, strategy: MemoryQosStrategy, pods: tuple[Pod, ...] | None) -> MemoryWishes:
    """The `known` ones while nothing they depend on changed."""
    if pods is known.pods and strategy == known.strategy:
        return known
    running = [pod for pod in pods or () if not pod.terminal]
    told = ((pod.uid, _of(pod, strategy)) for pod in running)
    found = {uid: qos for uid, qos in told if qos is not None}
    of_tiers = (qos for qos in (strategy.lsr, strategy.ls, strategy.be) if qos is not None)
    files = {file for qos in found.values() for file in wanted_files(qos)}
    files.update(file for qos in of_tiers for file, value in priorities(qos).items() if value)
    return MemoryWishes(pods, strategy, found, frozenset(files))


def _of(pod: Pod, strategy: MemoryQosStrategy) -> MemoryQos | None:
    """Best effort is never protected, nor is who lives on what is lent as mid."""
    qos = strategy.of_pod(pod.colocation.qos, pod.colocation.memory_qos)
    unprotected = pod.best_effort or pod.borrows
    return replace(qos, min_pct=None, low_pct=None) if qos is not None and unprotected else qos


def memory_qos_memory(
    known: MemoryQosMemory, now: MemoryWishes, layout: Layout, observation: Observation
) -> MemoryQosMemory:
    """After a tick that read what `tier_knobs` named."""
    there = not isinstance(observation.kubepods, Missing)
    fresh = {
        knob.file: not (isinstance(reading.kernel, Missing) and reading.kernel.absence is Absence.GONE)
        for knob, reading in observation.knobs.items()
        if there and knob.cgroup == layout.root and knob.file in MEMORY_QOS_FILES and knob.file not in known.seen
    }
    return MemoryQosMemory(now, {**known.seen, **fresh} if fresh else known.seen)


def wanted_files(qos: MemoryQos, *, of_container: bool = True) -> Iterator[str]:
    """Those whose value is not neutral; only containers are slowed down."""
    told = {
        MEMORY_MIN_FILE: qos.min_pct,
        MEMORY_LOW_FILE: qos.low_pct,
        MEMORY_HIGH_FILE: qos.throttling_pct if of_container else None,
        OOM_GROUP_FILE: qos.oom_kill_group,
        **priorities(qos),
    }
    marks = {
        WMARK_RATIO_FILE: qos.wmark_ratio,
        WMARK_SCALE_FILE: qos.wmark_scale_permill,
        WMARK_ADJ_FILE: qos.wmark_min_adj,
    }
    yield from (file for file, value in told.items() if value)
    yield from (file for file, mark in marks.items() if mark is not None)


def priorities(qos: MemoryQos) -> dict[str, int | None]:
    """Whom the kernel kills first."""
    return {USE_PRIORITY_FILE: qos.priority_enable, PRIORITY_FILE: qos.priority}


def pod_knobs(now: MemoryWishes, layout: Layout, places: Places, pod: Pod) -> Iterator[Knob]:
    """The control files of one pod and its containers that its wish needs."""
    qos, place = now.by_uid.get(pod.uid), places.pods.get(pod.uid)
    if qos is None or place is None or pod.terminal:
        return
    for file in wanted_files(qos, of_container=False):
        yield memory_qos_knob(layout, place.path, file)
    files = tuple(wanted_files(qos))
    yield from (memory_qos_knob(layout, path, file) for path in place.containers.values() for file in files)


def tier_knobs(now: MemoryWishes, layout: Layout) -> Iterator[Knob]:
    """Those of kubepods and the classes' cgroups that wishes need; best effort keeps nothing."""
    for file in (file for file in _TIER_FILES if file in now.files):
        yield memory_qos_knob(layout, layout.root, file)
        yield memory_qos_knob(layout, layout.burstable, file)
        if file in (USE_PRIORITY_FILE, PRIORITY_FILE):
            yield memory_qos_knob(layout, layout.best_effort, file)


def knobs_to_read(memory: MemoryQosMemory, now: MemoryWishes, layout: Layout) -> Iterator[Knob]:
    """Of the tiers, as far as the kernel is known to have them; of kubepods what is not known to be there or not."""
    unknown = sorted(now.files - memory.seen.keys())
    yield from (memory_qos_knob(layout, layout.root, file) for file in unknown)
    yield from (knob for knob in tier_knobs(now, layout) if memory.has(knob.file))


def tier_class(layout: Layout, cgroup: str) -> QoSClass:
    """Whose strategy a tier's priority follows (Koordinator GetKubeQoSResourceQoSByQoSClass)."""
    if cgroup == layout.root:
        return QoSClass.LSR
    return QoSClass.LS if cgroup == layout.class_root(KubernetesQoS.BURSTABLE) else QoSClass.BE
