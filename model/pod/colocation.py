"""Colocation: what Koordinator's labels and annotations say of a pod."""

from __future__ import annotations

import msgspec

from model.cpubinding import BoundCpus, CpuRequest, ExclusivePolicy, mask_of_list
from model.qos import PodMemoryQos, PriorityBand, QoSClass
from model.strategy import BurstPolicy, BurstStrategy


class LoadTerms(msgspec.Struct, frozen=True, cache_hash=True):
    """A pod's own words on how its use is estimated before it is measured (Koordinator loadaware annotations)."""

    scaling_pct: tuple[tuple[str, int], ...] = ()
    """(resource, percent of its request)."""
    after_scheduled_seconds: float | None = None
    """How long after its binding the estimate stands in for a measurement; None: as the settings say."""
    after_initialized_seconds: float | None = None
    """The same after its init containers were through."""


class StandingNotice(msgspec.Struct, frozen=True):
    """A pod is told that it goes: since when, and by when at the latest (Unix seconds), why and by whom.

    Whoever may change the pod may have written it, so it shortens nobody's rights but the pod's own.
    """

    since_seconds: float
    deadline_seconds: float
    reason: str = ""
    by: str = ""


class EvictionTerms(msgspec.Struct, frozen=True):
    """What a pod itself says about being evicted (Koordinator apis/extension/evict.go, and our notice)."""

    enabled: bool = False
    """Label koordinator.sh/eviction-enabled: rules that evict by priority may choose it."""
    features: frozenset[str] | None = None
    """The rules that may evict it; None: all."""
    priority: int = 0
    """Annotation koordinator.sh/eviction-priority: by such a rule the lower goes first."""
    sub_priority: int | None = None
    """Label koordinator.sh/priority, None without one."""
    notice_seconds: float = 0.0
    """How long before its end it wants to be told; 0: not at all."""
    standing: StandingNotice | None = None
    """That it was told (annotation sublet.dev/preemption-notice), None where it was not."""


class BurstTerms(msgspec.Struct, frozen=True):
    """A pod's own words on CPU bursts (annotation koordinator.sh/cpuBurst), which go before the node's strategy."""

    policy: BurstPolicy | None = None
    """What it may do beyond its CPU limit; None: as the node's strategy says, as below."""
    cpu_pct: int | None = None
    """What may be saved up for a burst, as a share of one period's limit."""
    quota_pct: int | None = None
    """How far its quota may be raised, as a share of the limit."""
    quota_seconds: int | None = None
    """For how long it may use that; -1: no end."""

    def over(self, strategy: BurstStrategy) -> BurstStrategy:
        """The strategy with what these terms set."""
        told = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        return msgspec.structs.replace(strategy, **told) if told else strategy


class OomScores(msgspec.Struct, frozen=True):
    """A pod's own words on whom the kernel kills first (annotations oom-score-adj and oom-score-adj-spec)."""

    of_all: int | None = None
    """Of every container that is not named; None: as the kubelet says."""
    by_container: tuple[tuple[str, int], ...] = ()
    """(name, score) of single ones."""

    def of(self, container: str) -> int | None:
        """-1000 to 1000, the higher is killed first; None where nothing is said."""
        return dict(self.by_container).get(container, self.of_all)


class Colocation(msgspec.Struct, frozen=True):
    """A pod's class and band, what it says about eviction and load, and what it is pinned to."""

    qos: QoSClass = QoSClass.LS
    """The QoS class, with a default where the label is absent or unknown."""
    qos_label: QoSClass = QoSClass.NONE
    """The QoS class as the label says, NONE where it is absent or unknown."""
    band: PriorityBand = PriorityBand.PROD
    """The priority band, with a default where neither label nor priority says."""
    below_prod: bool = False
    """Its own words make its band one of mid, batch or free."""
    preemptible: bool = True
    """No label protects it from preemption."""
    minimum_member: bool = False
    """One of its gang's minimum, without which the gang does not go on."""
    eviction: EvictionTerms = EvictionTerms()
    """What it says about being evicted."""
    load: LoadTerms = LoadTerms()
    """How its use is estimated before it is measured."""
    burst: BurstTerms = BurstTerms()
    """What it says about CPU bursts."""
    numa_zones: tuple[int, ...] = ()
    """NUMA nodes that the scheduler pinned it to (annotation resource-status), empty: none."""
    cpuset: str = ""
    """CPUs that the scheduler pinned it to (annotation resource-status), as a CPU list; empty: none."""
    memory_qos: PodMemoryQos | None = None
    """What it says of its memory (annotation memoryQOS)."""
    cpu_identity: int | None = None
    """Its own group identity (annotation cpuQOS)."""
    oom_scores: OomScores | None = None
    """Whom of its containers the kernel kills first; None: as the kubelet says."""
    cpus: CpuRequest | None = None
    """Whole CPUs that it asks for as its own (label LSE or LSR, annotation resource-spec); None: it shares all."""

    @property
    def bound_cpus(self) -> BoundCpus | None:
        """What of its node's CPUs it keeps from others; batch work keeps none."""
        if not self.cpuset or self.qos_label is QoSClass.BE:
            return None
        exclusive = self.cpus.exclusive if self.cpus is not None else ExclusivePolicy.NONE
        return BoundCpus(mask_of_list(self.cpuset), exclusive)
