"""The cluster as arrays."""

from __future__ import annotations

import pytest
from scheduler_builders import node, pod, snapshot

from model.resources import BATCH_CPU, ResourceVector
from scheduler.core.ledger.ledger import Charge, Ledger
from scheduler.core.snapshot.podclass import class_of
from scheduler.core.snapshot.snapshot import RelatedObjects, SnapshotContext, take


def test_rows_and_columns() -> None:
    """Rows by node name, columns by resource; what a node does not list is 0 there."""
    cluster = snapshot(node("b", amounts={"cpu": 4}), node("a", pods=5), usage={"a": {"pods": 2}})
    assert (cluster.names, cluster.resources) == (("a", "b"), ("cpu", BATCH_CPU, "pods"))
    assert cluster.allocatable.tolist() == [[0, 1000, 5], [4, 1000, 110]]
    assert cluster.free.tolist() == [[0, 1000, 3], [4, 1000, 110]]
    assert cluster.totals == {"cpu": 4, BATCH_CPU: 2000, "pods": 115}
    with pytest.raises(ValueError, match="read-only"):
        cluster.allocatable[0, 0] = 1


def test_totals_are_exact_beyond_int64() -> None:
    """Sums of huge amounts do not wrap."""
    cluster = snapshot(*(node(f"n{i}", amounts={"memory": 1 << 60}) for i in range(20)))
    assert cluster.totals["memory"] == 20 << 60


def test_changed_rows_alone_are_read_again() -> None:
    """A snapshot taken over from the last equals one built again, and the last one keeps its values."""
    nodes = {"a": node("a"), "b": node("b")}
    first = take(nodes, {})
    nodes["b"] = node("b", batch_cpu=7)
    second = take(nodes, {"b": {BATCH_CPU: 3}}, first, {"b"})
    fresh = take(nodes, {"b": {BATCH_CPU: 3}})
    assert second.traits is first.traits
    assert (second.allocatable.tolist(), second.requested.tolist()) == (
        fresh.allocatable.tolist(),
        fresh.requested.tolist(),
    )
    assert first.allocatable.tolist() == [[1000, 110], [1000, 110]]
    assert take(nodes, {}, second) is second


def test_closing_a_node_changes_what_filters_read() -> None:
    """A node that is closed, and opened again, is seen so without any amount having changed."""
    nodes = {"a": node("a"), "b": node("b")}
    first = take(nodes, {})
    closed = take(nodes, {}, first, {"b"}, SnapshotContext({"b"}))
    again = take(nodes, {}, closed, {"b"})
    assert [item.traits.closed.tolist() for item in (first, closed, again)] == [
        [False, False],
        [False, True],
        [False, False],
    ]


@pytest.mark.parametrize("after", [node("b", labels={"x": "y"}), node("b", amounts={"cpu": 1}), None])
def test_anything_else_builds_again(after: object) -> None:
    """New traits, a new resource or a lost node change the shape."""
    nodes = {"a": node("a"), "b": node("b")}
    first = take(nodes, {})
    changed = {"a": nodes["a"]} | ({"b": after} if after else {})
    second = take(changed, {}, first, {"b"})
    assert second.traits is not first.traits
    assert second.names == tuple(sorted(changed))


def test_use_is_read_from_the_ledgers_table() -> None:
    """Whatever changed there, without being told which node; the same snapshot where nothing did."""
    nodes = {"a": node("a", amounts={"cpu": 1000}), "b": node("b", amounts={"cpu": 1000})}
    ledger = Ledger()
    first = take(nodes, ledger.nodes)
    default = class_of(pod(requests={"cpu": 0, "pods": 1}, scored=ResourceVector({"cpu": 100})))
    ledger.assume([Charge("u", "b", default), Charge("v", "gone", default)])
    second = take(nodes, ledger.nodes, first)
    assert second.requested.tolist() == [[0, 0, 0], [0, 0, 1]]
    assert second.scored.tolist() == [[0, 0, 0], [100, 0, 1]]
    assert take(nodes, ledger.nodes, second) is second
    nodes["b"] = node("b", amounts={"cpu": 7})
    third = take(nodes, ledger.nodes, second, {"b"})
    assert (third.free.tolist(), third.traits) == ([[1000, 1000, 110], [7, 1000, 109]], first.traits)
    nodes["gone"] = node("gone")
    assert take(nodes, ledger.nodes, third, {"gone"}).requested.tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 1]]


def test_other_related_are_other_traits() -> None:
    """Claims, volumes and namespaces are read by filters, whose answers are remembered."""
    nodes = {"a": node("a")}
    first = take(nodes, {})
    other = SnapshotContext(related=RelatedObjects(namespaces={"x": {}}))
    second = take(nodes, {}, first, (), other)
    assert second.traits.related.namespaces == {"x": {}}
    assert take(nodes, {}, second, (), other) is second
