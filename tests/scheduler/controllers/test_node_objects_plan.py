"""Which of a Node's objects are written: what is missing, and what is ours and differs."""

from __future__ import annotations

from typing import Any

import pytest

from kube import objects
from kube.dialects.koordinator.nodeobjects import NodeDocuments, node_metric_spec, node_slo_spec
from scheduler.controllers.node_objects_plan import (
    MANAGED_BY,
    NodeFacts,
    ObjectWrite,
    Present,
    node_facts,
    plan,
    present,
)

NODE = NodeFacts("node-uid", {}, "")
DOCUMENTS = NodeDocuments()
METRIC, SLO = node_metric_spec(DOCUMENTS, {}, None), node_slo_spec(DOCUMENTS, {})


def of(spec: Any, *, managed: bool = True) -> Present:
    return Present("uid", managed, spec)


@pytest.mark.parametrize(
    ("there", "undefined", "written"),
    [
        ({}, (), ["NodeMetric", "NodeSLO"]),
        ({"NodeMetric": of(METRIC), "NodeSLO": of(SLO)}, (), []),
        ({"NodeMetric": of({"old": 1}), "NodeSLO": of(SLO)}, (), ["NodeMetric"]),
        ({"NodeMetric": of(METRIC), "NodeSLO": of({"by": "hand"}, managed=False)}, (), []),
        ({}, ("NodeMetric",), ["NodeSLO"]),
    ],
)
def test_plan(there: dict[str, Present], undefined: tuple[str, ...], written: list[str]) -> None:
    """What somebody else made is left alone, and so is a kind that has no definition for now."""
    assert [write.kind for write in plan("n1", NODE, there, DOCUMENTS, undefined)] == written


def test_a_new_object_ends_with_its_node_and_a_changed_one_is_the_one_that_was_seen() -> None:
    """By the owner's uid, and by a test of the object's own."""
    made = ObjectWrite("NodeSLO", "n1", "node-uid", {"a": 1}).made
    assert made["metadata"]["ownerReferences"][0]["uid"] == "node-uid" and made["metadata"]["labels"] == MANAGED_BY
    assert (made["kind"], made["spec"]) == ("NodeSLO", {"a": 1})
    test, change = ObjectWrite("NodeSLO", "n1", "node-uid", {"a": 1}, of({})).patch
    assert (test["op"], test["value"]) == ("test", "uid") and change["value"] == {"a": 1}


def test_what_is_no_news() -> None:
    """A heartbeat of the Node, and whose an object is by our label alone."""
    meta = objects.Metadata(name="n1", uid="u", labels={"a": "b"})
    assert node_facts(meta) == node_facts(objects.Metadata(name="n1", uid="u", labels={"a": "b"}, resource_version="9"))
    assert not present(meta, {}).managed
    assert present(objects.Metadata(name="n1", labels={**MANAGED_BY, "x": "y"}), {}).managed
