"""What cannot be read is told once per version, and closes its node while it is there."""

from __future__ import annotations

from kube.objects import Metadata
from scheduler.cache.refusals import Refusal, Refusals
from scheduler.ports import NamedObject

POD = NamedObject("default", "p", "u1")
META = Metadata("p", "default", "u1")


def test_told_once_per_version() -> None:
    """The same fault of the same object is told once; another text, another object or a second life is news."""
    refusals = Refusals()
    for metadata, message in ((META, "bad"), (META, "bad"), (META, "worse"), (Metadata("p", "default", "u2"), "worse")):
        refusals.add("Pod default/p", metadata, message, POD)
    assert [refusal.message for refusal in refusals.take()] == ["bad", "worse", "worse"]
    refusals.settled("Pod default/p")
    refusals.add("Pod default/p", META, "worse")
    assert refusals.take() == [Refusal("Pod", "worse")]
    assert refusals.take() == []


def test_a_node_is_closed_while_any_of_its_pods_is_unreadable() -> None:
    """Two on one node: it opens with the second."""
    refusals = Refusals()
    refusals.close("u1", "n1")
    refusals.close("u2", "n1")
    assert (refusals.reopen("u1"), refusals.closed) == ("n1", {"n1"})
    assert (refusals.reopen("u2"), refusals.closed) == ("n1", frozenset())
    assert refusals.reopen("u2") is None
