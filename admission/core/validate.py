"""Validation of pods: combinations that no node could honour, and changes of what is fixed at creation.

Labels and numbers count as they are written, without defaults: a default would forbid what nobody wrote.
Source: Koordinator pkg/webhook/pod/validating/{cluster_colocation_profile,verify_annotations}.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from admission.core.podfields import (
    LABEL_PRIORITY_CLASS,
    LABEL_QOS,
    LABEL_SUB_PRIORITY,
    QUEUE_ANNOTATIONS,
    QUEUE_LABELS,
)
from admission.core.resourcespec import ANNOTATION as RESOURCE_SPEC
from model.qos import PriorityBand, QoSClass, priority_band
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, ResourceVector

_RESERVED = ("scheduling.koordinator.sh/reserve-pod",)
"""Annotations of pods that exist in a scheduler's memory alone."""
_NOT_BE = (PriorityBand.NONE, PriorityBand.PROD)
_NOT_LSR = (PriorityBand.NONE, PriorityBand.MID, PriorityBand.BATCH, PriorityBand.FREE)


class PodRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which pods are looked at, and how strictly."""

    excluded_namespaces: Annotated[
        tuple[str, ...], Meta(description="Pods of these namespaces are neither changed nor refused.")
    ] = ("kube-system", "sublet-system")
    sub_priority_immutable: Annotated[
        bool, Meta(description="Refuse changes of label koordinator.sh/priority of an existing pod.")
    ] = True


class PodClaims(msgspec.Struct, frozen=True):
    """What a pod says of itself; `requests` is its effective request, `priority` its number if it has one, `bound`
    whether it has a node.
    """

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    priority: int | None = None
    requests: ResourceVector = ResourceVector()
    bound: bool = False

    @property
    def qos(self) -> QoSClass:
        """As written."""
        return QoSClass.of(self.labels.get(LABEL_QOS))

    @property
    def band(self) -> PriorityBand:
        """As written: by the label, or by the number's range."""
        if named := PriorityBand.of(self.labels.get(LABEL_PRIORITY_CLASS)):
            return named
        # What stays the same whatever the default would be comes from the number.
        found = {priority_band(None, self.priority, qos) for qos in (QoSClass.BE, QoSClass.LS)}
        return found.pop() if len(found) == 1 else PriorityBand.NONE


def violations(new: PodClaims, old: PodClaims | None, rules: PodRules) -> tuple[str, ...]:
    """One sentence for each thing that is wrong, naming the field and what to do; `old` is the pod before a change."""
    changes = () if old is None else _changed(new, old, rules)
    return (*changes, *_combined(new), *_whole_cpus(new), *_reserved(new))


def _changed(new: PodClaims, old: PodClaims, rules: PodRules) -> Iterator[str]:
    told = "is settled when the pod is created; delete the pod and create it again"
    if new.qos is not old.qos:
        yield f"metadata.labels[{LABEL_QOS}] cannot change from {_or_none(old.qos)} to {_or_none(new.qos)}: it {told}"
    if new.band is not old.band:
        yield f"the priority class cannot change from {_or_none(old.band)} to {_or_none(new.band)}: it {told}"
    before, after = old.labels.get(LABEL_SUB_PRIORITY, ""), new.labels.get(LABEL_SUB_PRIORITY, "")
    if rules.sub_priority_immutable and before != after:
        change = f"from {_or_none(before)} to {_or_none(after)}"
        yield f"metadata.labels[{LABEL_SUB_PRIORITY}] cannot change {change}: it {told}"
    if old.annotations.get(RESOURCE_SPEC) != new.annotations.get(RESOURCE_SPEC):
        yield f"metadata.annotations[{RESOURCE_SPEC}] says what admission lent the pod and cannot change: it {told}"
    yield from _moved(new, old) if old.bound else ()


def _moved(new: PodClaims, old: PodClaims) -> Iterator[str]:
    """Quota would be given back while the pod runs on, or charged to a queue that would never have taken it."""
    maps = (
        ("labels", QUEUE_LABELS, new.labels, old.labels),
        ("annotations", QUEUE_ANNOTATIONS, new.annotations, old.annotations),
    )
    for place, keys, after, before in maps:
        for key in keys:
            if after.get(key) != before.get(key):
                yield (
                    f"metadata.{place}[{key}] is settled once the pod has a node, since a queue is charged by it; "
                    f"delete the pod and create it again"
                )


def _combined(pod: PodClaims) -> Iterator[str]:
    lent = [name for name in (BATCH_CPU, BATCH_MEMORY) if pod.requests[name]]
    if lent and pod.qos is not QoSClass.BE:
        yield (
            f"metadata.labels[{LABEL_QOS}] is {_qos_words(pod)}, and the pod asks for {lent[0]}: "
            f"batch resources are for best effort alone; set the label to BE"
        )
    if pod.qos is QoSClass.BE and pod.band in _NOT_BE:
        yield _not_together(pod, "set spec.priorityClassName to koord-batch, koord-mid or koord-free")
    if pod.qos is QoSClass.LSR and pod.band in _NOT_LSR:
        yield _not_together(pod, "set spec.priorityClassName to koord-prod")


def _qos_words(pod: PodClaims) -> str:
    written = pod.labels.get(LABEL_QOS)
    return f"{written}, which is no QoS class" if written and not pod.qos else _or_none(pod.qos)


def _not_together(pod: PodClaims, fix: str) -> str:
    return (
        f"metadata.labels[{LABEL_QOS}]={pod.qos} and priority class {_or_none(pod.band)} "
        f"cannot be used in combination; {fix}"
    )


def _whole_cpus(pod: PodClaims) -> Iterator[str]:
    """LSE and LSR pods get CPUs of their own, which come whole."""
    if pod.qos not in (QoSClass.LSE, QoSClass.LSR):
        return
    millis = pod.requests[CPU]
    if millis == 0 or millis % 1000:
        asked = f"{millis}m" if millis else "no CPU"
        yield (
            f"spec.containers[*].resources.requests[cpu]: {pod.qos} pods ask for whole CPUs, and this one asks "
            f"for {asked}; ask for a whole number of CPUs"
        )


def _reserved(pod: PodClaims) -> Iterator[str]:
    for name in _RESERVED:
        if name in pod.annotations:
            yield f"metadata.annotations[{name}] is the scheduler's own; remove it"


def _or_none(value: str) -> str:
    return value or "none"
