"""What follows for a workload's pods from the flavours that its queue gives it."""

from __future__ import annotations

from typing import Any

from scheduler_builders import candidate, pod

from model.flavor.assignment import FlavorMode
from model.flavor.resource_flavor import ResourceFlavor
from model.node import TaintEffect
from model.pod.spec import Toleration, TolerationOperator
from model.queue import FlavorGroup, Queue, QuotaCell
from scheduler.core.ledger.claim import Claim, ClaimedPod, ClaimKind
from scheduler.core.queues.flavors import FlavorQuestion
from scheduler.core.queues.headroom import Quota
from scheduler.core.queues.tree import tree_of
from scheduler.steps.flavor_choice import as_kept, chosen, flavors_in, requests, with_flavors

BATCH = "kubernetes.io/batch-cpu"
FLAVORS = {
    "a": ResourceFlavor("a", {"kind": "a"}, tolerations=(Toleration("gpu", TolerationOperator.EXISTS),)),
    "b": ResourceFlavor("b", {"kind": "b"}),
}


def question(a: int = 1000, b: int = 1000, **more: Any) -> FlavorQuestion:
    cells = {(name, BATCH): QuotaCell(nominal=amount, maximum=amount) for name, amount in (("a", a), ("b", b))}
    queue = Queue("team", cells=cells, flavor_groups=(FlavorGroup((BATCH,), ("a", "b")),))
    return FlavorQuestion(Quota(tree_of((queue,)), {}, {}, {}), "team", FLAVORS, **more)


def test_its_pods_go_to_nodes_of_the_flavour_and_count_to_it() -> None:
    asking = candidate([pod()])
    found = with_flavors(asking, chosen(question(), asking, [1]), FLAVORS)
    (own,) = found.classes
    assert own.tolerance.node_selector == (("kind", "a"),)
    assert own.flavors == ((BATCH, "a"),) and flavors_in(found) == {"a"}
    assert own.cells(2) == {("a", BATCH): 1000, ("", "pods"): 2}


def test_a_toleration_of_the_flavour_helps_where_pods_are_placed_alone() -> None:
    """One without an effect would tolerate evictions as well, which the pod does not."""
    asking = candidate([pod()])
    found = with_flavors(asking, chosen(question(), asking, [1]), FLAVORS)
    assert [each.effect for each in found.classes[0].tolerance.tolerations] == [TaintEffect.NO_SCHEDULE]


def test_the_next_flavour_where_the_first_has_too_little() -> None:
    asking = candidate([pod()])
    assert chosen(question(a=400), asking, [1]).pod_sets[0].flavors == {BATCH: "b"}
    assert chosen(question(a=400, b=400), asking, [1]).mode is FlavorMode.NO_FIT


def test_what_is_needed_where_not_all_fits() -> None:
    asking = candidate([pod()])
    assert [each.count for each in requests(asking, [3])] == [3]
    assert chosen(question(a=500), asking, [1]).pod_sets[0].count == 1


def test_room_that_is_kept_keeps_its_flavour() -> None:
    asking = candidate([pod()])
    other = with_flavors(asking, chosen(question(passed={"a"}), asking, [1]), FLAVORS)
    kept = ClaimedPod(asking.uids[0], "n1", other.classes[0])
    claim = Claim(ClaimKind.NOMINATED, asking.subject, 0, (kept,))
    assert flavors_in(as_kept(asking, claim, FLAVORS)) == {"b"}
