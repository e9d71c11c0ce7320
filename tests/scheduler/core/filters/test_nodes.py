"""Node terms are alternatives, their requirements hold together, and an empty term matches nobody."""

from __future__ import annotations

import pytest
from filter_builders import cluster, within
from scheduler_builders import node

from model.pod.affinity import NodeTerm
from model.selector import Operator, Requirement
from scheduler.core.filters.nodes import matching

NODES = cluster(
    node("a", labels={"disk": "ssd", "zone": "x"}), node("b", labels={"disk": "ssd"}), node("c", labels={"zone": "x"})
)
SSD, ZONE = within("disk", "ssd"), within("zone", "x", "y")
CASES: dict[str, tuple[tuple[NodeTerm, ...], str]] = {
    "no term": ((), ""),
    "a term without requirements": ((NodeTerm(),), ""),
    "an empty term beside another": ((NodeTerm(), NodeTerm((SSD,))), "ab"),
    "one requirement": ((NodeTerm((SSD,)),), "ab"),
    "both requirements of one term": ((NodeTerm((SSD, ZONE)),), "a"),
    "two terms": ((NodeTerm((SSD,)), NodeTerm((ZONE,))), "abc"),
    "a label that is absent": ((NodeTerm((Requirement("disk", Operator.NOT_IN, ("ssd",)),)),), "c"),
    "a name": ((NodeTerm((), (within("metadata.name", "b"),)),), "b"),
    "a name and a label that it lacks": ((NodeTerm((ZONE,), (within("metadata.name", "b"),)),), ""),
}


@pytest.mark.parametrize(("terms", "wanted"), CASES.values(), ids=CASES)
def test_rows_of_terms(terms: tuple[NodeTerm, ...], wanted: str) -> None:
    """By the names of the rows."""
    found = matching(NODES.traits, terms)
    assert "".join(name for name, here in zip(NODES.names, found, strict=True) if here) == wanted
