"""QoS classes and priority bands of Koordinator, never to be mixed with the Kubernetes QoS class; QoS of memory and CPU
by class.

Source: Koordinator apis/extension/{qos,priority}*.go, apis/slo/v1alpha1/{nodeslo_types,pod}.go,
pkg/util/sloconfig/nodeslo_config.go.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import asdict, replace


class QoSClass(StrEnum):
    """Koordinator's class, from label `koordinator.sh/qosClass`."""

    LSE = "LSE"
    LSR = "LSR"
    LS = "LS"
    BE = "BE"
    SYSTEM = "SYSTEM"
    NONE = ""

    @classmethod
    def of(cls, text: str | None) -> QoSClass:
        """The class of that name, NONE for any other text."""
        try:
            return cls(text or "")
        except ValueError:
            return cls.NONE


class KubernetesQoS(StrEnum):
    """Kubernetes' own class; it decides which cgroup a pod lives under."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


class PriorityBand(StrEnum):
    """Koordinator's priority class."""

    PROD = "koord-prod"
    MID = "koord-mid"
    BATCH = "koord-batch"
    FREE = "koord-free"
    NONE = ""

    @classmethod
    def of(cls, text: str | None) -> PriorityBand:
        """The band of that name, NONE for any other text."""
        try:
            return cls(text or "")
        except ValueError:
            return cls.NONE


LOWEST_PROD = 9000
"""The lowest number of koord-prod; what is above that band is no less important."""
_BANDS = (
    (LOWEST_PROD, 9999, PriorityBand.PROD),
    (7000, 7999, PriorityBand.MID),
    (5000, 5999, PriorityBand.BATCH),
    (3000, 3999, PriorityBand.FREE),
)
_BELOW_PROD = (PriorityBand.MID, PriorityBand.BATCH, PriorityBand.FREE)
_BY_KUBERNETES = {
    KubernetesQoS.GUARANTEED: QoSClass.LSR,
    KubernetesQoS.BURSTABLE: QoSClass.LS,
    KubernetesQoS.BEST_EFFORT: QoSClass.BE,
}


def qos_class(label: str | None, kubernetes: KubernetesQoS) -> QoSClass:
    """The class with default: the label where it is known, else by Kubernetes QoS."""
    return QoSClass.of(label) or _BY_KUBERNETES[kubernetes]


def priority_band(label: str | None, priority: int | None, qos: QoSClass) -> PriorityBand:
    """The band with default: label, then the number, then BE → batch and all others → prod."""
    if named := PriorityBand.of(label) or _numbered(priority):
        return named
    return PriorityBand.BATCH if qos is QoSClass.BE else PriorityBand.PROD


def below_prod(label: str | None, priority: int | None, qos_label: QoSClass) -> bool:
    """Whether any word of a pod's own, label of band or QoS class or number, makes it one of mid, batch or free.

    No word outweighs another: a number of the batch band with the label koord-prod is below prod. A pod without
    requests, which is best effort to Kubernetes, has said nothing by that.
    """
    return qos_label is QoSClass.BE or PriorityBand.of(label) in _BELOW_PROD or _numbered(priority) in _BELOW_PROD


def _numbered(priority: int | None) -> PriorityBand:
    found = (band for low, high, band in _BANDS if priority is not None and low <= priority <= high)
    return next(found, PriorityBand.NONE)


class MemoryQos(msgspec.Struct, frozen=True):
    """Koordinator's MemoryQOS. None: nothing is said, and the file is left as it is."""

    min_pct: int | None = None
    """Share of the request that is never reclaimed (minLimitPercent)."""
    low_pct: int | None = None
    """Share of the request that is reclaimed last (lowLimitPercent)."""
    throttling_pct: int | None = None
    """Where between request and limit a container is slowed down (throttlingPercent); 0: nowhere."""
    wmark_ratio: int | None = None
    """Use, in percent of the limit, from which the kernel reclaims in the background; 0: never."""
    wmark_scale_permill: int | None = None
    """How far it reclaims then, in permill of the limit."""
    wmark_min_adj: int | None = None
    """How much earlier or later the node's own shortage reaches it, in percent of the node's watermark."""
    priority_enable: int | None = None
    """1: the kernel kills by `priority` inside."""
    priority: int | None = None
    """0 to 12; the lower is killed first."""
    oom_kill_group: int | None = None
    """1: the kernel kills all processes together, or none."""

    def over(self, below: MemoryQos) -> MemoryQos:
        """These fields where they say anything, else those of `below`."""
        return replace(below, **{name: value for name, value in asdict(self).items() if value is not None})


