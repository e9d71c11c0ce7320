"""Rows about limits and evictions: each amount in the unit that people read, with why."""

from __future__ import annotations

from model.decision import Unit
from model.reason import Reason
from tests.view.nodes import CEILING, GIB, decision, simulated_node
from view.limit_rows import limit_rows
from view.simulated_node import SimulatedEviction, SimulatedLimit

LIMIT = SimulatedLimit("/besteffort", "cpu.max", 250_000, CEILING)
ASKED = decision("memory.max", Unit.BYTES, ("request", GIB), reason=Reason.BATCH_RESOURCES, detail="pod d/job")


def test_a_quota_is_told_in_cpus_of_its_period() -> None:
    """The limit of the root first, then a row a term."""
    rows = {row.name: row.cells for row in limit_rows(simulated_node(limits=(LIMIT,)))}
    assert rows["    cpu.max"] == ("2.500 CPUs",)
    assert rows["      capacity"] == ("+4.000 CPUs",)
    assert rows["      online"] == ("-1.500 CPUs",)


def test_what_an_untouched_node_holds_already_is_left_out() -> None:
    """Then the ceiling is told as the reason that there is none."""
    rows = limit_rows(simulated_node(limits=(SimulatedLimit("/besteffort", "cpu.max", 1, CEILING, written=False),)))
    assert rows[1].name.startswith("  no ceiling of CPU: ")
    assert "    cpu.max" not in {row.name for row in rows}


def test_limits_of_a_pod_are_one_row() -> None:
    """They follow from what it asked for; what does not says so."""
    other = SimulatedLimit("/besteffort/pod1", "cpu.max", -1, CEILING)
    rows = limit_rows(
        simulated_node(limits=(LIMIT, SimulatedLimit("/besteffort/pod1", "memory.max", GIB, ASKED), other))
    )
    names = [row.name for row in rows]
    at = names.index("  /besteffort/pod1   pod d/job")
    assert names[at + 1] == "    memory.max 1.000 GiB, cpu.max unlimited (Computed)"


def test_evictions_come_in_order_and_say_what_they_free() -> None:
    """And how long before a pod is told."""
    freed = decision("evict", Unit.BYTES, ("in use", 2 * GIB), subject="pod/d/job")
    rows = limit_rows(simulated_node(needs=(freed,), evictions=(SimulatedEviction("d/job", freed, "memory", 30.0),)))
    told = next(row for row in rows if row.name == "  d/job")
    assert told.cells == ("2.000 GiB",) and told.note.startswith("told 30 s before; ")
    assert "evictions, in order" in {row.name for row in rows}


def test_no_eviction_says_whether_a_rule_is_on() -> None:
    assert limit_rows(simulated_node())[-1].name == "no pod is evicted: no rule is on"
    need = decision("memory to free", Unit.BYTES)
    assert "no pod is evicted" in {row.name for row in limit_rows(simulated_node(needs=(need,)))}
