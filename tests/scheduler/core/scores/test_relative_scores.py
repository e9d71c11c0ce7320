"""Scores that compare nodes: weighted sums over the feasible ones, and nothing at all where nobody prefers anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scheduler_builders import node, pod, snapshot

from model.node import Taint, TaintEffect
from model.pod.affinity import Affinity, NodeTerm, PodTerm, PreferredNodes, PreferredPods, SpreadConstraint
from model.pod.pod import Pod
from model.selector import Operator, Requirement, Selector
from scheduler.core.scores.policy import ScorePolicy
from scheduler.core.scores.relative_scores import ScoredPod, cluster_scores
from scheduler.core.snapshot.pod_index import PodIndex
from scheduler.core.snapshot.podclass import class_of, pod_traits_of

FOO = Selector((Requirement("foo", Operator.EXISTS),))
SOFT = Taint("t", "", TaintEffect.PREFER_NO_SCHEDULE)
PLAIN = [node(name, labels={"z": name}) for name in "abc"]
TAINTED = [node("a", labels={"z": "a"}, taints=(SOFT,)), *PLAIN[1:]]
LIKES_A = Affinity(preferred_nodes=(PreferredNodes(4, NodeTerm((Requirement("z", Operator.IN, ("a",)),))),))
NEAR_FOO = Affinity(preferred_pods=(PreferredPods(3, PodTerm("z", FOO)),))
SPREAD = (SpreadConstraint("z", 1, False, FOO),)

# nodes, the pod's fields, pods labelled foo by row, feasible, settings; scores
CASES: dict[str, tuple[Any, dict[str, Any], list[int], list[int], ScorePolicy, list[int] | None]] = {
    "nothing to choose by": (PLAIN, {}, [1, 0, 0], [1, 1, 1], ScorePolicy(), None),
    "a taint to avoid": (TAINTED, {}, [0, 0, 0], [1, 1, 1], ScorePolicy(), [0, 300, 300]),
    "all feasible ones have it": (TAINTED, {}, [0, 0, 0], [1, 0, 0], ScorePolicy(), [0, 0, 0]),
    "a preferred node": (PLAIN, {"affinity": LIKES_A}, [0, 0, 0], [1, 1, 1], ScorePolicy(), [200, 0, 0]),
    "a preferred node that is out": (PLAIN, {"affinity": LIKES_A}, [0, 0, 0], [0, 1, 1], ScorePolicy(), [0, 0, 0]),
    "pods to be near": (PLAIN, {"affinity": NEAR_FOO}, [2, 1, 0], [1, 1, 1], ScorePolicy(), [200, 100, 0]),
    "spreading": (PLAIN, {"spread": SPREAD}, [2, 1, 0], [1, 1, 1], ScorePolicy(), [0, 66, 200]),
    "a taint against a preference": (TAINTED, {"affinity": LIKES_A}, [0, 0, 0], [1, 1, 1], ScorePolicy(), [200, 300, 300]),
    "weights": (TAINTED, {"affinity": LIKES_A}, [0, 0, 0], [1, 1, 1], ScorePolicy(taint_weight=1, affinity_weight=5), [500, 100, 100]),
    "a taint, switched off": (TAINTED, {}, [0, 0, 0], [1, 1, 1], ScorePolicy(taint_weight=0), None),
    "a preferred node, switched off": (PLAIN, {"affinity": LIKES_A}, [0, 0, 0], [1, 1, 1], ScorePolicy(affinity_weight=0), None),
    "pods to be near, switched off": (PLAIN, {"affinity": NEAR_FOO}, [2, 1, 0], [1, 1, 1], ScorePolicy(pod_affinity_weight=0), None),
    "spreading, switched off": (PLAIN, {"spread": SPREAD}, [2, 1, 0], [1, 1, 1], ScorePolicy(spread_weight=0), None),
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "fields", "foos", "feasible", "policy", "wanted"), CASES.values(), ids=CASES.keys())
def test_cluster(
    nodes: Any,
    fields: dict[str, Any],
    foos: list[int],
    feasible: list[int],
    policy: ScorePolicy,
    wanted: list[int] | None,
) -> None:
    pod_index = PodIndex(len(nodes))
    foo = pod_traits_of(pod("foo", labels={"foo": ""}))
    for row, count in enumerate(foos):
        pod_index.put(foo, row, count)
    one: Pod = pod(labels={"app": "one"}, **fields)
    asker = ScoredPod(class_of(one), pod_traits_of(one), policy)
    compared = cluster_scores(pod_index, snapshot(*nodes).traits, asker, np.array(feasible, bool))
    assert (None if compared is None else compared.total.tolist()) == wanted
