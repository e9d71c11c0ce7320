"""CPU bursts of online pods: NodeSLO's cpuBurstStrategy, the ConfigMap's `cpu-burst-config`, and a pod's own words.

Source: Koordinator apis/slo/v1alpha1/{nodeslo_types,pod}.go (validate tags).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta, field

from kube.dialects.documents.document import annotated, checked
from kube.dialects.koordinator.configkey import ConfigKey, Section
from kube.dialects.koordinator.sloconfig import Layers, layers
from kube.objects import ConfigMap, NodeSLO
from model.fault import ConfigurationFault
from model.pod.colocation import BurstTerms
from model.strategy import BurstPolicy, BurstStrategy

ANNOTATION = "koordinator.sh/cpuBurst"
_UNTOLD = BurstTerms()
_LARGEST_PCT, _LONGEST_SECONDS = 100_000, 86_400
"""Koordinator has no bounds; a thousand times the limit for a day is none either."""


class BurstPolicyText(StrEnum):
    """model.strategy.BurstPolicy as documents write it: an empty text is as none given."""

    NONE = BurstPolicy.NONE.value
    CPU_BURST = BurstPolicy.CPU_BURST.value
    QUOTA_BURST = BurstPolicy.QUOTA_BURST.value
    AUTO = BurstPolicy.AUTO.value
    UNSET = ""


class PodBurstFields(msgspec.Struct, frozen=True):
    """What a pod may say of itself; None where it is silent."""

    policy: BurstPolicyText | None = None
    cpu_pct: Annotated[int, Meta(ge=1, le=10_000)] | None = field(name="cpuBurstPercent", default=None)
    quota_pct: Annotated[int, Meta(ge=100)] | None = field(name="cfsQuotaBurstPercent", default=None)
    quota_seconds: Annotated[int, Meta(ge=-1)] | None = field(name="cfsQuotaBurstPeriodSeconds", default=None)


class BurstFields(PodBurstFields, frozen=True):
    """Fields of model.strategy.BurstStrategy that a document sets; None where it is silent."""

    pool_pct: Annotated[int, Meta(ge=0, le=100)] | None = field(name="sharePoolThresholdPercent", default=None)


class _Section(msgspec.Struct, frozen=True):
    fields: BurstFields | None = field(name=Section.CPU_BURST.value, default=None)


def burst_layers(source: ConfigMap | None) -> Layers[BurstFields] | None:
    """`cpu-burst-config`; None where there is none. Raises ConfigurationFault."""
    return layers(source, ConfigKey.CPU_BURST, BurstFields)


def slo_burst(source: NodeSLO | None) -> BurstFields:
    """`cpuBurstStrategy`; silent without one. Raises ConfigurationFault."""
    if source is None or source.spec is None:
        return BurstFields()
    return checked(source.spec, _Section, f"NodeSLO {source.metadata.name}: spec").fields or BurstFields()


def burst_overlaid(strategy: BurstStrategy, layer: BurstFields) -> BurstStrategy:
    """What the layer sets replaces what was."""
    found = _terms(layer).over(strategy)
    return found if layer.pool_pct is None else msgspec.structs.replace(found, pool_pct=layer.pool_pct)


def burst_terms(annotations: Mapping[str, str]) -> BurstTerms:
    """The pod's own words, which go before the node's; as in Koordinator a text that cannot be read says nothing."""
    if ANNOTATION not in annotations:
        return _UNTOLD
    try:
        told = annotated(annotations, ANNOTATION, PodBurstFields, "Pod")
    except ConfigurationFault:
        return _UNTOLD
    return _UNTOLD if told is None else _terms(told)


def reads_terms(text: str) -> bool:
    """Whether it is an object with fields in their ranges."""
    try:
        return annotated({ANNOTATION: text}, ANNOTATION, PodBurstFields, "Pod") is not None
    except ConfigurationFault:
        return False


def _terms(told: PodBurstFields) -> BurstTerms:
    policy, seconds = BurstPolicy(told.policy.value) if told.policy else None, told.quota_seconds
    return BurstTerms(
        policy,
        told.cpu_pct,
        None if told.quota_pct is None else min(told.quota_pct, _LARGEST_PCT),
        None if seconds is None else min(seconds, _LONGEST_SECONDS),
    )
