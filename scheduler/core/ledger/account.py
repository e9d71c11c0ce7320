"""Account: amounts of one kind, by node and by queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from scheduler.core.ledger.use_table import UseTable
from scheduler.core.snapshot.podclass import PodClass


class Account:
    """Amounts in base units; those of a queue are exact, however many. `told` hears of each change of a queue."""

    def __init__(self) -> None:
        self.nodes = UseTable()
        self.told: Callable[[str, PodClass, int], None] | None = None
        self._queues: dict[str, dict[str, int]] = {}

    @property
    def queues(self) -> Iterable[str]:
        """Those in whose name there is anything."""
        return self._queues.keys()

    def of(self, queue: str) -> Mapping[str, int]:
        """Resource → amount in the name of a queue."""
        return self._queues.get(queue, {})

    def add(self, nodes: Sequence[str], pod_class: PodClass, queue: str, counted: PodClass | None = None) -> None:
        """One pod of the class more on each of `nodes`, which may repeat; `counted` is what of it counts to the queue,
        None: all.
        """
        self.nodes.add(nodes, pod_class)
        self._count(queue, pod_class if counted is None else counted, len(nodes))

    def remove(self, node: str, pod_class: PodClass, queue: str, counted: PodClass | None = None) -> None:
        """One pod of the class less."""
        self.nodes.remove(node, pod_class)
        self._count(queue, pod_class if counted is None else counted, -1)

    def _count(self, queue: str, pod_class: PodClass, number: int) -> None:
        if self.told is not None:
            self.told(queue, pod_class, number)
        amounts = self._queues.setdefault(queue, {})
        for resource, amount in pod_class.request:
            amounts[resource] = amounts.get(resource, 0) + number * amount
            if amounts[resource] == 0:
                del amounts[resource]
        if not amounts:
            del self._queues[queue]
