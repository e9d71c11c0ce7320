"""CPU bursts of online pods: what a container left of its quota in one period it may spend in a later one.

    burst of a container = its CPU limit x cpuBurstPercent, and no more than one period's limit
    burst of a pod = those of its containers together, and no more than one period's quota of the pod

The average stays the limit: nobody gets more than Kubernetes granted. The kernel takes no burst above the quota, and no
quota below the burst: a container whose limit is lowered in place gets the smaller burst first, so that the kubelet's
next try is taken. Batch and mid pods, LSE pods and whoever has no quota are left alone (docs/adr/0044). Source: kernel
Documentation/scheduler/sched-bwc.rst; Koordinator pkg/koordlet/qosmanager/plugins/cpuburst, issues 1477, 2326, 2778.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from agent.core.limit.allowance import US_PER_MILLI
from agent.core.limit.knob_schedule import KnobSchedule, due
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import SMALLEST_QUOTA_US, UNLIMITED, burst_knob, quota_of
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, Knob, KnobReading, Missing, Observation, Places, PodPlace
from model.decision import Decision, TermSum, Unit
from model.pod.colocation import BurstTerms
from model.pod.pod import Pod
from model.pod.spec import Container
from model.qos import QoSClass
from model.reason import Reason
from model.resources import CPU
from model.strategy import BurstPolicy, BurstStrategy

_SILENT = BurstTerms()
_ONLINE = (QoSClass.NONE, QoSClass.LS, QoSClass.LSR)


class BurstMemory(msgspec.Struct, frozen=True):
    """What one tick must know of the one before: whether the kernel has no bursts."""

    absent: bool = False


class BurstFacts(msgspec.Struct, frozen=True):
    """What bursts depend on beside the observation; `pods` is None until they were listed."""

    layout: Layout
    strategy: BurstStrategy
    pods: tuple[Pod, ...] | None

    @property
    def listed(self) -> tuple[Pod, ...]:
        return self.pods or ()

    def wants(self, pod: Pod) -> bool:
        """It may save up CPU."""
        return self.policy(pod).saves_up and _is_online(pod)

    def policy(self, pod: Pod) -> BurstPolicy:
        """The pod's own, else the node's."""
        own = pod.colocation.burst.policy
        return self.strategy.policy if own is None else own

    def of(self, pod: Pod) -> BurstStrategy:
        """The pod's own words go before the node's."""
        own = pod.colocation.burst
        return self.strategy if own == _SILENT else own.over(self.strategy)

    def place(self, places: Places, pod: Pod) -> PodPlace | None:
        """Its cgroups outside the best-effort root; None where it has none there."""
        place = places.pods.get(pod.uid)
        return None if place is None or place.path.startswith(f"{self.layout.best_effort}/") else place


class _Group(msgspec.Struct, frozen=True, gc=False):
    """One cgroup, a pod's or (by name) a container's, and what its containers may use in one period (us)."""

    cgroup: str
    pod: str
    container: str
    limit_us: int
    pct: int

    @property
    def most_us(self) -> int:
        return min(self.limit_us * self.pct // 100, self.limit_us)

    @property
    def detail(self) -> str:
        return f"pod {self.pod}, container {self.container}" if self.container else f"pod {self.pod}"


def bursts_to_read(memory: BurstMemory, schedule: KnobSchedule, facts: BurstFacts, places: Places) -> Iterator[Knob]:
    """The files that `cpu_bursts` must know: with a burst its quota, and one that tells whether the kernel has any."""
    wanting = [pod for pod in facts.listed if facts.wants(pod)]
    if wanting:
        yield _probe(facts.layout)
    if not memory.absent:
        limited = [_limited(facts, places, pod) for pod in wanting]
        found = (*due(schedule, _knobs(facts, limited), UNLIMITED), *_lowered(schedule, facts, limited))
        for knob in dict.fromkeys(found):
            yield knob
            yield quota_of(knob)


def bursts(facts: BurstFacts, places: Places) -> Iterator[Knob]:
    """The files that hold a burst by these settings, whatever was measured."""
    for pod in facts.listed:
        if facts.wants(pod):
            yield from (burst_knob(facts.layout, group.cgroup) for group in _limited(facts, places, pod))


def cpu_bursts(facts: BurstFacts, observation: Observation, pods: Iterable[Pod]) -> dict[Knob, Limit]:
    """The burst of every cgroup of `pods` that wants one and whose files were read."""
    limits: dict[Knob, Limit] = {}
    wanting = () if _is_absent(facts.layout, observation) else (pod for pod in pods if facts.wants(pod))
    for pod in wanting:
        for group in _limited(facts, observation.places, pod):
            knob = burst_knob(facts.layout, group.cgroup)
            reading = observation.knobs.get(knob)
            limit = _wanted(knob, group, reading, observation) if reading else None
            if limit is not None:
                limits[knob] = limit
    return limits


def burst_memory(layout: Layout, observation: Observation) -> BurstMemory:
    """What to remember of this tick."""
    return BurstMemory(_is_absent(layout, observation))


def burst_absent(layout: Layout, observation: Observation) -> dict[Knob, Limit]:
    """The record that the kernel has no bursts; nothing where it has, and where nobody wants one."""
    knob, terms = _probe(layout), TermSum().add("no such file", 0)
    record = _limit(knob, terms, Reason.KNOB_ABSENT, observation.at_seconds)
    return {knob: record} if _is_absent(layout, observation) else {}


def _is_absent(layout: Layout, observation: Observation) -> bool:
    reading = observation.knobs.get(_probe(layout))
    return reading is not None and isinstance(reading.kernel, Missing) and reading.kernel.absence is Absence.GONE


def _probe(layout: Layout) -> Knob:
    return burst_knob(layout, layout.best_effort)


def _is_online(pod: Pod) -> bool:
    return pod.colocation.qos_label in _ONLINE and not pod.colocation.below_prod and not pod.terminal


def _limited(facts: BurstFacts, places: Places, pod: Pod) -> tuple[_Group, ...]:
    """Those with a limit: what has none saves nothing up."""
    return tuple(group for group in _groups(facts, places, pod) if group.limit_us)


def _knobs(facts: BurstFacts, pods: Iterable[tuple[_Group, ...]]) -> Iterator[tuple[Knob, ...]]:
    return (tuple(burst_knob(facts.layout, group.cgroup) for group in groups) for groups in pods)


def _lowered(schedule: KnobSchedule, facts: BurstFacts, pods: Iterable[tuple[_Group, ...]]) -> Iterator[Knob]:
    """All of a pod whose limits came down: the kubelet cannot lower a quota below the burst that stands."""
    held = {limit.knob: limit.value for limit in schedule.in_force}
    for groups in pods:
        knobs = [burst_knob(facts.layout, group.cgroup) for group in groups]
        if any(_above(held.get(knob), group.most_us) for knob, group in zip(knobs, groups, strict=True)):
            yield from knobs


def _above(held: object, most_us: int) -> bool:
    return isinstance(held, int) and held > most_us


def _groups(facts: BurstFacts, places: Places, pod: Pod) -> Iterator[_Group]:
    """The pod first, then each container; 0 is no limit."""
    place = facts.place(places, pod)
    if place is None:
        return
    pct, key = facts.of(pod).cpu_pct, pod.key
    running, starting = 0, 0
    limits = [(container, _limit_us(container)) for container in (*pod.spec.containers, *pod.spec.init_containers)]
    inits = pod.spec.init_containers
    for container, limit in limits:
        if inits and container in inits and not container.sidecar:
            starting = max(starting, limit)
        else:
            running += limit
    # Where none of those that run has a limit, one that only starts the pod may have.
    yield _Group(place.path, key, "", running or starting, pct)
    for container, limit in limits:
        cgroup = place.containers.get(container.name)
        if cgroup is not None:
            yield _Group(cgroup, key, container.name, limit, pct)


def _limit_us(container: Container) -> int:
    """As the kubelet counts it (pkg/kubelet/cm/helpers_linux.go: MilliCPUToQuota)."""
    limit = container.limits[CPU] * US_PER_MILLI
    return max(limit, SMALLEST_QUOTA_US) if limit else 0


def _wanted(knob: Knob, group: _Group, reading: KnobReading, observation: Observation) -> Limit | None:
    """What has no quota has nothing to save up: its file holds what it held before us."""
    quota, now = observation.knobs.get(quota_of(knob)), observation.at_seconds
    if quota is None or not isinstance(quota.kernel, int):
        return None
    if quota.kernel == UNLIMITED:
        before = reading.kernel if reading.last_written is None else reading.original
        terms = TermSum().add("no quota, no burst", before if isinstance(before, int) else 0)
        return _limit(knob, terms, Reason.CPU_BURST, now, group.detail)
    terms = TermSum().add("limits", group.limit_us * group.pct // 100, f"{group.pct} % of {group.limit_us} us")
    terms.at_most("one period's limit", group.limit_us).at_most("quota in force", quota.kernel)
    return _limit(knob, terms, Reason.CPU_BURST, now, group.detail)


def _limit(knob: Knob, terms: TermSum, reason: Reason, now: float, detail: str = "") -> Limit:
    unit = Unit.MICROSECONDS
    return Limit(
        knob, terms.value, Decision(knob.subject, knob.file, terms.value, unit, reason, terms.terms, "", now, detail)
    )
