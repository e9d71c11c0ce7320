"""Simulated nodes for tests: valid by default."""

from __future__ import annotations

from typing import Any

from model.decision import Decision, Term, Unit
from model.reason import Reason
from view.simulated_node import NodeDecisions

GIB = 1 << 30


def decision(name: str, unit: Unit, *terms: tuple[str, int], **fields: Any) -> Decision:
    """Of node n; the value is the sum of the terms."""
    found = tuple(Term(term, value) for term, value in terms)
    facts = {"subject": "node/n", "reason": Reason.COMPUTED, **fields}
    return Decision(name=name, value=sum(value for _, value in terms), unit=unit, terms=found, **facts)


BATCH_CPU = decision("kubernetes.io/batch-cpu", Unit.MILLI_CPU, ("capacity", 4000), ("margin", -1500), policy="usage")
BATCH_MEMORY = decision(
    "kubernetes.io/batch-memory", Unit.BYTES, ("capacity", 8 * GIB), ("held", -GIB), policy="request"
)
MID_CPU = decision("kubernetes.io/mid-cpu", Unit.MILLI_CPU)
MID_MEMORY = decision("kubernetes.io/mid-memory", Unit.BYTES)
CEILING = decision(
    "cpu.max", Unit.MICROSECONDS, ("capacity", 400_000), ("online", -150_000), subject="cgroup/besteffort"
)


def simulated_node(**fields: Any) -> NodeDecisions:
    """A node of 4 CPUs that lends, and limits nothing."""
    facts = {
        "node": "n",
        "at_seconds": 1000.0,
        "measured_seconds": 970.0,
        "degrade_seconds": 900.0,
        "reclaimable": (BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY),
        "root": "/besteffort",
        "ceiling": CEILING,
        "period_us": 100_000,
    }
    return NodeDecisions(**(facts | fields))
