"""Terms about other pods, as values."""

from __future__ import annotations

from model.pod.affinity import PodTerm
from model.selector import Selector


def test_the_namespaces_that_a_term_lists() -> None:
    """To be looked up; a term is the same value before and after that."""
    term, same = PodTerm("zone", Selector(), ("a", "b")), PodTerm("zone", Selector(), ("a", "b"))
    assert term.listed == {"a", "b"} and PodTerm("zone", None).listed == frozenset()
    assert term == same and hash(term) == hash(same)
