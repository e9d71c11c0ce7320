"""Tables of what a simulated scheduler decided."""

from __future__ import annotations

from view.cluster_outcome import GangOut, Outcome, SimulatedPlacement, tables
from view.table import Table


def test_a_kind_without_rows_has_no_table() -> None:
    """Fields are the columns, words apart."""
    outcome = Outcome((SimulatedPlacement("d/p", "n"),), (), (), (), (GangOut("d/g", "Scheduled", 2, 2),))
    assert tables(outcome) == (
        Table("placed", ("pod", "node"), (("d/p", "n"),)),
        Table("gangs", ("name", "phase", "scheduled", "min member"), (("d/g", "Scheduled", "2", "2"),)),
    )


def test_nothing_was_decided() -> None:
    assert tables(Outcome((), (), (), (), ())) == ()
