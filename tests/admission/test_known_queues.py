"""Queues that admission knows of."""

from __future__ import annotations

from admission.core.queue_rules import KnownQueue
from admission.known_queues import KnownQueues
from kube.informer import Change, ChangeKind
from kube.objects import Metadata, Queue, VolcanoQueue
from model.queue import Queue as ModelQueue


def queue(name: str = "a", status: object = None, **spec: object) -> Queue:
    return Queue(Metadata(name), spec, status)


def view(known: KnownQueues) -> dict[str, tuple[str, int, int]]:
    return {name: (each.where, each.queue.weight, each.running) for name, each in known.view().items()}


def test_what_is_known() -> None:
    """Each name once, with its jobs; what cannot be read is none, and what is gone neither."""
    known = KnownQueues()
    assert known.view() == {}
    for source in (VolcanoQueue(Metadata("a"), {"weight": 5}), queue(status={"runningJobs": 2}), queue("b", weight=0)):
        known.apply(Change(ChangeKind.ADDED, source))
    assert view(known) == {"a": ("Queue a", 1, 2)}
    known.apply(Change(ChangeKind.DELETED, queue()))
    assert view(known) == {"a": ("Queue.scheduling.volcano.sh a", 5, 0)}


def test_what_was_asked_for() -> None:
    """Counts until the watch says it; what the watch said is newer."""
    known = KnownQueues()
    known.add(queue(weight=2))
    assert view(known) == {"a": ("Queue a", 2, 0)}
    known.apply(Change(ChangeKind.ADDED, queue(weight=3)))
    known.add(queue(weight=2))
    assert view(known) == {"a": ("Queue a", 3, 0)}
    assert isinstance(known.view()["a"], KnownQueue) and isinstance(known.view()["a"].queue, ModelQueue)
