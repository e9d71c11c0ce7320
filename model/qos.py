"""QoS classes and priority bands of Koordinator, never to be mixed with the Kubernetes QoS class.

Source: Koordinator apis/extension/{qos,priority}*.go.
"""

from __future__ import annotations

from enum import StrEnum


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


_BANDS = (
    (9000, 9999, PriorityBand.PROD),
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
