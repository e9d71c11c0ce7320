"""Node labels as columns."""

from __future__ import annotations

from scheduler.core.snapshot.node_index import NodeIndex

LABELS = ({"zone": "a"}, {"zone": "b", "rack": "1"}, {})


def test_columns_of_labels() -> None:
    """Equal values are one domain; a label that no node has, the empty one too, is in no row."""
    index = NodeIndex()
    for key, codes in (("zone", [0, 1, -1]), ("rack", [-1, 0, -1]), ("none", [-1, -1, -1]), ("", [-1, -1, -1])):
        assert index.column(LABELS, key).codes.tolist() == codes
    assert NodeIndex().column((), "zone").codes.tolist() == []


def test_labels_that_no_node_has_share_a_column() -> None:
    """A pod may name thousands of topology keys: each would hold a number a node until nodes change."""
    index = NodeIndex()
    assert index.column(LABELS, "key-1") is index.column(LABELS, "key-2")
    assert index.column(LABELS, "zone") is index.column(LABELS, "zone")
