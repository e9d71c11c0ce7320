"""Keeps the status of disruption budgets true, change by change: a pod's change never counts the other pods anew."""

from __future__ import annotations

from dataclasses import dataclass, field

from local.apiserver.disruption import counts, is_healthy, write_status
from local.apiserver.objects import dig
from local.apiserver.records import Change, Event, Record
from local.apiserver.registry import DISRUPTION_BUDGETS, PODS
from local.apiserver.resources import Resources
from local.apiserver.selectors import Filter, Selector, admits, parse_label_selector
from local.apiserver.waiting import Key


@dataclass(slots=True)
class _Cover:
    """The pods one budget covers, each with whether it is healthy; a budget without a selector covers none."""

    selector: Selector | None
    pods: dict[str, bool] = field(default_factory=dict)
    healthy: int = 0

    def drop(self, name: str) -> bool:
        """Whether it was there."""
        held = self.pods.pop(name, None)
        self.healthy -= bool(held)
        return held is not None

    def take(self, pod: Record) -> bool:
        """Whether it belongs here."""
        belongs = self.selector is not None and counts(pod) and admits(self.selector, pod.labels)
        if belongs:
            self.pods[pod.name] = is_healthy(pod)
            self.healthy += self.pods[pod.name]
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
            write_status(self._resources, budget, len(cover.pods), cover.healthy)
