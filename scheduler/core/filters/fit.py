"""Room, one answer per equivalence class for all nodes at once, and the words of all filters together.

Source: kubernetes pkg/scheduler/framework/plugins/noderesources/fit.go and FitError in framework/types.go. The first
filter that refuses a node gives its reason; of resources it names all. What is not asked for is never short, even
where a node has less than nothing of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import compress, islice
from typing import TypeAlias

import msgspec
import numpy as np

from model.resources import PODS
from scheduler.core.filters import volumes
from scheduler.core.filters.obstacles import Obstacles
from scheduler.core.filters.ports import PORTS
from scheduler.core.filters.static import AFTER_ROOM, verdicts
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import LARGEST_AMOUNT, Amounts, ClusterSnapshot, Mask

NO_NODES = "no nodes available to schedule pods"
_MOST_UNLISTED = 16
"""Resources that no node lists, of those a pod asks for, that are told: it may name thousands, one is reason enough."""
Refused: TypeAlias = tuple[Mask, str]
"""Rows that are out, and why in a filter's words."""


class FitReport(msgspec.Struct, frozen=True):
    """Of `nodes`, `feasible` have room for one pod; each other is counted once, under all its reasons together.

    `ahead` is why no node was tried at all, empty where they were.
    """

    nodes: int
    feasible: int
    refused: tuple[tuple[tuple[str, ...], int], ...] = ()
    ahead: str = ""


class _Request(msgspec.Struct, frozen=True, eq=False):
    """The columns a class asks for, how much, and the first resources that no node lists."""

    columns: list[int]
    amounts: Amounts
    unlisted: tuple[str, ...]


