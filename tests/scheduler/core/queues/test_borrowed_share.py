"""The number by which Kueue's fair sharing compares queues."""

from __future__ import annotations

import pytest

from kube.dialects.queues.kueue_tree import with_cohorts
from model.queue import Queue, QuotaCell
from scheduler.core.queues.borrowed_share import borrowed_share
from scheduler.core.queues.headroom import Quota
from scheduler.core.queues.tree import tree_of

CELL = ("a100", "gpu")


def quota(used: int, weight: int = 1000, lending: int | None = None, cohort: str = "cohort/org") -> Quota:
    """8 of its own, and 8 of another queue."""
    queues = (
        Queue("a", cohort, weight, {CELL: QuotaCell(nominal=8)}),
        Queue("b", cohort, 1000, {CELL: QuotaCell(nominal=8, lending_limit=lending)}),
    )
    found = Quota(tree_of(with_cohorts(queues, {"a100"})), {}, {}, {})
    found.charge("a", {CELL: used})
    return found


CASES: dict[str, tuple[Quota, int]] = {
    "nothing borrowed": (quota(8), 0),
    "a quarter of what may be lent": (quota(12), 250),
    "by its weight": (quota(12, weight=2000), 125),
    "of what the other lends": (quota(12, lending=2), 400),
    "in no cohort": (quota(12, cohort=""), 0),
}


@pytest.mark.parametrize(("books", "wanted"), CASES.values(), ids=CASES)
def test_share(books: Quota, wanted: int) -> None:
    assert borrowed_share(books, "a") == wanted
