"""The node that lacks least, and what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scheduler_builders import node, pod, snapshot

from model.resources import BATCH_CPU
from scheduler.core.filters.nearest import Nearest, nearest
from scheduler.core.filters.obstacles import Obstacles
from scheduler.core.filters.podaffinity import AFFINITY
from scheduler.core.filters.ports import PORTS
from scheduler.core.snapshot.podclass import class_of

SHORT = f"Insufficient {BATCH_CPU}"
CASES: dict[str, tuple[list[Any], Any, dict[str, Any], Nearest | None]] = {
    "least is missing": (
        [node("a"), node("b")],
        pod(batch_cpu=800),
        {"a": {BATCH_CPU: 900}, "b": {BATCH_CPU: 400}},
        Nearest("b", ((BATCH_CPU, 200),), (SHORT,)),
    ),
    "as a share of what is asked": (
        [node("a", amounts={"memory": 1 << 40}), node("b", amounts={"memory": 1 << 40})],
        pod(requests={BATCH_CPU: 100, "memory": 1 << 40}),
        {"a": {BATCH_CPU: 950}, "b": {"memory": 100}},
        Nearest("b", (("memory", 100),), ("Insufficient memory",)),
    ),
    "several resources": (
        [node("a", pods=0, batch_cpu=500)],
        pod(batch_cpu=600),
        {},
        Nearest("a", ((BATCH_CPU, 100), ("pods", 1)), (SHORT, "Too many pods")),
    ),
    "a tie goes to the first": (
        [node("b"), node("a")],
        pod(batch_cpu=1001),
        {},
        Nearest("a", ((BATCH_CPU, 1),), (SHORT,)),
    ),
    "a node that would hold it comes before one too small": (
        [node("a", batch_cpu=490), node("b", batch_cpu=500)],
        pod(batch_cpu=500),
        {"b": {BATCH_CPU: 500}},
        Nearest("b", ((BATCH_CPU, 500),), (SHORT,)),
    ),
    "too small where all are": (
        [node("a", batch_cpu=490), node("b", batch_cpu=400)],
        pod(batch_cpu=500),
        {},
        Nearest("a", ((BATCH_CPU, 10),), (SHORT,)),
    ),
    "a resource no node has": (
        [node("a")],
        pod(requests={"nvidia.com/gpu": 2}),
        {},
        Nearest("a", (("nvidia.com/gpu", 2),), ("Insufficient nvidia.com/gpu",)),
    ),
    "out for good": ([node("a", unschedulable=True)], pod(), {}, None),
    "no node": ([], pod(), {}, None),
    "nothing is missing": ([node("a")], pod(), {}, Nearest("a")),
}


@pytest.mark.parametrize(("nodes", "wanted", "usage", "expected"), CASES.values(), ids=CASES)
def test_what_the_nearest_node_lacks(
    nodes: list[Any], wanted: Any, usage: dict[str, Any], expected: Nearest | None
) -> None:
    """Amounts on top of what is left there."""
    seen = snapshot(*nodes, usage=usage)
    assert nearest(seen, seen.free, class_of(wanted)) == expected


def test_others_count_as_a_whole_request() -> None:
    """A node short of a little is nearer than one with a taken port; one where nothing helps is none at all."""
    seen = snapshot(node("a"), node("b"), node("c"), usage={"b": {BATCH_CPU: 600}})
    obstacles = Obstacles(np.array([0, -1, 1]), (PORTS, AFFINITY), (True, False))
    found = nearest(seen, seen.free, class_of(pod()), obstacles)
    assert found == Nearest("b", ((BATCH_CPU, 100),), (SHORT,))
    busy = (np.array([False, True, False]), "busy")
    assert nearest(seen, seen.free, class_of(pod()), obstacles, [busy]) == Nearest("a", (), (PORTS,))