def counts(
    snapshot: ClusterSnapshot,
    free: Amounts,
    pod_class: PodClass,
    obstacles: Obstacles | None = None,
    extra: Iterable[Refused] = (),
) -> Amounts:
    """Per node, how many pods of the class fit into `free` (node × resource); 0 where a filter refuses the node."""
    request = _request(snapshot, pod_class)
    if request.unlisted:
        return np.zeros(len(snapshot.names), np.int64)
    fitting = (free[:, request.columns] // request.amounts).min(axis=1).clip(min=0)
    fitting[~verdicts(snapshot.traits, pod_class.tolerance).admissible] = 0
    for rows, _ in extra:
        fitting[rows] = 0
    if obstacles is None:
        return np.asarray(fitting)
    fitting[obstacles.refused] = 0
    return np.asarray(fitting if obstacles.most is None else np.minimum(fitting, obstacles.most))


def use(snapshot: ClusterSnapshot, pod_class: PodClass) -> Amounts:
    """What one pod of the class takes, one amount a column; only for a class whose resources are all listed."""
    row = np.zeros(len(snapshot.resources), np.int64)
    request = _request(snapshot, pod_class)
    row[request.columns] = request.amounts
    return row


def too_small(snapshot: ClusterSnapshot, pod_class: PodClass) -> Mask:
    """Nodes that could not hold one pod of the class if they were empty: no preemption helps there."""
    request = _request(snapshot, pod_class)
    short = (snapshot.allocatable[:, request.columns] < request.amounts).any(axis=1)
    return np.asarray(short | bool(request.unlisted))


def report(
    snapshot: ClusterSnapshot,
    free: Amounts,
    pod_class: PodClass,
    obstacles: Obstacles | None = None,
    extra: Iterable[Refused] = (),
) -> FitReport:
    """Why which number of nodes cannot take one more pod of the class; `extra` are filters after kube-scheduler's."""
    total = len(snapshot.names)
    ahead = volumes.missing(snapshot.traits.related, pod_class.tolerance.claims)
    if ahead:
        return FitReport(total, 0, (((ahead,), total),) if total else (), ahead)
    left, refused = np.ones(total, bool), Counter[tuple[str, ...]]()
    _tell(left, before_room(snapshot, pod_class, obstacles), refused)
    short, roomy = _short(snapshot, free[left], pod_class)
    refused.update(short)
    left[left] = roomy
    _tell(left, (*after_room(snapshot, pod_class, obstacles), *extra), refused)
    told = tuple(sorted((reasons, number) for reasons, number in refused.items() if reasons and number))
    return FitReport(total, total - sum(number for _, number in told), told)


def fit_error(fit: FitReport) -> str:
    """`0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable.`"""
    if fit.nodes == 0:
        return NO_NODES
    each: Counter[str] = Counter()
    for reasons, number in fit.refused:
        each.update(dict.fromkeys(reasons, number))
    told = fit.ahead or ", ".join(sorted(f"{number} {reason}" for reason, number in each.items()))
    return f"{fit.feasible}/{fit.nodes} nodes are available: {told}."


def before_room(snapshot: ClusterSnapshot, pod_class: PodClass, obstacles: Obstacles | None) -> list[Refused]:
    """What kube-scheduler asks before room, in its order: the node itself, then host ports."""
    of_node, of_others = _split(snapshot, pod_class, obstacles)
    return [*(r for r in of_node if r[1] not in AFTER_ROOM), *(r for r in of_others if r[1] == PORTS)]


def after_room(snapshot: ClusterSnapshot, pod_class: PodClass, obstacles: Obstacles | None) -> list[Refused]:
    """What kube-scheduler asks after room, in its order: volumes, then who else is there."""
    of_node, of_others = _split(snapshot, pod_class, obstacles)
    return [*(r for r in of_node if r[1] in AFTER_ROOM), *(r for r in of_others if r[1] != PORTS)]


def shortage(snapshot: ClusterSnapshot, free: Amounts, pod_class: PodClass) -> tuple[tuple[str, ...], Amounts]:
    """The resources a class asks for, and per node (row) how much of each (column) is missing for one pod.

    Of resources that no node lists the first ones stand for all.
    """
    request = _request(snapshot, pod_class)
    asked = dict(pod_class.request)
    unlisted = np.array([asked[name] for name in request.unlisted], object).clip(max=LARGEST_AMOUNT).astype(np.int64)
    missing = (request.amounts - free[:, request.columns]).clip(min=0)
    names = (*(snapshot.resources[column] for column in request.columns), *request.unlisted)
    return names, np.concatenate((missing, np.broadcast_to(unlisted, (len(free), len(unlisted)))), axis=1)


def insufficient(resource: str) -> str:
    """The words for a resource that is short."""
    return "Too many pods" if resource == PODS else f"Insufficient {resource}"


def _split(
    snapshot: ClusterSnapshot, pod_class: PodClass, obstacles: Obstacles | None
) -> tuple[list[Refused], list[Refused]]:
    """The rows out for each reason: of the node itself, and of who else is there."""
    verdict = verdicts(snapshot.traits, pod_class.tolerance)
    of_node = [(verdict.reason_of == index, reason) for index, reason in enumerate(verdict.reasons)]
    others = () if obstacles is None else obstacles.reasons
    return of_node, [(obstacles.reason_of == i, reason) for i, reason in enumerate(others) if obstacles is not None]


def _tell(left: Mask, refusals: Iterable[Refused], refused: Counter[tuple[str, ...]]) -> None:
    """Count what each filter refuses of the rows that are left, and take those off."""
    for rows, reason in refusals:
        refused[(reason,)] += int(np.count_nonzero(left & rows))
        left &= ~rows


def _request(snapshot: ClusterSnapshot, pod_class: PodClass) -> _Request:
    listed = [(snapshot.resources.index(n), amount) for n, amount in pod_class.request if n in snapshot.resources]
    unlisted = (name for name, _ in pod_class.request if name not in snapshot.resources)
    return _Request(
        columns=[column for column, _ in listed],
        amounts=np.array([min(amount, LARGEST_AMOUNT) for _, amount in listed], np.int64),
        unlisted=tuple(islice(unlisted, _MOST_UNLISTED)),
    )


def _short(snapshot: ClusterSnapshot, free: Amounts, pod_class: PodClass) -> tuple[Counter[tuple[str, ...]], Mask]:
    """Rows of `free` by the reasons for which a pod of the class does not fit, and the rows where it does."""
    names, missing = shortage(snapshot, free, pod_class)
    lacks = missing > 0
    found: Counter[tuple[str, ...]] = Counter()
    for pattern, number in zip(*np.unique(lacks, axis=0, return_counts=True), strict=True):
        if pattern.any():
            found[tuple(sorted(insufficient(name) for name in compress(names, pattern)))] += int(number)
    return found, np.asarray(~lacks.any(axis=1))
