"""Filters that ask only for the node itself, whatever its room and whoever is there; answered once per Tolerance.

Source: kubernetes pkg/scheduler/framework/plugins/{nodeunschedulable,tainttoleration,nodeaffinity,volumebinding} and
k8s.io/component-helpers/scheduling/corev1/nodeaffinity. All these are UnschedulableAndUnresolvable there: no
preemption helps. matchFields does not leave nodes out ahead of the other filters as it does there; a node it excludes
is told as a mismatch like any other.
"""

from __future__ import annotations

import numpy as np

from model.node import Taint
from model.pod.affinity import NodeTerm
from model.pod.spec import Toleration, Tolerations
from scheduler.core.filters import volumes
from scheduler.core.filters.nodes import matching
from scheduler.core.snapshot.podclass import Tolerance
from scheduler.core.snapshot.snapshot import Mask, NodeTraits, Verdicts

UNSCHEDULABLE = "node(s) were unschedulable"
SELECTOR = "node(s) didn't match Pod's node affinity/selector"
CLOSED = "node(s) held a pod whose resources cannot be read"
UNTOLERATED = "node(s) had untolerated taint"
AFTER_ROOM = frozenset({volumes.CONFLICT, volumes.NO_VOLUME})
"""Reasons of filters that kube-scheduler asks after room: a node that lacks room too is told by that."""

_CORDON = Taint("node.kubernetes.io/unschedulable")
_REMEMBERED = 1024


def verdicts(traits: NodeTraits, tolerance: Tolerance) -> Verdicts:
    """Which nodes are out whatever their room; computed once for the same nodes and tolerance."""
    known = traits.verdicts.get(tolerance)
    if known is not None:
        return known
    if len(traits.verdicts) >= _REMEMBERED:
        traits.verdicts.clear()
    traits.verdicts[tolerance] = _verdicts(traits, tolerance)
    return traits.verdicts[tolerance]


def selected(traits: NodeTraits, tolerance: Tolerance) -> Mask:
    """Rows that the node selector and the required node affinity let through."""
    key = ("selected", tolerance.node_selector, tolerance.affinity.nodes)
    known = traits.index.masks.get(key)
    return traits.index.remember(key, _selected(traits, tolerance)) if known is None else known


def tolerated(traits: NodeTraits, tolerations: tuple[Toleration, ...]) -> Mask:
    """Rows without a NoSchedule or NoExecute taint that these do not tolerate."""
    key = ("tolerated", tolerations)
    known = traits.index.masks.get(key)
    if known is not None:
        return known
    found = np.array([not taint for taint in _untolerated(traits, Tolerations(tolerations))], bool)
    return traits.index.remember(key, found)


def _verdicts(traits: NodeTraits, tolerance: Tolerance) -> Verdicts:
    """In kube-scheduler's order; nodes whose use is not known come before what it asks after room."""
    missing = volumes.missing(traits.related, tolerance.claims)
    if missing:
        return Verdicts((missing,), np.zeros(len(traits.labels), np.int64))
    tolerations = Tolerations(tolerance.tolerations)
    found = _untolerated(traits, tolerations)
    cordoned = traits.unschedulable & (not tolerations.allow(_CORDON))
    unselected = ~selected(traits, tolerance)
    refused = cordoned | np.array([bool(taint) for taint in found], bool) | unselected | traits.closed
    reason_of, reasons = np.full(len(traits.labels), -1, np.int64), dict[str, int]()
    for mask, reason in reversed(volumes.refusals(traits, tolerance.claims)):
        reason_of[mask] = reasons.setdefault(reason, len(reasons))
    for row in np.flatnonzero(refused):
        reason = UNSCHEDULABLE if cordoned[row] else found[row] or (SELECTOR if unselected[row] else CLOSED)
        reason_of[row] = reasons.setdefault(reason, len(reasons))
    return Verdicts(tuple(reasons), reason_of)


def _selected(traits: NodeTraits, tolerance: Tolerance) -> Mask:
    chosen = np.ones(len(traits.labels), bool)
    for key, value in tolerance.node_selector:
        column = traits.index.column(traits.labels, key)
        chosen &= column.codes == column.code_of.get(value, -2)
    terms: tuple[NodeTerm, ...] | None = tolerance.affinity.nodes
    return chosen if terms is None else chosen & matching(traits, terms)


def _untolerated(traits: NodeTraits, tolerations: Tolerations) -> list[str]:
    """By row, the words for the first untolerated taint, empty where there is none."""
    words: dict[tuple[Taint, ...], str] = {(): ""}
    for taints in traits.taints:
        if taints not in words:
            words[taints] = _first_untolerated(taints, tolerations)
    return [words[taints] for taints in traits.taints]


def _first_untolerated(taints: tuple[Taint, ...], tolerations: Tolerations) -> str:
    for taint in taints:
        if taint.effect.refuses and not tolerations.allow(taint):
            return f"{UNTOLERATED} {{{taint.key}: {taint.value}}}"
    return ""
