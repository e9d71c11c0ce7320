"""Tables of what a simulated scheduler decided."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from view.cluster_outcome import GangOut, Outcome, SimulatedPlacement, tables
from view.simulated_queues import PreemptionOut, QueueOut, WhatIfOut, WorkloadOut
from view.table import Table

QUEUE = QueueOut("q", "", "Open", *[{"cpu": 1}] * 10, 0, 0, 0, 0, "")


def test_a_kind_without_rows_has_no_table() -> None:
    """Fields are the columns, words apart."""
    outcome = Outcome((SimulatedPlacement("d/p", "n"),), (), (), (), (GangOut("d/g", "Scheduled", 2, 2),))
    assert tables(outcome) == (
        Table("placed", ("pod", "node"), (("d/p", "n"),)),
        Table("gangs", ("name", "phase", "scheduled", "min member"), (("d/g", "Scheduled", "2", "2"),)),
    )


def test_queues_have_tables_where_somebody_wrote_one() -> None:
    """The queue that is there in any case tells nothing."""
    default, train = (replace(QUEUE, name=name) for name in ("default", "train"))
    work = WorkloadOut("d/p", "train", "pending", 2, {}, "QuotaExhausted")
    loss = PreemptionOut("d/a", "train", "d/b", "Reclaiming")
    assert tables(Outcome((), (), (), (), (), (default,), (), (work,), (loss,))) == ()
    assert tables(Outcome((), (), (), (), (), (train,), (), (work,), (loss,)))[1:] == (
        Table("preemptions", ("victim", "queue", "preemptor", "reason"), (("d/a", "train", "d/b", "Reclaiming"),)),
        Table(
            "workloads",
            ("workload", "queue", "outcome", "count", "reason"),
            (("d/p", "train", "pending", "2", "QuotaExhausted"),),
        ),
    )


@pytest.mark.parametrize(
    ("count", "workloads", "table"),
    [
        (1, ("a/b",), Table("runs only with 1 more node like n1", ("workload",), (("a/b",),))),
        (2, (), Table("runs only with 2 more nodes like n1", ("workload",), (("nothing",),))),
    ],
)
def test_more_nodes(count: int, workloads: tuple[str, ...], table: Table) -> None:
    """What runs with them alone."""
    outcome = Outcome((), (), (), (), (), what_if=WhatIfOut(count, "n1", workloads))
    assert tables(outcome) == (table,)


def test_nothing_was_decided() -> None:
    assert tables(Outcome((), (), (), (), ())) == ()