class MemoryQosPolicy(StrEnum):
    """What a pod's own words start from: nothing, its class, or what is recommended for its class."""

    NONE = "none"
    DEFAULT = "default"
    AUTO = "auto"


class PodMemoryQos(msgspec.Struct, frozen=True):
    """A pod's annotation koordinator.sh/memoryQOS."""

    policy: MemoryQosPolicy = MemoryQosPolicy.DEFAULT
    fields: MemoryQos = MemoryQos()


class MemoryQosStrategy(msgspec.Struct, frozen=True):
    """By class; None where it is off. LSE goes by `lsr`."""

    lsr: MemoryQos | None = None
    ls: MemoryQos | None = None
    be: MemoryQos | None = None
    system: MemoryQos | None = None

    def of(self, qos: QoSClass) -> MemoryQos | None:
        """Of a class; `qos` has its default."""
        match qos:
            case QoSClass.BE:
                return self.be
            case QoSClass.LS | QoSClass.NONE:
                return self.ls
            case QoSClass.SYSTEM:
                return self.system
        return self.lsr

    def of_pod(self, qos: QoSClass, own: PodMemoryQos | None) -> MemoryQos | None:
        """Of a pod of that class with these words of its own, None where it is off."""
        base = self.of(qos)
        if own is None:
            return base
        if own.policy is MemoryQosPolicy.NONE:
            return None
        if own.policy is MemoryQosPolicy.AUTO:
            base = RECOMMENDED.of(qos)
        return None if base is None and own.fields == MemoryQos() else own.fields.over(base or MemoryQos())


_ONLINE = MemoryQos(0, 0, 0, 95, 20, -25, 0, 0, 0)
RECOMMENDED = MemoryQosStrategy(
    lsr=_ONLINE,
    ls=_ONLINE,
    be=replace(_ONLINE, wmark_min_adj=50),
    system=replace(_ONLINE, wmark_ratio=0, wmark_scale_permill=50, wmark_min_adj=0),
)
"""Koordinator's defaults of a class that is on (DefaultMemoryQOS)."""


class CpuQos(msgspec.Struct, frozen=True):
    """Koordinator's CPUQOS of a class that is on."""

    identity: int = 0
    """-1 to 2 (groupIdentity): a higher one runs first, 2 keeps -1 off the other threads of its core; 0: as before."""
    idle: bool = False
    """Its pods run where nobody beside them wants to (schedIdle)."""


class CpuQosStrategy(msgspec.Struct, frozen=True):
    """By class; None where it is off. LSE goes by `lsr`."""

    lsr: CpuQos | None = None
    ls: CpuQos | None = None
    be: CpuQos | None = None
    system: CpuQos | None = None

    def of_pod(self, qos: QoSClass, label: QoSClass, own_identity: int | None) -> CpuQos | None:
        """Of a pod of that class, whose label may be silent; an LS pod's own identity goes before its class's.

        A Guaranteed pod without a label goes by `ls` where `lsr` is off (Koordinator groupidentity/rule.go).
        """
        by_class = {QoSClass.BE: self.be, QoSClass.LS: self.ls, QoSClass.NONE: self.ls, QoSClass.SYSTEM: self.system}
        found = by_class.get(qos, self.lsr)
        if found is None and label is QoSClass.NONE and qos is QoSClass.LSR:
            found = self.ls
        if found is not None and own_identity is not None and label is QoSClass.LS:
            found = replace(found, identity=own_identity)
        return found


USUAL_CPU = CpuQosStrategy(lsr=CpuQos(2), ls=CpuQos(2), be=CpuQos(-1), system=CpuQos(0))
"""Koordinator's defaults of a class that is on (DefaultCPUQOS)."""
_Clamp = Annotated[int, Meta(ge=0, le=100)]


class UclampStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Utilization clamps by class, in percent of a CPU's largest capacity: what the kernel picks frequencies by."""

    lsr_min_pct: Annotated[
        _Clamp | None,
        Meta(description="LSE and LSR pods run at no less than this share of the frequency; none: as they need."),
    ] = None
    ls_min_pct: Annotated[
        _Clamp | None, Meta(description="The same of LS pods, and of those without a label that are not BestEffort.")
    ] = None
    be_max_pct: Annotated[
        _Clamp | None,
        Meta(description="Best effort alone asks for no more than this share of the frequency; none: what it needs."),
    ] = None

    def min_pct(self, qos: QoSClass) -> int:
        """Of a class with its default; 0: nothing is asked."""
        if qos in (QoSClass.LSE, QoSClass.LSR):
            return self.lsr_min_pct or 0
        return (self.ls_min_pct or 0) if qos in (QoSClass.LS, QoSClass.NONE) else 0
