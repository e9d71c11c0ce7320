"""Memory QoS, the values: what the kernel keeps of a pod's memory, where it slows a container down, whom it kills.

    memory.min = request x minLimitPercent
    memory.low = request x lowLimitPercent, and no less than memory.min
    memory.high of a container = request + (limit - request) x throttlingPercent, and no less than memory.min;
                                 without a limit the node's allocatable memory stands for it

Each in whole pages, of what a pod was granted: one that its kubelet has not admitted keeps nothing, nor does what a
resize only asks for. Kubepods and burstable keep what their pods hold of that together, since the kernel keeps no more
below than above, and gives what nobody below claims to everybody there (mount option memory_recursiveprot). Nothing
protects best effort: what it holds must be there to be taken back. What was there before us is not made worse: never
less kept, never slowed down earlier. Source: Koordinator pkg/koordlet/qosmanager/plugins/cgreconcile; kernel
Documentation/admin-guide/cgroup-v2.rst (Memory Interface Files), mm/memcontrol.c (effective_protection).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from agent.core.limit.memory_qos.wishes import MemoryWishes, priorities, tier_class, wanted_files
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knob_table import row_of
from agent.core.observe.knobs import (
    MEMORY_HIGH_FILE,
    MEMORY_LOW_FILE,
    MEMORY_MIN_FILE,
    MEMORY_QOS_FILES,
    OOM_GROUP_FILE,
    PRIORITY_FILE,
    UNLIMITED,
    USE_PRIORITY_FILE,
    WMARK_ADJ_FILE,
    WMARK_RATIO_FILE,
    WMARK_SCALE_FILE,
)
from agent.core.observe.layout import Layout
from agent.core.observe.observation import CgroupSample, Knob, KnobReading, Missing, Observation
from model.decision import Decision, TermSum, Unit
from model.explain import amount
from model.pod.pod import Pod
from model.pod.spec import Container
from model.qos import KubernetesQoS, MemoryQos
from model.reason import Reason
from model.resources import BATCH_MEMORY, MEMORY, MID_MEMORY, ResourceVector

_PAGE_BYTES = 4096
_PARTS = 16
"""What a pod holds counts for its tier in so many parts, or up to twice as many: not each page is a write."""
_LARGEST_BYTES = 1 << 60
"""Whoever has such a limit has none; the kernel reads little more as `max`, and says that then."""
_ALL_OF_IT = "what the node has for pods"
_KEPT = (MEMORY_MIN_FILE, MEMORY_LOW_FILE)
_AMOUNTS = (*_KEPT, MEMORY_HIGH_FILE)


class _Group(msgspec.Struct, frozen=True):
    """One cgroup, a pod's or a container's: what it requests, and up to where it may grow (None: not a container)."""

    detail: str
    qos: MemoryQos
    request: int
    most: int | None = None
    most_is: str = ""


def memory_qos_limits(layout: Layout, observation: Observation, now: MemoryWishes) -> dict[Knob, Limit]:
    """Of every file of memory QoS that was read: what is wanted."""
    groups = _groups(observation, now)
    found: dict[Knob, Limit] = {}
    for knob, reading in observation.knobs.items():
        if knob.file not in MEMORY_QOS_FILES or knob.cgroup in (layout.root, layout.burstable, layout.best_effort):
            continue
        if isinstance(reading.kernel, Missing):
            continue
        group = groups.get(knob.cgroup)
        if group is None or knob.file not in wanted_files(group.qos, of_container=group.most is not None):
            continue
        limit = _of(group, knob, reading, observation.at_seconds)
        if limit is not None:
            found[knob] = limit
    return found


def tier_limits(layout: Layout, observation: Observation, now: MemoryWishes) -> Iterator[Limit]:
    """Of kubepods and burstable what their pods keep together; priorities of these and of the best-effort root."""
    kept = _kept_by_class(layout, observation, now) if any(file in now.files for file in _KEPT) else {}
    for knob, reading in observation.knobs.items():
        own_tier = knob.cgroup in (layout.root, layout.burstable, layout.best_effort)
        if not own_tier or isinstance(reading.kernel, Missing) or knob.file not in (*_KEPT, *_PRIORITIES):
            continue
        of_memory = knob.file in _KEPT
        terms = _tier_terms(layout, observation, knob, kept) if of_memory else _priority_terms(layout, knob, now)
        if terms is not None:
            yield _limit(knob, _as_before(knob, terms, reading), observation.at_seconds)


_PRIORITIES = (USE_PRIORITY_FILE, PRIORITY_FILE)
_Kept = dict[tuple[KubernetesQoS, str], int]


def _kept_by_class(layout: Layout, observation: Observation, now: MemoryWishes) -> _Kept:
    """Bytes by Kubernetes class and file, of pods that have a cgroup; the directory decides which class."""
    found: _Kept = {}
    for pod in now.pods or ():
        qos, place = now.by_uid.get(pod.uid), observation.places.pods.get(pod.uid)
        if qos is None or place is None:
            continue
        is_burstable = place.path.startswith(f"{layout.burstable}/")
        kubernetes = KubernetesQoS.BURSTABLE if is_burstable else KubernetesQoS.GUARANTEED
        request = _granted(pod, _for_pods(observation))
        for file in _KEPT:
            amount = _claimed(_kept(qos, file, request).value, observation.pods.get(pod.uid))
            found[kubernetes, file] = found.get((kubernetes, file), 0) + amount
    return found


def _claimed(kept: int, sample: CgroupSample | Missing | None) -> int:
    """What a pod holds of what it keeps, in whole parts of what it holds; nothing while it is not measured.

    Rounded down: what a tier keeps and none of its pods holds, the kernel gives to all, best effort among them.
    """
    if not isinstance(sample, CgroupSample):
        return 0
    held = sample.ends_bytes + sample.page_cache_bytes
    part = max(1 << max(held.bit_length() - _PARTS.bit_length(), 0), _PAGE_BYTES)
    return min(held // part * part, kept)


def _tier_terms(layout: Layout, observation: Observation, knob: Knob, kept: _Kept) -> TermSum | None:
    if knob.cgroup == layout.best_effort:
        return None
    terms = TermSum().add("Burstable pods", kept.get((KubernetesQoS.BURSTABLE, knob.file), 0))
    if knob.cgroup == layout.root:
        terms.add("Guaranteed pods", kept.get((KubernetesQoS.GUARANTEED, knob.file), 0))
    return terms.at_most(_ALL_OF_IT, _for_pods(observation)) if terms.value else None


def _priority_terms(layout: Layout, knob: Knob, now: MemoryWishes) -> TermSum | None:
    qos = now.strategy.of(tier_class(layout, knob.cgroup))
    value = priorities(qos).get(knob.file) if qos else None
    return TermSum().add("by setting", value) if value else None


def _groups(observation: Observation, now: MemoryWishes) -> dict[str, _Group]:
    """By cgroup, of pods with a wish of which something was read."""
    read = {knob.cgroup for knob in observation.knobs if knob.file in MEMORY_QOS_FILES}
    most, found = _for_pods(observation), dict[str, _Group]()
    for pod in now.pods or () if read else ():
        place, qos = observation.places.pods.get(pod.uid), now.by_uid.get(pod.uid)
        if place is None or qos is None:
            continue
        if place.path in read:
            found[place.path] = _Group(f"pod {pod.key}", qos, _granted(pod, most))
        for container in (*pod.spec.containers, *(init for init in pod.spec.init_containers if init.sidecar)):
            path = place.containers.get(container.name)
            if path in read:
                found[path] = _of_container(pod, container, qos, most)
    return found


def _for_pods(observation: Observation) -> int:
    """What the node has for pods, bytes; while that is unknown, more than any node has."""
    return observation.node.allocatable[MEMORY] if observation.node else _LARGEST_BYTES


def _of_container(pod: Pod, container: Container, qos: MemoryQos, for_pods: int) -> _Group:
    limits = [limit for limit in (_of_memory(pod, container.limits), container.limits[MEMORY]) if limit]
    bounded = bool(limits) and min(limits) < _LARGEST_BYTES
    most, most_is = (min(limits), "its limit") if bounded else (for_pods, _ALL_OF_IT)
    detail, request = f"pod {pod.key}, container {container.name}", _of_memory(pod, container.requests)
    return _Group(detail, qos, min(request, _granted(pod, for_pods)), most if most < _LARGEST_BYTES else 0, most_is)


def _granted(pod: Pod, for_pods: int) -> int:
    """What the pod has for certain, whatever a resize asks for that its kubelet has not granted."""
    asked = pod.spec.requests if pod.spec.certain is None else pod.spec.certain
    return min(_of_memory(pod, asked), for_pods)


def _of_memory(pod: Pod, amounts: ResourceVector) -> int:
    """Of what is lent, for whoever lives on that; elsewhere nothing lent is kept, whatever the pod calls itself."""
    lent = pod.borrows and pod.status.kubernetes_qos is KubernetesQoS.BEST_EFFORT
    return amounts[BATCH_MEMORY] + amounts[MID_MEMORY] if lent else amounts[MEMORY]


def _of(group: _Group, knob: Knob, reading: KnobReading, now: float) -> Limit | None:
    """None where it cannot be told."""
    if knob.file in _KEPT:
        terms = _kept(group.qos, knob.file, group.request)
    elif knob.file == MEMORY_HIGH_FILE:
        if not group.most:
            return None
        terms = _high(group)
    else:
        terms = TermSum().add("by setting", _constant(group.qos, knob.file))
    return _limit(knob, _as_before(knob, terms, reading), now, group.detail)


def _kept(qos: MemoryQos, file: str, request: int) -> TermSum:
    percent = (qos.min_pct if file == MEMORY_MIN_FILE else qos.low_pct) or 0
    name = "minLimitPercent" if file == MEMORY_MIN_FILE else "lowLimitPercent"
    terms = TermSum().add("request", request).become(name, request * percent // 100, f"{percent} % of it")
    _whole_pages(terms)
    if file == MEMORY_LOW_FILE and percent and qos.min_pct:
        terms.at_least("memory.min", _kept(qos, MEMORY_MIN_FILE, request).value)
    return terms


def _high(group: _Group) -> TermSum:
    percent, most = group.qos.throttling_pct or 0, max(group.most or 0, group.request)
    note = f"{percent} % of what is between that and {group.most_is}, {amount(most, Unit.BYTES)}"
    terms = TermSum().add("request", group.request)
    terms.add("throttlingPercent", (most - group.request) * percent // 100, note)
    return _whole_pages(terms).at_least("memory.min", max(_kept(group.qos, MEMORY_MIN_FILE, group.request).value, 4096))


def _constant(qos: MemoryQos, file: str) -> int:
    told = {
        WMARK_RATIO_FILE: qos.wmark_ratio,
        WMARK_SCALE_FILE: qos.wmark_scale_permill,
        WMARK_ADJ_FILE: qos.wmark_min_adj,
        OOM_GROUP_FILE: qos.oom_kill_group,
        **priorities(qos),
    }
    return told[file] or 0


def _whole_pages(terms: TermSum) -> TermSum:
    return terms.become("whole pages", terms.value // _PAGE_BYTES * _PAGE_BYTES)


def _as_before(knob: Knob, terms: TermSum, reading: KnobReading) -> TermSum:
    """Never worse than whoever made the cgroup wanted it."""
    # What a write of ours that was not kept left there is nobody's wish.
    before = reading.kernel if reading.original is None else reading.original
    if knob.file not in _AMOUNTS or not isinstance(before, int):
        return terms
    if knob.file == MEMORY_HIGH_FILE:
        return terms if before == UNLIMITED else terms.at_most("before us", before)
    return terms.become("before us", before) if before == UNLIMITED else terms.at_least("before us", before)


def _limit(knob: Knob, terms: TermSum, now: float, detail: str = "") -> Limit:
    decision = Decision(
        knob.subject, knob.file, terms.value, row_of(knob).unit, Reason.MEMORY_QOS, terms.terms, "", now, detail
    )
    return Limit(knob, terms.value, decision)
