"""Koordinator's ElasticQuota (scheduling.sigs.k8s.io/v1alpha1) as a queue.

`min` is the queue's own, `max` what it never passes. Its shared weight, by default `max`, is one a resource; what
orders queues knows one weight, for which that of CPU stands in whole CPUs, or that of the first resource by name. A
resource without a shared weight gets nothing above `min`, as in Koordinator. A quota with label is-root and annotation
total-resource is a tree of its own: it has that much, all of it kept from others unless ignore-default-tree says so.
Names are those of one cluster, whatever the namespace.
Source: Koordinator apis/extension/elastic_quota.go, pkg/scheduler/plugins/elasticquota.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kube.dialects.documents.document import annotated, checked
from kube.dialects.queues.quota import Amounts, Written, cells_of, require_order, written
from kube.objects import ElasticQuota, Metadata
from model.fault import ConfigurationFault
from model.queue import DEFAULT_QUEUE, ROOT_QUEUE, Queue, QuotaCell
from model.resources import CPU

KIND = "ElasticQuota"
_QUOTA = "quota.scheduling.koordinator.sh/"
LABEL_NAME = _QUOTA + "name"
LABEL_PARENT = _QUOTA + "parent"
LABEL_IS_PARENT = _QUOTA + "is-parent"
LABEL_LENDS = _QUOTA + "allow-lent-resource"
LABEL_TREE = _QUOTA + "tree-id"
LABEL_IS_ROOT = _QUOTA + "is-root"
LABEL_BESIDE = _QUOTA + "ignore-default-tree"
ANNOTATION_WEIGHT = _QUOTA + "shared-weight"
ANNOTATION_GUARANTEED = _QUOTA + "guaranteed"
ANNOTATION_TOTAL = _QUOTA + "total-resource"
ANNOTATION_NAMESPACES = _QUOTA + "namespaces"
ROOT = "koordinator-root-quota"
"""Koordinator's name of the whole cluster."""
DEFAULT = "koordinator-default-quota"
"""Koordinator's name of the quota of pods that have none."""
SYSTEM_NAMESPACES = ("kube-system", "koordinator-system", "sublet-system")
"""Those in which a quota speaks for others: the kind is namespaced, so that tenants may be given it."""
_ENDLESS = 1 << 53
"""Amounts of no machine, as `max` of a quota without one has."""


class _Spec(msgspec.Struct, frozen=True):
    min: Any = None
    max: Any = None


class _Said(msgspec.Struct, frozen=True):
    """All amounts of a quota, by resource; a weight of 0 forbids to borrow, None is none of its own."""

    own: Amounts
    most: Amounts
    guaranteed: Amounts
    weights: Mapping[str, int | None]


def queue(source: ElasticQuota) -> Queue | None:
    """None for Koordinator's root, which is the whole cluster. Raises ConfigurationFault naming quota and field."""
    metadata = source.metadata
    if metadata.name == ROOT:
        return None
    if queue_name(metadata.name) == DEFAULT_QUEUE and metadata.namespace not in SYSTEM_NAMESPACES:
        fix = f"write it in {SYSTEM_NAMESPACES[0]}, or give it another name"
        raise ConfigurationFault(where_of(metadata), f"{metadata.name} is the queue of all who name none", fix)
    said = _said(source)
    names = {*said.own, *said.most, *said.guaranteed}
    return Queue(
        name=queue_name(metadata.name),
        parent=_parent(metadata.labels or {}),
        weight=_weight(said.weights),
        cells=cells_of(names, {name: _cell(name, said) for name in names}),
        source=f"{KIND}/{metadata.namespace}/{metadata.name}",
    )


def queue_name(quota: str) -> str:
    """The queue that a quota's name stands for."""
    return DEFAULT_QUEUE if quota == DEFAULT else quota


def where_of(metadata: Metadata) -> str:
    return f"{KIND} {metadata.namespace}/{metadata.name}"


