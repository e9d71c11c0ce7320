"""Keeps the status of disruption budgets true, change by change: a pod's change never counts the other pods again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from embedded.apiserver.apimachinery.objects import dig
from embedded.apiserver.apimachinery.resource_types import DEPLOYMENTS, DISRUPTION_BUDGETS, PODS, REPLICA_SETS
from embedded.apiserver.apimachinery.selectors import Filter, Selector, admits, parse_label_selector
from embedded.apiserver.controllers.disruption import (
    controller_uid,
    counts,
    counts_by_scale,
    expected_pods,
    is_healthy,
    write_status,
)
from embedded.apiserver.reconciling.work_queue import Key
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.storage.records import Change, Event, Record

_SCALED = (DEPLOYMENTS.id, REPLICA_SETS.id)


@dataclass(slots=True)
class _Cover:
    """The pods one budget covers, each with whether it is healthy and whose it is; without a selector none."""

    selector: Selector | None
    pods: dict[str, tuple[bool, str]] = field(default_factory=dict)
    healthy: int = 0
    controllers: Counter[str] = field(default_factory=Counter)

    def drop(self, name: str) -> bool:
        """Whether it was there."""
        held = self.pods.pop(name, None)
        if held is None:
            return False
        self.healthy -= held[0]
        self.controllers[held[1]] -= 1
        if not self.controllers[held[1]]:
            del self.controllers[held[1]]
        return True

    def take(self, pod: Record) -> bool:
        """Whether it belongs here."""
        belongs = self.selector is not None and counts(pod) and admits(self.selector, pod.labels)
        if belongs:
            healthy, owner = self.pods[pod.name] = (is_healthy(pod), controller_uid(pod))
            self.healthy += healthy
            self.controllers[owner] += 1
        return belongs


class Budgets:
    """What every budget covers at this moment."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._covers: dict[str, dict[str, _Cover]] = {}  # namespace → budget → its pods
        self._dirty: set[Key] = set()

    @property
    def idle(self) -> bool:
        return not self._dirty

    def react(self, type_id: str, event: Event) -> None:
        record, gone = event.record, event.change is Change.DELETED
        if type_id == DISRUPTION_BUDGETS.id:
            self._budget_changed(record, gone)
        elif type_id == PODS.id:
            for name, cover in self._covers.get(record.namespace, {}).items():
                left = cover.drop(record.name)
                if (not gone and cover.take(record)) or left:
                    self._dirty.add((record.namespace, name))
        elif type_id in _SCALED:
            self._dirty |= {(record.namespace, name) for name in self._covers.get(record.namespace, {})}

    def _budget_changed(self, record: Record, gone: bool) -> None:
        covers = self._covers.setdefault(record.namespace, {})
        if gone:
            covers.pop(record.name, None)
            return
        budget = self._resources.decoded(DISRUPTION_BUDGETS, record)
        selector = parse_label_selector(dig(budget, "spec.selector"))
        if record.name not in covers or covers[record.name].selector != selector:
            cover = covers[record.name] = _Cover(selector)
            for pod in self._resources.store.select(PODS.id, Filter(record.namespace, selector or ())):
                cover.take(pod)
        self._dirty.add(record.key)

    def take_due(self) -> list[Key]:
        due, self._dirty = sorted(self._dirty), set()
        return due

    def advance(self, key: Key) -> None:
        """Write one budget's status where it is another than before."""
        budget, cover = self._resources.find(DISRUPTION_BUDGETS, *key), self._covers.get(key[0], {}).get(key[1])
        if budget is not None and cover is not None:
            by_scale = counts_by_scale(budget)
            expected = expected_pods(self._resources, cover.controllers) if by_scale else len(cover.pods)
            write_status(self._resources, budget, expected, cover.healthy)
