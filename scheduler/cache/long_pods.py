"""Long pods: of thousands of labels, or of parts of their spec, so that reading one takes a tenth of a second or more.

Whoever may write such a pod writes it again in a few bytes, and as often as the API server takes it. So of what nobody
but the pod itself waits for the newest word is kept, and read when as much time has passed as nine such readings take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kube import objects
from kube.informer import ChangeKind
from scheduler.cache.facts import PodSeen

_LONG_PARTS = 1000
"""Of pods that are written by hand or by a controller a few dozen are usual; so many take 5 ms."""
_REST_SECONDS = 4e-5
"""For each part that was read: about ten times as long as that took."""


class LongPods:
    """Namespaces have their turn one after the other; whoever has waited longest goes first in each."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, PodSeen]] = {}
        self._read: dict[str, objects.Pod] = {}
        self._due_seconds = 0.0

    def keep(self, fact: PodSeen) -> bool:
        """Whether the word is kept for later; else it is to be read now, in place of any that is kept of the pod.

        What takes room of a node, gives it back, or ends is read at once.
        """
        pod = fact.change.object
        if fact.change.kind is ChangeKind.DELETED:
            self._read.pop(pod.metadata.uid, None)
            self._drop(pod)
            return False
        if parts_of(pod) <= _LONG_PARTS:
            self._drop(pod)
            return False
        if not pod.spec.node_name or self._as_before(pod):
            self._waiting.setdefault(pod.metadata.namespace, {})[pod.metadata.uid] = fact
            return True
        self._read[pod.metadata.uid] = pod
        self._drop(pod)
        return False

    def next_due(self) -> float | None:
        """Unix time at which one may be read; None where none waits."""
        return self._due_seconds if self._waiting else None

    def take(self, now: float) -> Iterator[PodSeen]:
        """The next one, if it is time."""
        if not self._waiting or now < self._due_seconds:
            return
        namespace = next(iter(self._waiting))
        waiting = self._waiting.pop(namespace)
        fact = waiting.pop(next(iter(waiting)))
        if waiting:
            self._waiting[namespace] = waiting
        self._due_seconds = now + parts_of(fact.change.object) * _REST_SECONDS
        yield fact

    def _as_before(self, pod: objects.Pod) -> bool:
        """Whether a pod that has a node holds what it held when it was read."""
        known = self._read.get(pod.metadata.uid)
        return (
            known is not None
            and known.spec == pod.spec
            and known.status == pod.status
            and known.metadata.deletion_timestamp == pod.metadata.deletion_timestamp
        )

    def _drop(self, pod: objects.Pod) -> None:
        waiting = self._waiting.get(pod.metadata.namespace)
        if waiting is None:
            return
        waiting.pop(pod.metadata.uid, None)
        if not waiting:
            del self._waiting[pod.metadata.namespace]


def parts_of(pod: objects.Pod) -> int:
    """How many labels, and words and numbers of the spec, are read: of annotations only those that are known."""
    spec = pod.spec
    containers = (*spec.containers, *(spec.init_containers or ()))
    counted = (spec.tolerations, spec.volumes, spec.node_selector, spec.overhead)
    raw = (spec.affinity, spec.topology_spread_constraints)
    named = sum(len(each or ()) for each in (pod.metadata.labels, *counted))
    return named + sum(map(_of_container, containers)) + sum(map(_leaves, raw))


def _of_container(container: objects.Container) -> int:
    told = container.resources
    amounts = len(told.requests or ()) + len(told.limits or ()) if told is not None else 0
    return 1 + amounts + len(container.ports or ())


def _leaves(value: Any) -> int:
    """Of an object as it came, however deep it is."""
    number, left = 0, [value]
    while left:
        each = left.pop()
        if isinstance(each, Mapping):
            left.extend(each.values())
        elif isinstance(each, list):
            left.extend(each)
        else:
            number += 1
    return number