def namespaces(metadata: Metadata) -> tuple[str, ...]:
    """Whose pods are in it where they say nothing themselves; the quota of a namespace's own name is another matter.

    A list that cannot be read names none, as in Koordinator. Outside of the system's namespaces only its own counts.
    """
    listed = _listed_in(metadata)
    return listed if metadata.namespace in SYSTEM_NAMESPACES else tuple(n for n in listed if n == metadata.namespace)


def unheard(metadata: Metadata) -> str:
    """What is not acted on of the namespaces that it lists; empty where all of it is."""
    others = set(_listed_in(metadata)).difference(namespaces(metadata))
    if not others:
        return ""
    return (
        f"{where_of(metadata)}: metadata.annotations[{ANNOTATION_NAMESPACES}]: pods of other namespaces are not in it; "
        f"write the quota in {SYSTEM_NAMESPACES[0]}, or have the pods name it"
    )


def standing(metadata: Metadata) -> int:
    """Of quotas with one name the lowest counts, whichever is older: nobody takes a name from another namespace."""
    return 0 if metadata.namespace in SYSTEM_NAMESPACES else 1 if metadata.namespace == metadata.name else 2


def _listed_in(metadata: Metadata) -> tuple[str, ...]:
    return _listed((metadata.annotations or {}).get(ANNOTATION_NAMESPACES, "")) or ()


def reads_namespaces(text: str) -> bool:
    """Whether it is a list of names."""
    return _listed(text) is not None


def _listed(text: str) -> tuple[str, ...] | None:
    try:
        return tuple(msgspec.json.decode(text, type=list[str] | None) or ()) if text else ()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _said(source: ElasticQuota) -> _Said:
    where, labels = where_of(source.metadata), source.metadata.labels or {}
    spec = checked({} if source.spec is None else source.spec, _Spec, f"{where}: spec")
    own, most = written(spec.min, "spec.min", where), written(spec.max, "spec.max", where)
    require_order(where, own, most)
    total = _annotation(source, ANNOTATION_TOTAL, where)
    if labels.get(LABEL_IS_ROOT) == "true" and total.amounts:
        tree = {name: amount for name, amount in total.amounts.items() if name in own.amounts or not own.amounts}
        return _Said(tree, tree, {} if labels.get(LABEL_BESIDE) == "true" else tree, tree)
    kept = own.amounts if labels.get(LABEL_LENDS) == "false" else {}
    told = _annotation(source, ANNOTATION_GUARANTEED, where)
    guaranteed = {name: max(kept.get(name, 0), told.amounts.get(name, 0)) for name in {*kept, *told.amounts}}
    require_order(where, Written(told.field, guaranteed), most)
    bounds = {name: amount for name, amount in most.amounts.items() if amount < _ENDLESS}
    return _Said(own.amounts, bounds, guaranteed, _weights(source, most.amounts, where))


def _weights(source: ElasticQuota, most: Amounts, where: str) -> Mapping[str, int | None]:
    """Those of the annotation, where a resource that it does not name has 0; else `max`, which may be endless."""
    told = _annotation(source, ANNOTATION_WEIGHT, where).amounts
    if any(told.values()):
        return {name: told.get(name, 0) for name in {*most, *told}}
    return {name: amount if amount < _ENDLESS else None for name, amount in most.items()}


def _annotation(source: ElasticQuota, key: str, where: str) -> Written:
    found = annotated(source.metadata.annotations or {}, key, dict[str, Any], where)
    return written(found, f"metadata.annotations[{key}]", where)


def _cell(name: str, said: _Said) -> QuotaCell:
    guaranteed, weight = said.guaranteed.get(name, 0), said.weights.get(name)
    return QuotaCell(
        guaranteed=guaranteed,
        nominal=max(said.own.get(name, 0), guaranteed),
        maximum=said.most.get(name),
        borrowing_limit=0 if weight == 0 else None,
        weight=weight or None,
    )


def _parent(labels: Mapping[str, str]) -> str:
    told = labels.get(LABEL_PARENT, "")
    return ROOT_QUEUE if told in ("", ROOT) else queue_name(told)


def _weight(weights: Mapping[str, int | None]) -> int:
    if cpu := weights.get(CPU):
        return -(-cpu // 1000)
    return next((found for name in sorted(weights) if (found := weights[name])), 1)
