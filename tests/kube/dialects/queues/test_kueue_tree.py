"""Cohorts as inner queues: what there is in them is what Kueue's own arithmetic says."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import msgspec
import pytest

from kube.dialects.queues.kueue_tree import cohort_name, with_cohorts
from model.queue import FlavorGroup, Queue, QuotaCell
from scheduler.core.queues.headroom import Quota
from scheduler.core.queues.tree import tree_of

CELL = ("a100", "gpu")


def leaf(name: str, cohort: str, nominal: int, borrowing: int | None = None, lending: int | None = None) -> Queue:
    cells = {CELL: QuotaCell(nominal=nominal, borrowing_limit=borrowing, lending_limit=lending)}
    return Queue(name, f"cohort/{cohort}", 1000, cells, flavor_groups=(FlavorGroup(("gpu",), ("a100",)),))


def inner(name: str, parent: str = "", nominal: int | None = None, **limits: int) -> Queue:
    cells = {} if nominal is None else {CELL: QuotaCell(nominal=nominal, **limits)}
    return Queue(f"cohort/{name}", f"cohort/{parent}" if parent else "", 1000, cells, source=f"Cohort/{name}")


def test_a_cohort_that_is_only_named() -> None:
    found = {queue.name: queue for queue in with_cohorts((leaf("a", "org", 8), leaf("b", "org", 4)), {"a100"})}
    assert found["cohort/org"].cells == {CELL: QuotaCell(nominal=12, maximum=12)}
    assert (found["cohort/org"].weight, found["a"].weight, found["cohort/org"].source) == (1, 1000, "")
    assert not found["a"].inactive
    assert cohort_name("cohort/org") == "org" and cohort_name("a") == ""


def test_a_flavour_that_is_not_there() -> None:
    (found,) = (queue for queue in with_cohorts((leaf("a", "org", 8),), ()) if queue.name == "a")
    assert found.inactive.startswith('ResourceFlavor "a100" does not exist', len(": "))


def test_queues_of_others_stay_as_they_are() -> None:
    queue = Queue("ours", weight=3, cells={("", "cpu"): QuotaCell(guaranteed=1)})
    assert with_cohorts((queue,), ()) == (queue,)


def test_a_circle_ends() -> None:
    """The tree says what is wrong with it."""
    found = with_cohorts((inner("a", "b", 1), inner("b", "a", 2)), ())
    assert tree_of(found).problems.keys() == {"cohort/a", "cohort/b"}


TREES: dict[str, tuple[Queue, ...]] = {
    "two equals": (leaf("a", "org", 8), leaf("b", "org", 8)),
    "limits": (leaf("a", "org", 8, borrowing=2), leaf("b", "org", 8, lending=3)),
    "one that lends nothing": (leaf("a", "org", 4, lending=0), leaf("b", "org", 8, lending=8)),
    "amounts of the cohort": (inner("org", "", 5), leaf("a", "org", 4), leaf("b", "org", 2, borrowing=9)),
    "two levels": (inner("l", "top"), inner("r", "top"), leaf("a", "l", 8), leaf("b", "r", 8)),
    "a cohort that lends little": (
        inner("l", "top", 2, lending_limit=3, borrowing_limit=4),
        inner("r", "top", 0, lending_limit=1),
        leaf("a", "l", 6, lending=4),
        leaf("b", "r", 8, borrowing=3),
    ),
}


@pytest.mark.parametrize("queues", TREES.values(), ids=TREES)
def test_what_is_available_is_what_kueue_says(queues: tuple[Queue, ...]) -> None:
    """Of both queues, for each use of both that is lawful or not."""
    tree = tree_of(with_cohorts(queues, {"a100"}))
    said = {queue.name: queue for queue in queues}
    for a, b in product(range(0, 20, 3), repeat=2):
        quota = Quota(tree, {}, {}, {})
        quota.charge("a", {CELL: a})
        quota.charge("b", {CELL: b})
        for name in ("a", "b"):
            wanted = _Kueue(said, {"a": a, "b": b}).available(name)
            assert quota.headroom(name, CELL).amount == wanted, (a, b, name)


class _Kueue:
    """The published arithmetic (resource_node.go), written for one cell."""

    def __init__(self, queues: Mapping[str, Queue], used: Mapping[str, int]) -> None:
        parents = {queue.parent for queue in queues.values() if queue.parent}
        self._queues = {**{name: Queue(name) for name in parents}, **queues}
        self._used = used

    def available(self, name: str) -> int:
        queue = self._queues[name]
        quota = queue.cells.get(CELL, QuotaCell(nominal=0))
        subtree, local, usage = self._subtree(name), self._local(name), self._usage(name)
        if not queue.parent:
            return subtree - usage
        above = self.available(queue.parent)
        if quota.borrowing_limit is not None:
            above = min(above, subtree - local - max(0, usage - local) + quota.borrowing_limit)
        return max(0, local - usage) + above

    def _subtree(self, name: str) -> int:
        own = self._queues[name].cells.get(CELL, QuotaCell(nominal=0)).nominal or 0
        return own + sum(self._subtree(child) - self._local(child) for child in self._below(name))

    def _local(self, name: str) -> int:
        lending = self._queues[name].cells.get(CELL, QuotaCell()).lending_limit
        return 0 if lending is None else max(0, self._subtree(name) - lending)

    def _usage(self, name: str) -> int:
        return self._used.get(name, 0) + sum(
            max(0, self._usage(child) - self._local(child)) for child in self._below(name)
        )

    def _below(self, name: str) -> list[str]:
        return [each for each, queue in self._queues.items() if queue.parent == name]


def test_the_tree_is_made_of_what_is_written_alone() -> None:
    """Again from what came of it: sums do not add up twice."""
    once = with_cohorts(TREES["two equals"], {"a100"})
    leaves = tuple(queue for queue in once if not queue.name.startswith("cohort/"))
    assert with_cohorts(leaves, {"a100"}) == tuple(
        msgspec.structs.replace(queue) for queue in (*leaves, *(each for each in once if each not in leaves))
    )
