"""Run book: what runs and since when, and how long what ended ran, by kinds of work.

A run begins with the first pod of a workload that is on a node and ends with the last. Of pods that were evicted it is
known that such work runs longer than they did, as of those that run still.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from model.pod.pod import Pod
from model.resources import CPU, MEMORY, PODS
from model.workload import WorkloadId
from scheduler.core.estimates.durations import Durations, PastRuns, RunKind, with_running
from scheduler.core.snapshot.podclass import PodClass

_NUMBERED = re.compile(r"[a-z]*[0-9][0-9a-z]*")
"""What tells runs of one job from each other at the end of their names: numbers, and hashes with a digit.

Matched a part at a time: whoever makes a pod chooses its name, and a repeated pattern never ends for some names.
"""
_ORDINARY = (CPU, MEMORY, PODS)


class _Run(msgspec.Struct):
    """Pods on nodes by uid, since when the first of them, how many at most, and of whom; `known_kinds` are those of
    that number.
    """

    started_seconds: float
    pods: set[str]
    most: int
    pod: Pod
    pod_class: PodClass
    cut: bool = False
    known_kinds: tuple[int, Sequence[RunKind]] = (0, ())

    @property
    def kinds(self) -> Sequence[RunKind]:
        """From the narrowest to the widest."""
        if self.known_kinds[0] != self.most:
            self.known_kinds = self.most, kinds_of(self.pod, self.pod_class, self.most)
        return self.known_kinds[1]


class RunBook:
    """By workload; times are Unix seconds."""

    def __init__(self, durations: Durations | None = None) -> None:
        self.durations = durations or Durations()
        self._runs: dict[WorkloadId, _Run] = {}
        self._subjects: dict[str, WorkloadId] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def on_node(self, subject: WorkloadId, pod: Pod, pod_class: PodClass, now: float) -> None:
        """A pod of the workload is on a node."""
        started = pod.status.started_seconds or pod.status.scheduled_seconds or now
        run = self._runs.get(subject)
        if run is None:
            run = self._runs[subject] = _Run(started, set(), 0, pod, pod_class)
        self._moved(pod.uid, subject)
        run.pods.add(pod.uid)
        run.started_seconds = min(run.started_seconds, started)
        run.most = max(run.most, len(run.pods))
        run.cut |= pod.status.evicted

    def _moved(self, uid: str, subject: WorkloadId) -> None:
        """A pod is of this workload by now: its gang is in another group. A run that ends by that teaches nothing."""
        before = self._subjects.get(uid)
        self._subjects[uid] = subject
        if before is None or before == subject:
            return
        self._runs[before].pods.discard(uid)
        if not self._runs[before].pods:
            del self._runs[before]

    def left(self, uid: str, now: float) -> None:
        """A pod is on no node any more; with the last one the run is over."""
        subject = self._subjects.pop(uid, None)
        run = self._runs.get(subject) if subject is not None else None
        if subject is None or run is None:
            return
        run.pods.discard(uid)
        if run.pods:
            return
        del self._runs[subject]
        if now > run.started_seconds:
            self.durations.learn(run.kinds, now - run.started_seconds, cut=run.cut)

    def started(self, subject: WorkloadId) -> float | None:
        """Since when it runs, None where none of its pods is on a node."""
        run = self._runs.get(subject)
        return run.started_seconds if run is not None else None

    def known_end(self, subject: WorkloadId, now: float, quantile: float) -> float | None:
        """Unix time by which it has ended, at a quantile of the past runs of its kind that ran longer than it has; None
        where it does not run, too few runs are known, or none of them ran longer.
        """
        run = self._runs.get(subject)
        runs = self.durations.of(run.kinds) if run is not None else None
        if run is None or runs is None:
            return None
        found = runs.known_end(now - run.started_seconds, quantile)
        return None if found is None else run.started_seconds + found

    def past(self, pod: Pod, pod_class: PodClass, count: int) -> PastRuns | None:
        """Past runs like those of a workload with so many pods like this one."""
        return self.durations.of(kinds_of(pod, pod_class, count))

    def at(self, now: float) -> RunsAt:
        """As `past`, with what runs at this moment."""
        return RunsAt(self, now)

    def ages(self, now: float) -> Mapping[RunKind, Sequence[float]]:
        """For how long what runs has run, by kind."""
        found: dict[RunKind, list[float]] = {}
        for run in self._runs.values():
            for kind in run.kinds:
                found.setdefault(kind, []).append(max(0.0, now - run.started_seconds))
        return found


class RunsAt:
    """Past runs at one moment, of which those of a kind that run still are a part."""

    def __init__(self, book: RunBook, now: float) -> None:
        self._book = book
        self._now = now
        self._known: dict[RunKind, PastRuns] = {}

    @cached_property
    def _ages(self) -> Mapping[RunKind, Sequence[float]]:
        return self._book.ages(self._now)

    def past(self, pod: Pod, pod_class: PodClass, count: int) -> PastRuns | None:
        """Past runs like those of a workload with so many pods like this one."""
        found = self._book.past(pod, pod_class, count)
        if found is None:
            return None
        if found.kind not in self._known:
            self._known[found.kind] = with_running(found, self._ages.get(found.kind, ()))
        return self._known[found.kind]


def kinds_of(pod: Pod, pod_class: PodClass, count: int) -> Sequence[RunKind]:
    """What it has in common with other work, from the narrowest to the widest."""
    size, queue = _size(pod_class, count), f"queue {pod.spec.queue}" if pod.spec.queue else f"namespace {pod.namespace}"
    name = _unnumbered((pod.owner or pod.key).rpartition("/")[2])
    return ((f"{pod.namespace}/{name}", size), (queue, size), (queue,), ("all",))


def _unnumbered(name: str) -> str:
    """The name without the numbered parts at its end."""
    end = len(name)
    while (cut := max(name.rfind("-", 0, end), name.rfind(".", 0, end))) >= 0:
        if not _NUMBERED.fullmatch(name, cut + 1, end):
            break
        end = cut
    return name[:end]


def _size(pod_class: PodClass, count: int) -> str:
    """Of the devices that it asks for, else of the CPUs: to the next power of two."""
    amounts = dict(pod_class.request)
    devices = sorted(name for name in amounts if name not in _ORDINARY)
    resource = devices[0] if devices else CPU
    amount = amounts.get(resource, 0) * count
    return f"{1 << max(0, amount - 1).bit_length()} {resource}"
