"""Account: amounts of one kind, by node and by queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from model.queue import NO_FLAVOR, Cell
from scheduler.core.ledger.use_table import UseTable
from scheduler.core.snapshot.podclass import PodClass


class Account:
    """Amounts in base units; those of a queue are exact, however many. `told` hears of each change of a queue."""

    def __init__(self) -> None:
        self.nodes = UseTable()
        self.told: Callable[[str, PodClass, int], None] | None = None
        self._queues: dict[str, dict[str, int]] = {}
        self._flavored: dict[str, dict[Cell, int]] = {}

    @property
    def queues(self) -> Iterable[str]:
        """Those in whose name there is anything."""
        return self._queues.keys()

    def of(self, queue: str) -> Mapping[str, int]:
        """Resource → amount in the name of a queue."""
        return self._queues.get(queue, {})

    def cells(self, queue: str) -> dict[Cell, int]:
        """The same by flavour and resource."""
        found = {(NO_FLAVOR, resource): amount for resource, amount in self.of(queue).items()}
        for cell, amount in self._flavored.get(queue, {}).items():
            found[NO_FLAVOR, cell[1]] -= amount
            found[cell] = amount
        return {cell: amount for cell, amount in found.items() if amount}

    @property
    def flavored(self) -> dict[str, int]:
        """Resource → amount of all queues that counts to flavours."""
        total: dict[str, int] = {}
        for cells in self._flavored.values():
            for (_, resource), amount in cells.items():
                total[resource] = total.get(resource, 0) + amount
        return total

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
            now = amounts.get(resource, 0) + number * amount
            if now:
                amounts[resource] = now
            else:
                amounts.pop(resource, None)
        if not amounts:
            del self._queues[queue]
        if pod_class.flavors:
            self._count_flavors(queue, pod_class, number)

    def _count_flavors(self, queue: str, pod_class: PodClass, number: int) -> None:
        flavored = self._flavored.setdefault(queue, {})
        for cell, amount in pod_class.cells(number).items():
            if cell[0] == NO_FLAVOR:
                continue
            flavored[cell] = flavored.get(cell, 0) + amount
            if flavored[cell] == 0:
                del flavored[cell]
        if not flavored:
            del self._flavored[queue]
