"""Decisions in terms that sum up, and the message every pod of a workload carries."""

from __future__ import annotations

from scheduler_builders import candidate, gang, in_group, members, node, pod, snapshot

from model.decision import Term
from model.explain import sentence
from model.reason import Reason
from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Hold
from scheduler.core.placement import explain
from scheduler.core.placement.place import Misfit, Placed, place
from scheduler.core.placement.working_snapshot import WorkingSnapshot


def test_a_node_with_several_reasons_is_one_term() -> None:
    """Terms count each node once and sum to the feasible nodes; the text names every reason."""
    cluster = snapshot(node("a", batch_cpu=1, pods=0), node("b", unschedulable=True), node("c", batch_cpu=1))
    wanted = candidate([pod()])
    outcome = place(WorkingSnapshot(cluster), wanted)
    assert isinstance(outcome, Misfit)
    verdict = explain.misfit(wanted, outcome, 5.0)
    assert verdict.decision.terms == (
        Term("total nodes", 3),
        Term("Insufficient kubernetes.io/batch-cpu", -1),
        Term("Insufficient kubernetes.io/batch-cpu and Too many pods", -1),
        Term("node(s) were unschedulable", -1),
    )
    assert verdict.message == (
        "0/3 nodes are available: 1 Too many pods, 1 node(s) were unschedulable, 2 Insufficient kubernetes.io/batch-cpu."
    )
    assert (verdict.decision.value, verdict.decision.reason, verdict.uids) == (
        0,
        Reason.INSUFFICIENT_BATCH,
        ("uid-p1",),
    )


def test_gang_texts() -> None:
    """A gang says how many members fit; one whose minimum is met says that."""
    cluster = snapshot(node(batch_cpu=1000))
    wanted = candidate(members(3), gang(3))
    outcome = place(WorkingSnapshot(cluster), wanted)
    assert isinstance(outcome, Misfit)
    short = "0/1 nodes are available: 1 Insufficient kubernetes.io/batch-cpu."
    assert explain.misfit(wanted, outcome, 0.0).message == f"gang default/train: 2 of 3 members fit; {short}"
    more = candidate([pod("big", batch_cpu=2000, gang=in_group()), pod("x", gang=in_group(), node_name="n")], gang(1))
    outcome = place(WorkingSnapshot(cluster), more)
    assert isinstance(outcome, Misfit)
    assert explain.misfit(more, outcome, 0.0).message == (
        f"gang default/train: its minimum of 1 is met, no more members fit; {short}"
    )


def test_placed_and_held() -> None:
    """A placement names its nodes; a hold was tried nowhere."""
    cluster = snapshot(node("a", batch_cpu=1000), node("b", batch_cpu=500), node("c", batch_cpu=0))
    wanted = candidate(members(3), gang(3))
    outcome = place(WorkingSnapshot(cluster), wanted)
    assert isinstance(outcome, Placed)
    decision = explain.placed(wanted, outcome.report, outcome, cluster, 7.0)
    assert (decision.value, decision.detail, decision.at_seconds) == (2, "3 of 3 waiting pods to a, b", 7.0)
    held = explain.held(Hold(WorkloadId.gang("default/train"), Reason.GANG_INVALID, "mend it", ("u",)), 3, 0.0)
    assert (held.decision.value, held.message, held.uids) == (0, "mend it", ("u",))
    assert sentence(held.decision).endswith("[total nodes 3 - not tried 3]; mend it")


def test_what_a_node_lacks_reads_as_in_a_manifest() -> None:
    """batch-cpu counts thousandths, and a resource whose name ends in cpu whatever it counts."""
    cluster = snapshot(node(batch_cpu=1000, amounts={"cpu": 1500, "memory": 0, "example.com/vcpu": 1}))
    asked = {"kubernetes.io/batch-cpu": 3000, "cpu": 4000, "memory": 4 << 30, "example.com/vcpu": 3}
    told = explain.nearest_text(WorkingSnapshot(cluster), candidate([pod(requests=asked)]))
    assert told.split(": ", 1)[1].split(", ") == [
        "2500m cpu more",
        "2 example.com/vcpu more",
        "2000 kubernetes.io/batch-cpu more",
        "4Gi memory more",
    ]
