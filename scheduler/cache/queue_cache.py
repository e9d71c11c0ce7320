"""Queues as objects define them: ours, Volcano's, Koordinator's and Kueue's, each name once.

An object that cannot be read is told once; what it said before goes on counting, and a queue that never could be read
is a problem of those who name it. Of several objects that have one name one counts, and the others are told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from kube import objects
from kube.dialects.queues.dialect import ALL, QueueDialect
from kube.dialects.queues.kueue_tree import with_cohorts
from kube.dialects.queues.membership import LOCAL_PREFIX, NamedQueues, resolved
from kube.dialects.queues.reading import QueueObject, by_namespace, dialect_of, in_force, read
from kube.informer import Change, ChangeKind
from model.flavor.resource_flavor import SubmissionQueue
from model.pod.pod import Pod
from model.queue import DEFAULT_QUEUE, ROOT_QUEUE, Queue
from model.resources import PODS
from scheduler.cache.kueue_cache import KueueCache
from scheduler.core.queues.admission_rules import counts_to
from scheduler.core.queues.flavors import flavors_at
from scheduler.core.queues.tree import QueueTree, tree_of

_Refuse = Callable[[str, objects.Metadata, str], None]


class QueueCache:
    """What objects say together is worked out when it is asked for: many come at once, as when a watch begins.

    `refuse` is told (kind and key, metadata, message) of what cannot be read or counts for nothing, `settled` (kind and
    key) of what can be read again, or is gone; `tell` as `refuse`, of what counts but for what the message says.
    `kueue` has the objects that Kueue's queues go with.
    """

    def __init__(
        self,
        refuse: _Refuse,
        settled: Callable[[str], None],
        dialects: Iterable[QueueDialect] = ALL,
        tell: _Refuse | None = None,
    ) -> None:
        self._changed = True
        self._moved = False
        self._refuse = refuse
        self._tell_of = tell or refuse
        self._settled = settled
        self._dialects = frozenset(dialects)
        self.kueue = KueueCache(refuse, settled)
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._queues: tuple[Queue, ...] = ()
        self._by_name: Mapping[str, Queue] = {}
        self._stale = False
        self._objects: dict[str, QueueObject] = {}
        self._in_force: dict[str, QueueObject] = {}
        self._by_namespace: dict[str, str] = {}
        self._rules: dict[str, tuple[object, ...]] = {}
        self._tree: QueueTree | None = None
        self._counted: dict[tuple[str, str], bool] = {}

    def reads(self, item: object) -> bool:
        """Whether objects of this kind belong here."""
        return dialect_of(item) in self._dialects or (QueueDialect.KUEUE in self._dialects and self.kueue.reads(item))

    def queues(self) -> tuple[Queue, ...]:
        """By name; without those that nobody wrote, but for cohorts that are named."""
        self._settle()
        return self._queues

    def seen(self) -> tuple[Queue, ...]:
        """The queues, which are news no more."""
        found, self._changed = self.queues(), False
        return found

    @property
    def changed(self) -> bool:
        """Whether queues may differ from what was `seen` last."""
        self._settle()
        return self._changed

    @property
    def moved(self) -> bool:
        """Whether pods may be in other queues than when this was set to False."""
        self._settle()
        return self._moved

    @moved.setter
    def moved(self, told: bool) -> None:
        self._moved = told

    @property
    def names(self) -> Collection[str]:
        """Of all queues, `default` included."""
        self._settle()
        return {DEFAULT_QUEUE, *self._in_force}

    @property
    def words(self) -> Collection[str]:
        """The names that pods may call a queue by: those of queues and of LocalQueues."""
        return {*self.names, *(each.name for each in self.kueue.submissions.values())}

    @property
    def problems(self) -> Mapping[str, str]:
        """Queue → why the object that has its name cannot be used, of those that have no queue at all."""
        self._settle()
        return {
            each.name: each.problem
            for each in self._objects.values()
            if each.problem and each.queue is None and each.name not in self._in_force
        }

    def source(self, name: str) -> QueueObject | None:
        """The object that a queue comes from; None for one that nobody wrote."""
        self._settle()
        return self._in_force.get(name)

    def queue_of(self, pod: Pod, group: str = "") -> str:
        """The queue that a pod waits in, or counts to; `group` is the one that its PodGroup names.

        A pod with a node may have got it from its author. It counts to a queue that is not for its namespace no more
        than if it named none; where not even that one is for it, to the root's.
        """
        self._settle()
        local, own = self._local(pod.namespace, pod.spec.local_queue), pod.spec.named_queue
        missing = local.startswith(LOCAL_PREFIX)
        named = resolved((own or local) if missing else (local or own), group, pod.namespace, self._by_namespace)
        if named != local and self._of_kueue(named) and not self._reaches(pod.namespace, named):
            named = f"{LOCAL_PREFIX}{pod.namespace}/{named}"
        if not pod.spec.node_name or self._counts(named, pod.namespace):
            return named
        others = (resolved("", "", pod.namespace, self._by_namespace), DEFAULT_QUEUE)
        return next((queue for queue in others if self._counts(queue, pod.namespace)), ROOT_QUEUE)

    def flavors_of(self, pod: Pod, queue: str, labels: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
        """Resource and flavour of what a pod takes on a node with these labels (None: unknown) in its queue."""
        self._settle()
        found = self._by_name.get(queue)
        if found is None or not found.flavor_groups:
            return ()
        resources = {PODS, *(name for name, amount in pod.spec.requests.amounts.items() if amount > 0)}
        return flavors_at(found, self.kueue.flavors, resources, labels, dict(pod.spec.named_flavors))

    def submission(self, namespace: str, name: str) -> SubmissionQueue | None:
        """The LocalQueue of that name; None where there is none."""
        return self.kueue.submissions.get(f"{namespace}/{name}")

    def _local(self, namespace: str, name: str) -> str:
        """What a LocalQueue's name stands for; where nobody uses Kueue's objects, a queue of that name, or nothing."""
        if not name:
            return ""
        submission = self.submission(namespace, name)
        if submission is not None:
            return submission.queue
        if name in self._in_force and not self._of_kueue(name):
            return name
        return f"{LOCAL_PREFIX}{namespace}/{name}" if self._has_kueue else ""

    @property
    def _has_kueue(self) -> bool:
        """Whether anybody uses Kueue's objects here."""
        return bool(self.kueue.submissions) or any(
            each.dialect is QueueDialect.KUEUE for each in self._objects.values()
        )

    def _of_kueue(self, name: str) -> bool:
        found = self._in_force.get(name)
        return found is not None and found.dialect is QueueDialect.KUEUE

    def _reaches(self, namespace: str, queue: str) -> bool:
        """Whether a LocalQueue of the namespace leads to the ClusterQueue: nobody else may use it by its name."""
        found = self.kueue.submissions.values()
        return any(each.namespace == namespace and each.queue == queue for each in found)

    def labelled(self, namespace: str, labels: Mapping[str, str] | None) -> None:
        """A namespace has these labels; None: it is gone. Queues may select others by that."""
        before = self._namespaces.pop(namespace, None)
        if labels is not None:
            self._namespaces[namespace] = labels
        self._stale |= before != labels

    def _counts(self, queue: str, namespace: str) -> bool:
        if not self._rules or (queue != DEFAULT_QUEUE and queue not in self._in_force):
            return True
        known = self._counted.get((queue, namespace))
        if known is None:
            self._tree = self._tree or tree_of(self._queues)
            known = self._counted[queue, namespace] = counts_to(self._tree, queue, namespace)
        return known

    def named(self, told: NamedQueues, namespace: str) -> str:
        """The queue that somebody names, where a LocalQueue's name stands for a queue of that name; empty for none."""
        self._settle()
        return self._local(namespace, told.local) or told.queue

    def apply(self, change: Change[Any]) -> None:
        """Take in one change."""
        if self.kueue.reads(change.object):
            if self.kueue.apply(change):
                self._stale = True
                self._moved |= isinstance(change.object, objects.LocalQueue | objects.ResourceFlavor)
            return
        found = read(change.object)
        before = self._objects.pop(found.where, None)
        if change.kind is ChangeKind.DELETED:
            self._settled(found.where)
        else:
            if found.problem and before is not None:
                found = msgspec.structs.replace(found, queue=before.queue, namespaces=before.namespaces)
            self._objects[found.where] = found
        if _said(before) != _said(self._objects.get(found.where)):
            self._stale = True
        elif not self._stale and found.name in self._in_force and self._in_force[found.name].where == found.where:
            self._in_force[found.name] = found  # with the status that was written since

    def _settle(self) -> None:
        if self._stale:
            self._stale = False
            self._choose()

    def _choose(self) -> None:
        names, places, rules = self._in_force.keys(), self._by_namespace, self._rules
        self._in_force = in_force(self._objects.values())
        found = (self._in_force[name].queue for name in sorted(self._in_force))
        written = (self._selected(queue) for queue in found if queue is not None)
        self._queues = tuple(sorted(with_cohorts(written, self.kueue.flavors), key=lambda queue: queue.name))
        self._by_name = {queue.name: queue for queue in self._queues}
        self._by_namespace = by_namespace(self._in_force.values())
        self._rules, self._tree, self._counted = _rules(self._queues), None, {}
        self._changed = True
        self._moved |= names != self._in_force.keys() or places != self._by_namespace or rules != self._rules
        for each in self._objects.values():
            self._tell(each)

    def _selected(self, queue: Queue) -> Queue:
        """With the namespaces that it selects; none at all is told by a name that no namespace has."""
        selector = queue.admission.namespace_selector
        if selector is None:
            return queue
        names = tuple(name for name in sorted(self._namespaces) if selector.matches(self._namespaces[name]))
        return msgspec.structs.replace(
            queue, admission=msgspec.structs.replace(queue.admission, namespaces=names or ("",))
        )

    def _tell(self, found: QueueObject) -> None:
        """What is wrong with an object that is there; `settled` where nothing is."""
        counts = self._in_force.get(found.name)
        if found.problem:
            self._refuse(found.where, found.metadata, found.problem)
        elif counts is not None and counts.where != found.where:
            told = f"{found.where}: has the name of {counts.where}, which counts (rename one of them)"
            self._refuse(found.where, found.metadata, told)
        elif found.unheard:
            self._tell_of(found.where, found.metadata, found.unheard)
        else:
            self._settled(found.where)


def _rules(queues: tuple[Queue, ...]) -> dict[str, tuple[object, ...]]:
    """What says of which namespaces pods count to which queue and flavour; empty where all count everywhere."""
    if not any(queue.admission.namespaces or queue.flavor_groups for queue in queues):
        return {}
    return {queue.name: (queue.parent, queue.admission.namespaces, queue.flavor_groups) for queue in queues}


def _said(found: QueueObject | None) -> tuple[object, ...]:
    """What of an object others depend on; a status that is written changes nothing."""
    if found is None:
        return ()
    return (found.queue, found.namespaces, found.problem, found.unheard, found.rank, found.metadata.uid)
