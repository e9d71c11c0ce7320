"""Rows about what a node may lend: each term once, both resources beside each other."""

from __future__ import annotations

import pytest
from msgspec import structs

from model.decision import Term
from model.reason import Reason
from tests.view.nodes import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY, simulated_node
from view.lending_rows import lending_rows, measured_text
from view.simulated_node import SimulatedZone
from view.table import TableRow


def test_terms_of_both_resources_stand_in_one_block() -> None:
    """In CPUs and GiB; a term that only one of them has leaves the other's cell empty; the sum is last."""
    assert lending_rows(simulated_node())[:5] == (
        TableRow("batch", ("CPUs", "GiB"), "policy usage / request"),
        TableRow("  capacity", ("+4.000", "+8.000")),
        TableRow("  margin", ("-1.500", "")),
        TableRow("  held", ("", "-1.000")),
        TableRow("  = value", ("2.500", "7.000")),
    )


def test_a_resource_without_terms_is_one_row() -> None:
    """Mid where nothing is predicted."""
    assert TableRow("mid: nothing is lent") in lending_rows(simulated_node())


def test_what_is_written_stands_there_as_exact_integers() -> None:
    """And what the agent keeps there for running pods."""
    rows = lending_rows(simulated_node(prepared=(BATCH_CPU, BATCH_MEMORY), kept=(BATCH_CPU,)))
    assert TableRow("  kubernetes.io/batch-cpu", ("2500",)) in rows
    assert rows[-1].name.startswith("  the agent keeps kubernetes.io/batch-cpu at 2500 while running pods")


def test_zones_have_a_row_each() -> None:
    zone = SimulatedZone("node-0", (BATCH_CPU, BATCH_MEMORY))
    assert TableRow("  node-0", ("2.500", "7.000")) in lending_rows(simulated_node(zones=(zone,)))


def test_a_node_that_lends_nothing_says_why() -> None:
    """With the age that counts, and that its resources are removed."""
    rows = lending_rows(simulated_node(degraded=Reason.NODE_METRICS_STALE))
    assert rows[0].name.startswith("nothing is lent: NodeMetricsStale, ")
    assert rows[0].name.endswith("(at most 15 min)")
    assert rows[-1] == TableRow("the Node's batch and mid resources are removed")


@pytest.mark.parametrize(
    ("measured", "text"),
    [
        (None, "usage not known"),
        (970.0, "usage measured 30 s earlier"),
        (1200.0, "usage measured 3 min later"),
    ],
)
def test_when_usage_was_measured(measured: float | None, text: str) -> None:
    assert measured_text(simulated_node(measured_seconds=measured)) == text


@pytest.mark.parametrize(
    ("cpu", "memory", "told"),
    [
        ("", "", ""),
        ("5 % kept", "", "5 % kept / "),
        ("5 % kept", "5 % kept", "5 % kept"),
        ("5 % kept", "7 % kept", "5 / 7 % kept"),
        ("kept 5 %", "kept 7 %", "kept 5 / 7 %"),
        ("at 5 of it", "at 7 of it", "at 5 / 7 of it"),
        ("measured", "asked for", "measured / asked for"),
        ("a a", "a a a", "a a  / a"),
    ],
)
def test_notes_of_both_resources_are_one(cpu: str, memory: str, told: str) -> None:
    """The words that they share stand once, those that differ beside each other."""
    pair = tuple(
        structs.replace(decision, value=-1000, terms=(Term("margin", -1000, note),))
        for decision, note in ((BATCH_CPU, cpu), (BATCH_MEMORY, memory))
    )
    assert lending_rows(simulated_node(reclaimable=(*pair, MID_CPU, MID_MEMORY)))[1].note == told
