"""Filters, one answer per equivalence class for all nodes at once, with kube-scheduler's words.

Source: kubernetes pkg/scheduler/framework/plugins/{nodeunschedulable,tainttoleration,nodeaffinity,noderesources} and
FitError in framework/types.go. The first filter that refuses a node gives its reason; of resources it names all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec
import numpy as np

from model.node import Taint
from model.pod import Toleration
from model.resources import PODS
from scheduler.core.podclass import PodClass, Tolerance
from scheduler.core.snapshot import LARGEST_AMOUNT, Amounts, ClusterSnapshot, Mask, NodeTraits, Verdicts

UNSCHEDULABLE = "node(s) were unschedulable"
SELECTOR = "node(s) didn't match Pod's node affinity/selector"
CLOSED = "node(s) held a pod whose resources cannot be read"
NO_NODES = "no nodes available to schedule pods"
_CORDON = Taint("node.kubernetes.io/unschedulable")
_REMEMBERED = 1024


class FitReport(msgspec.Struct, frozen=True):
    """Of `nodes`, `feasible` have room for one pod; each other is counted once, under all its reasons together."""

    nodes: int
    feasible: int
    refused: tuple[tuple[tuple[str, ...], int], ...] = ()


class _Request(msgspec.Struct, frozen=True, eq=False):
    """The columns a class asks for, how much, and the resources that no node lists."""

    columns: list[int]
    amounts: Amounts
    unlisted: tuple[str, ...]


def counts(snapshot: ClusterSnapshot, free: Amounts, pod_class: PodClass) -> Amounts:
    """Per node, how many pods of the class fit into `free` (node × resource); 0 on inadmissible nodes."""
    request = _request(snapshot, pod_class)
    if request.unlisted:
        return np.zeros(len(snapshot.names), np.int64)
    fitting = (free[:, request.columns] // request.amounts).min(axis=1)
    return np.asarray(np.where(verdicts(snapshot.traits, pod_class.tolerance).admissible, fitting.clip(min=0), 0))


def use(snapshot: ClusterSnapshot, pod_class: PodClass) -> Amounts:
    """What one pod of the class takes, one amount a column; only for a class whose resources are all listed."""
    row = np.zeros(len(snapshot.resources), np.int64)
    request = _request(snapshot, pod_class)
    row[request.columns] = request.amounts
    return row


def report(snapshot: ClusterSnapshot, free: Amounts, pod_class: PodClass) -> FitReport:
    """Why which number of nodes cannot take one more pod of the class."""
    total = len(snapshot.names)
    verdict = verdicts(snapshot.traits, pod_class.tolerance)
    refused: Counter[tuple[str, ...]] = Counter()
    for index, reason in enumerate(verdict.reasons):
        refused[(reason,)] += int(np.count_nonzero(verdict.reason_of == index))
    refused.update(_short(snapshot, free[verdict.admissible], pod_class))
    told = tuple(sorted((reasons, number) for reasons, number in refused.items() if reasons and number))
    return FitReport(total, total - sum(number for _, number in told), told)


def fit_error(fit: FitReport) -> str:
    """`0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable.`"""
    if fit.nodes == 0:
        return NO_NODES
    each: Counter[str] = Counter()
    for reasons, number in fit.refused:
        each.update(dict.fromkeys(reasons, number))
    told = ", ".join(sorted(f"{number} {reason}" for reason, number in each.items()))
    return f"{fit.feasible}/{fit.nodes} nodes are available: {told}."


def verdicts(traits: NodeTraits, tolerance: Tolerance) -> Verdicts:
    """Which nodes are out whatever their room; computed once for the same nodes and tolerance."""
    known = traits.verdicts.get(tolerance)
    if known is not None:
        return known
    if len(traits.verdicts) >= _REMEMBERED:
        traits.verdicts.clear()
    traits.verdicts[tolerance] = _verdicts(traits, tolerance)
    return traits.verdicts[tolerance]


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Kubernetes' rule: any toleration that matches effect, key and value."""
    return any(_matches(toleration, taint) for toleration in tolerations)


def _matches(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value


def _request(snapshot: ClusterSnapshot, pod_class: PodClass) -> _Request:
    listed = [(snapshot.resources.index(n), amount) for n, amount in pod_class.request if n in snapshot.resources]
    return _Request(
        columns=[column for column, _ in listed],
        amounts=np.array([min(amount, LARGEST_AMOUNT) for _, amount in listed], np.int64),
        unlisted=tuple(name for name, _ in pod_class.request if name not in snapshot.resources),
    )


def _short(snapshot: ClusterSnapshot, free: Amounts, pod_class: PodClass) -> Counter[tuple[str, ...]]:
    """Rows of `free` by the reasons for which a pod of the class does not fit; () where it does."""
    request = _request(snapshot, pod_class)
    names = [*request.unlisted, *(snapshot.resources[column] for column in request.columns)]
    pattern_of = np.full(len(free), (1 << len(request.unlisted)) - 1, np.int64)
    for bit, (column, amount) in enumerate(zip(request.columns, request.amounts, strict=True), len(request.unlisted)):
        pattern_of |= (free[:, column] < amount).astype(np.int64) << bit
    found: Counter[tuple[str, ...]] = Counter()
    for pattern, number in zip(*np.unique(pattern_of, return_counts=True), strict=True):
        lacking = (name for bit, name in enumerate(names) if int(pattern) >> bit & 1)
        found[tuple(sorted(_insufficient(name) for name in lacking))] += int(number)
    return found


def _insufficient(resource: str) -> str:
    return "Too many pods" if resource == PODS else f"Insufficient {resource}"


def _verdicts(traits: NodeTraits, tolerance: Tolerance) -> Verdicts:
    """Filters in kube-scheduler's order: unschedulable, taints, selector; then ours, closed nodes."""
    reason_of = np.full(len(traits.labels), -1, np.int64)
    reasons: dict[str, int] = {}
    found = [_untolerated(taints, tolerance.tolerations) for taints in traits.taints]
    cordoned = traits.unschedulable & (not tolerates(tolerance.tolerations, _CORDON))
    tainted = np.array([bool(taint) for taint in found], bool)
    unselected = ~_selected(traits, tolerance)
    for row in np.flatnonzero(cordoned | tainted | unselected | traits.closed):
        reason = UNSCHEDULABLE if cordoned[row] else found[row] or (SELECTOR if unselected[row] else CLOSED)
        reason_of[row] = reasons.setdefault(reason, len(reasons))
    return Verdicts(tuple(reasons), reason_of)


def _selected(traits: NodeTraits, tolerance: Tolerance) -> Mask:
    wanted = tolerance.node_selector
    return np.array([all(labels.get(k) == v for k, v in wanted) for labels in traits.labels], bool)


def _untolerated(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> str:
    """The words for a node's first untolerated taint, empty where there is none."""
    for taint in taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not tolerates(tolerations, taint):
            return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    return ""
