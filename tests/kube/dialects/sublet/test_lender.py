"""What a Node says of lending: the lent resources it has any of, and the agent's heartbeat."""

from __future__ import annotations

from typing import Any

import pytest

from kube import objects
from kube.dialects.sublet.lender import lender
from model.lender import Lender

CPU, MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
READY = objects.Condition("ColocationReady", "True", "LendingActive", last_heartbeat_time="1970-01-01T00:01:40Z")


def node(*conditions: objects.Condition, capacity: Any = None, allocatable: Any = None) -> objects.Node:
    status = objects.NodeStatus(capacity, allocatable, list(conditions))
    return objects.Node(objects.Metadata("n", resource_version="7", labels={"a": "b"}), status=status)


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        (
            "both, and what else a node has",
            node(READY, capacity={"cpu": "4", CPU: "1000", MEMORY: "1Gi"}, allocatable={CPU: 1000, MEMORY: "1Gi"}),
            Lender("n", "7", (CPU, MEMORY), 100.0, True, {"a": "b"}),
        ),
        (
            "one that is 0 is not offered, one in capacity alone is",
            node(READY, capacity={CPU: "0", "kubernetes.io/mid-cpu": "5"}, allocatable={CPU: 0}),
            Lender("n", "7", ("kubernetes.io/mid-cpu",), 100.0, True, {"a": "b"}),
        ),
        (
            "no agent ever spoke",
            node(objects.Condition("Ready", "True"), allocatable={CPU: "1"}),
            Lender("n", "7", (CPU,), None, False, {"a": "b"}),
        ),
        (
            "a heartbeat that cannot be read is as old as can be",
            node(objects.Condition("ColocationReady", "False", last_heartbeat_time="yesterday")),
            Lender("n", "7", (), 0.0, False, {"a": "b"}),
        ),
        ("none at all", node(objects.Condition("ColocationReady")), Lender("n", "7", (), 0.0, False, {"a": "b"})),
    ],
)
def test_lender(name: str, source: objects.Node, expected: Lender) -> None:
    """See the names."""
    assert lender(source) == expected, name
