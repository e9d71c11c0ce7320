"""Affinity of a pod to nodes and pods, and its spreading, into the model's values.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/ and topology-spread-constraints/;
k8s.io/component-helpers/scheduling/corev1/nodeaffinity. API servers before 1.31 (affinity) and 1.34 (spreading) leave
matchLabelKeys to the scheduler, newer ones have merged them into the selector already: both read the same here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from kube.dialects.documents.document import checked
from kube.dialects.documents.selector import LabelSelector
from model.pod.affinity import NOWHERE, Affinity, NodeTerm, PodTerm, PreferredNodes, PreferredPods, SpreadConstraint
from model.selector import Operator, Requirement, Selector

_NAME = "metadata.name"
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class _NodeRequirement(msgspec.Struct, frozen=True):
    key: str
    operator: Operator
    values: list[str] | None = None

    def __post_init__(self) -> None:
        told = self.values or []
        if self.operator in (Operator.GT, Operator.LT):
            if len(told) != 1 or not _WHOLE.fullmatch(told[0]):
                raise ValueError("Gt and Lt need one whole number")
        elif bool(told) != (self.operator in (Operator.IN, Operator.NOT_IN)):
            raise ValueError("In and NotIn need values, Exists and DoesNotExist take none")

    def in_model(self) -> Requirement:
        return Requirement(self.key, self.operator, tuple(self.values or ()))


class _FieldRequirement(_NodeRequirement, frozen=True):
    """Kubernetes knows one field, and no other operators for it."""

    def __post_init__(self) -> None:
        if self.key != _NAME or self.operator not in (Operator.IN, Operator.NOT_IN) or not self.values:
            raise ValueError(f"matchFields take key {_NAME}, operator In or NotIn, and values")


class _NodeTerm(msgspec.Struct, frozen=True, rename="camel"):
    match_expressions: list[_NodeRequirement] | None = None
    match_fields: list[_FieldRequirement] | None = None

    def in_model(self) -> NodeTerm:
        return NodeTerm(
            tuple(each.in_model() for each in self.match_expressions or ()),
            tuple(each.in_model() for each in self.match_fields or ()),
        )


class _NodeSelector(msgspec.Struct, frozen=True, rename="camel"):
    node_selector_terms: list[_NodeTerm] | None = None

    def in_model(self) -> tuple[NodeTerm, ...]:
        return tuple(term.in_model() for term in self.node_selector_terms or ())


class _PreferredNodes(msgspec.Struct, frozen=True):
    weight: int = 0
    preference: _NodeTerm = _NodeTerm()


class _NodeAffinity(msgspec.Struct, frozen=True):
    required: _NodeSelector | None = msgspec.field(name=_REQUIRED, default=None)
    preferred: list[_PreferredNodes] | None = msgspec.field(name=_PREFERRED, default=None)


class _PodTerm(msgspec.Struct, frozen=True, rename="camel"):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None

    def __post_init__(self) -> None:
        if not self.topology_key:
            raise ValueError("write a topologyKey, such as kubernetes.io/hostname")


class _PreferredPods(msgspec.Struct, frozen=True, rename="camel"):
    weight: int
    pod_affinity_term: _PodTerm


class _PodAffinity(msgspec.Struct, frozen=True):
    required: list[_PodTerm] | None = msgspec.field(name=_REQUIRED, default=None)
    preferred: list[_PreferredPods] | None = msgspec.field(name=_PREFERRED, default=None)


class _Affinity(msgspec.Struct, frozen=True, rename="camel"):
    node_affinity: _NodeAffinity | None = None
    pod_affinity: _PodAffinity | None = None
    pod_anti_affinity: _PodAffinity | None = None


class _Unsatisfiable(StrEnum):
    HARD = "DoNotSchedule"
    SOFT = "ScheduleAnyway"


class _Policy(StrEnum):
    HONOR = "Honor"
    IGNORE = "Ignore"


class _Spread(msgspec.Struct, frozen=True, rename="camel"):
    topology_key: Annotated[str, msgspec.Meta(min_length=1)]
    max_skew: Annotated[int, msgspec.Meta(ge=1)]
    when_unsatisfiable: _Unsatisfiable = _Unsatisfiable.HARD
    label_selector: LabelSelector | None = None
    min_domains: Annotated[int, msgspec.Meta(ge=1)] | None = None
    node_affinity_policy: _Policy | None = None
    node_taints_policy: _Policy | None = None
    match_label_keys: list[str] | None = None


def affinity(raw: Mapping[str, Any] | None, namespace: str, labels: Mapping[str, str], where: str) -> Affinity:
    """spec.affinity of a pod of `namespace` with `labels`. Raises ConfigurationFault naming the field below `where`."""
    if not raw:
        return NOWHERE
    told = checked(raw, _Affinity, where)
    nodes = told.node_affinity or _NodeAffinity()
    pods, anti = told.pod_affinity or _PodAffinity(), told.pod_anti_affinity or _PodAffinity()
    reader = _Reader(namespace, labels)
    return Affinity(
        nodes=nodes.required.in_model() if nodes.required else None,
        preferred_nodes=tuple(_preferred_nodes(nodes.preferred or ())),
        pods=tuple(reader.term(term) for term in pods.required or ()),
        anti_pods=tuple(reader.term(term) for term in anti.required or ()),
        preferred_pods=(
            *(PreferredPods(each.weight, reader.term(each.pod_affinity_term)) for each in pods.preferred or ()),
            *(PreferredPods(-each.weight, reader.term(each.pod_affinity_term)) for each in anti.preferred or ()),
        ),
    )


def spread(
    raw: Sequence[Mapping[str, Any]] | None, labels: Mapping[str, str], where: str
) -> tuple[SpreadConstraint, ...]:
    """spec.topologySpreadConstraints. Raises ConfigurationFault naming the field below `where`."""
    if not raw:
        return ()
    return tuple(_constraint(each, labels) for each in checked(list(raw), list[_Spread], where))


def node_terms(raw: Mapping[str, Any], where: str) -> tuple[NodeTerm, ...]:
    """A NodeSelector, as PersistentVolumes have one. Raises ConfigurationFault naming the field below `where`."""
    return checked(raw, _NodeSelector, where).in_model()


def _preferred_nodes(told: Iterable[_PreferredNodes]) -> Iterable[PreferredNodes]:
    """A term without requirements, or of no weight, prefers nothing."""
    for each in told:
        term = each.preference.in_model()
        if each.weight and term != NodeTerm():
            yield PreferredNodes(each.weight, term)


def _constraint(told: _Spread, labels: Mapping[str, str]) -> SpreadConstraint:
    return SpreadConstraint(
        topology_key=told.topology_key,
        max_skew=told.max_skew,
        hard=told.when_unsatisfiable is _Unsatisfiable.HARD,
        selector=_merged(told.label_selector, _by_own(labels, told.match_label_keys, Operator.IN)),
        min_domains=told.min_domains or 1,
        honor_affinity=told.node_affinity_policy is not _Policy.IGNORE,
        honor_taints=told.node_taints_policy is _Policy.HONOR,
    )


class _Reader(msgspec.Struct, frozen=True):
    """The pod whose terms are read."""

    namespace: str
    labels: Mapping[str, str]

    def term(self, told: _PodTerm) -> PodTerm:
        of_namespaces = told.namespace_selector
        names = tuple(sorted(told.namespaces or ()))
        own = () if names or of_namespaces is not None else (self.namespace,)
        added = (
            *_by_own(self.labels, told.match_label_keys, Operator.IN),
            *_by_own(self.labels, told.mismatch_label_keys, Operator.NOT_IN),
        )
        return PodTerm(
            told.topology_key,
            _merged(told.label_selector, added),
            names or own,
            of_namespaces.in_model() if of_namespaces is not None else None,
        )


def _by_own(labels: Mapping[str, str], keys: Iterable[str] | None, operator: Operator) -> tuple[Requirement, ...]:
    """Requirements with the pod's own values; a key it does not have asks nothing."""
    return tuple(Requirement(key, operator, (labels[key],)) for key in keys or () if key in labels)


def _merged(told: LabelSelector | None, added: Sequence[Requirement]) -> Selector | None:
    """Requirements the API server has merged in already stand once; no selector stays none."""
    if told is None:
        return None
    written = told.in_model().requirements
    known = frozenset(written) if added else frozenset()
    return Selector(written + tuple(each for each in added if each not in known))
