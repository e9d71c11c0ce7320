"""A DaemonSet's rolling update: which old pods go, and which nodes get a new pod beside the old one.

Source: kubernetes `pkg/controller/daemon/update.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.workloads.pods import WorkloadPod


@dataclass(frozen=True, slots=True)
class Update:
    """A DaemonSet, which pods are of its current revision, the pods of each node, the nodes that should have one."""

    daemon_set: Object
    is_current: Callable[[WorkloadPod], bool]
    places: Mapping[str, Sequence[WorkloadPod]]
    should_run: frozenset[str]

    def available(self, pod: WorkloadPod, now: float) -> bool:
        return pod.available(self.daemon_set["spec"].get("minReadySeconds") or 0, now)


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """Nodes to create a pod for, and pods to delete."""

    create: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()


def _share(value: int | str, whole: int) -> int:
    return value if isinstance(value, int) else ceil(int(value[:-1]) * whole / 100)


def _rolling(daemon_set: Object) -> Object:
    found: Object = daemon_set["spec"]["updateStrategy"].get("rollingUpdate") or {}
    return found


def most_surplus(daemon_set: Object, nodes: int) -> int:
    """On how many of so many nodes a second pod may run meanwhile."""
    return _share(_rolling(daemon_set).get("maxSurge", 0), nodes)


def _most_unavailable(daemon_set: Object, nodes: int) -> int:
    return _share(_rolling(daemon_set).get("maxUnavailable", 0), nodes)


def plan_update(update: Update, now: float) -> UpdatePlan:
    """The next step of an update; nothing when it is complete."""
    nodes = len(update.should_run)
    surplus, missing = most_surplus(update.daemon_set, nodes), _most_unavailable(update.daemon_set, nodes)
    if surplus:
        return _SurplusFirst(update, now).plan(surplus)
    return _replaced_in_place(update, now, missing or min(nodes, 1))


@dataclass(frozen=True, slots=True)
class _Pair:
    """The new and the old pod of a node; `clear` is false where there are several of a kind, to be settled first."""

    new: WorkloadPod | None
    old: WorkloadPod | None
    clear: bool


def _pair(update: Update, pods: Sequence[WorkloadPod]) -> _Pair:
    staying = [pod for pod in pods if not pod.deleting]
    new = [pod for pod in staying if update.is_current(pod)]
    old = [pod for pod in staying if not update.is_current(pod)]
    return _Pair(next(iter(new), None), next(iter(old), None), len(new) <= 1 and len(old) <= 1)


def _replaced_in_place(update: Update, now: float, most: int) -> UpdatePlan:
    """Old pods that serve nobody go at once; of the others as many as may be missing."""
    missing, useless, candidates = 0, [], []
    for pods in update.places.values():
        pair = _pair(update, pods)
        if pair.clear and pair.old is not None and pair.new is None:
            if update.available(pair.old, now):
                candidates.append(pair.old.name)
                continue
            useless.append(pair.old.name)
        elif pair.clear and pair.new is not None and pair.old is None and update.available(pair.new, now):
            continue
        missing += 1
    return UpdatePlan((), (*useless, *candidates[: max(0, most - missing)]))


class _SurplusFirst:
    """A new pod runs beside the old one; the old one goes when the new one serves."""

    def __init__(self, update: Update, now: float) -> None:
        self._update, self._now = update, now
        self._surplus = self._available = 0
        self._delete: list[str] = []
        self._misplaced: list[str] = []
        self._allowed: list[str] = []
        self._candidates: list[str] = []

    def plan(self, most: int) -> UpdatePlan:
        for node, pods in self._update.places.items():
            self._look(node, _pair(self._update, pods))
        spare = max(0, self._available - len(self._update.should_run))
        more = self._candidates[: max(0, most - self._surplus)]
        return UpdatePlan((*self._allowed, *more), (*self._delete, *self._misplaced[:spare]))

    def _look(self, node: str, pair: _Pair) -> None:
        if not pair.clear:
            self._surplus += 1
            return
        kept = pair.old or pair.new
        self._available += kept is not None and self._serves(kept)
        if pair.old is not None and pair.new is None:
            self._look_at_old(node, pair.old)
        elif pair.old is not None and pair.new is not None:
            if self._serves(pair.new):
                self._delete.append(pair.old.name)
            else:
                self._surplus += 1

    def _look_at_old(self, node: str, old: WorkloadPod) -> None:
        serves, wanted = self._serves(old), node in self._update.should_run
        if wanted:
            (self._candidates if serves else self._allowed).append(node)
        else:
            (self._misplaced if serves else self._delete).append(old.name)

    def _serves(self, pod: WorkloadPod) -> bool:
        return self._update.available(pod, self._now)
