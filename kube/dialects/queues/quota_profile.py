"""Koordinator's ElasticQuotaProfile (quota.koordinator.sh/v1alpha1): an ElasticQuota kept at what some nodes have.

The quota is the root of a tree of its own: `min` is what the nodes have of some resources, `max` endless.
Source: Koordinator apis/quota/v1alpha1/elastic_quota_profile_types.go, pkg/quota-controller/profile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import msgspec

from kube.dialects.documents.document import checked
from kube.dialects.documents.selector import LabelSelector
from kube.dialects.queues.elastic_quota import ANNOTATION_TOTAL, LABEL_IS_ROOT, LABEL_TREE
from kube.objects import ElasticQuota, ElasticQuotaProfile
from model.fault import ConfigurationFault
from model.resources import CPU, MEMORY, ResourceVector, amount_text
from model.selector import Selector

API_VERSION = "scheduling.sigs.k8s.io/v1alpha1"
LABEL_PROFILE = "quota.scheduling.koordinator.sh/profile"
ANNOTATION_KEYS = "quota.scheduling.koordinator.sh/resource-keys"
_ENDLESS = str(((1 << 63) - 1) // 5)
_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    quota_name: str
    quota_labels: dict[str, str] | None = None
    resource_ratio: str | None = None
    node_selector: LabelSelector | None = None


class QuotaProfile(msgspec.Struct, frozen=True):
    """`quota` is the name of the ElasticQuota in the same namespace; `ratio` of what the nodes have counts."""

    namespace: str
    name: str
    quota: str
    selector: Selector
    labels: Mapping[str, str] = {}
    ratio: Fraction = Fraction(1)
    resources: tuple[str, ...] = (CPU, MEMORY)


def quota_profile(source: ElasticQuotaProfile) -> QuotaProfile:
    """Raises ConfigurationFault naming the profile and the field. A ratio that is none is 1, as in Koordinator."""
    metadata = source.metadata
    where = where_of(source)
    spec = checked(source.spec, _Spec, f"{where}: spec")
    if not spec.quota_name:
        raise ConfigurationFault(f"{where}: spec.quotaName", "is empty", "write the name of an ElasticQuota")
    if spec.node_selector is None:
        raise ConfigurationFault(f"{where}: spec.nodeSelector", "is missing", "write {} for all nodes")
    own = metadata.labels or {}
    tree = own.get(LABEL_TREE) or str(_fnv64(f"{metadata.namespace}/{metadata.name}"))
    labels = {**(spec.quota_labels or {}), LABEL_PROFILE: metadata.name, LABEL_TREE: tree, LABEL_IS_ROOT: "true"}
    return QuotaProfile(
        metadata.namespace,
        metadata.name,
        spec.quota_name,
        spec.node_selector.in_model(),
        labels,
        _read_ratio(spec.resource_ratio or "") or Fraction(1),
        _resources((metadata.annotations or {}).get(ANNOTATION_KEYS, "")),
    )


def where_of(source: ElasticQuotaProfile) -> str:
    return f"ElasticQuotaProfile {source.metadata.namespace}/{source.metadata.name}"


def misread(source: ElasticQuotaProfile) -> str:
    """What is said of a ratio that is none; empty where it can be read."""
    text = source.spec.get("resourceRatio") if isinstance(source.spec, dict) else None
    if not isinstance(text, str) or not text or _read_ratio(text) is not None:
        return ""
    return f"{where_of(source)}: spec.resourceRatio is {text[:40]!r}, which is no ratio above 0 and up to 1: 1 counts"


def totals(profile: QuotaProfile, nodes: Iterable[tuple[Mapping[str, str], ResourceVector]]) -> ResourceVector:
    """What the profile's nodes have, by its ratio; `nodes` are labels and allocatable, parts of a unit are cut off."""
    total = ResourceVector()
    for labels, allocatable in nodes:
        if profile.selector.matches(labels):
            total = total + allocatable
    return ResourceVector({name: int(amount * profile.ratio) for name, amount in total.amounts.items()})


def wanted(profile: QuotaProfile, total: ResourceVector) -> dict[str, Any]:
    """Labels, annotations and spec of the ElasticQuota, as a merge patch."""
    amounts = {name: amount_text(total[name], name) for name in sorted(total)}
    return {
        "metadata": {
            "labels": dict(profile.labels),
            "annotations": {ANNOTATION_TOTAL: msgspec.json.encode(amounts).decode()},
        },
        "spec": {
            "min": {name: amounts.get(name, "0") for name in profile.resources},
            "max": dict.fromkeys(profile.resources, _ENDLESS),
        },
    }


def made(profile: QuotaProfile, total: ResourceVector) -> dict[str, Any]:
    """The whole ElasticQuota, where there is none."""
    found = wanted(profile, total)
    found["metadata"] |= {"namespace": profile.namespace, "name": profile.quota}
    return {"apiVersion": API_VERSION, "kind": "ElasticQuota", **found}


def differs(present: ElasticQuota, patch: Mapping[str, Any]) -> bool:
    """Whether an ElasticQuota says anything else than a patch of `wanted`."""
    metadata = present.metadata
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    said = patch["metadata"]
    same = said["labels"].items() <= labels.items() and said["annotations"].items() <= annotations.items()
    return not same or present.spec != patch["spec"]


def _read_ratio(text: str) -> Fraction | None:
    """A decimal number above 0 and up to 1, None for anything else."""
    found = Fraction(text) if re.fullmatch(r"[0-9]{0,3}(\.[0-9]{1,9})?", text) and text else Fraction(0)
    return found if 0 < found <= 1 else None


def _resources(text: str) -> tuple[str, ...]:
    """A list that cannot be read leaves the usual two."""
    try:
        return tuple(dict.fromkeys(msgspec.json.decode(text, type=list[str]))) if text else (CPU, MEMORY)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return (CPU, MEMORY)


def _fnv64(text: str) -> int:
    """FNV-1a of 64 bits, by which Koordinator names the tree of a profile that names none."""
    found = _FNV_OFFSET
    for byte in text.encode():
        found = ((found ^ byte) * _FNV_PRIME) % (1 << 64)
    return found
