"""What pods and PodGroups amount to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from scheduler_builders import SCHEDULER, annotated, candidate, gang, in_group, members, pod

from model.pod.affinity import Affinity, NodeTerm
from model.pod.status import PodPhase
from model.priority import PreemptionPolicy
from model.reason import Reason
from model.selector import Operator, Requirement
from model.workload import GangPhase, GangSpec, MatchPolicy, TopologyLevel, WorkloadId
from scheduler.core.gangs.assembly import Assembly, assemble, assemble_parts, part_of, roster
from scheduler.core.placement.working_snapshot import Requester

GANG = WorkloadId.gang("default/train")


def assembled(pods: list[Any], group: Any = None, assumed: tuple[str, ...] = ()) -> Assembly:
    subject = GANG if pods and pods[0].spec.gang else WorkloadId.pod("default/p1")
    return assemble(subject, roster(pods, assumed, (SCHEDULER, "volcano")), group)


HOLDS: dict[str, tuple[list[Any], Any, Reason, str]] = {
    "no PodGroup": (
        members(3),
        None,
        Reason.GANG_NOT_FOUND,
        "gang default/train: PodGroup default/train does not exist; create it, or correct the pods' label",
    ),
    "invalid PodGroup": (
        members(3),
        gang(0, problem="spec.minMember is 0; write 1"),
        Reason.GANG_INVALID,
        "gang default/train: spec.minMember is 0; write 1",
    ),
    "too few pods": (
        members(2),
        gang(3),
        Reason.GANG_WAITING_FOR_MEMBERS,
        "gang default/train: 2 of 3 members exist",
    ),
    "pods that do not count": (
        [
            *members(1),
            pod("gated", gang=in_group(), gated=True),
            pod("gone", gang=in_group(), deleting=True, node_name="n1"),
            pod("foreign", gang=in_group(), scheduler_name="default-scheduler"),
            pod("failed", gang=in_group(), phase=PodPhase.FAILED),
        ],
        gang(2),
        Reason.GANG_WAITING_FOR_MEMBERS,
        "gang default/train: 1 of 2 members exist "
        "(not counted: 1 gated, 1 of another scheduler, 1 being deleted, 1 failed)",
    ),
    "annotation without a minimum": (
        [pod(gang=annotated(problem="annotation is missing"))],
        None,
        Reason.GANG_INVALID,
        "gang default/train: annotation is missing",
    ),
    "two schedulers of ours": (
        [*members(1), pod("x", gang=in_group(), scheduler_name="volcano")],
        gang(2),
        Reason.GANG_INVALID,
        "gang default/train: its pods name 2 schedulers (koord-scheduler, volcano); give all of them one",
    ),
    "only waiting members count, and too few wait": (
        [*members(1), pod("old", gang=in_group(), node_name="n1")],
        gang(2, match=MatchPolicy.ONLY_WAITING),
        Reason.GANG_WAITING_FOR_MEMBERS,
        "gang default/train: 1 of 2 members wait, and by match policy only-waiting no others count",
    ),
    "constraint not supported": (
        [pod(unsupported=("spec.affinity.podAffinity", "spec.resourceClaims"))],
        None,
        Reason.CONSTRAINT_NOT_SUPPORTED,
        "pod default/p1 uses spec.affinity.podAffinity, spec.resourceClaims; "
        "remove it or give the pod to another scheduler",
    ),
}


@pytest.mark.parametrize("name", HOLDS)
def test_holds(name: str) -> None:
    """What cannot be tried says why, for each pod that waits."""
    pods, group, reason, detail = HOLDS[name]
    result = assembled(pods, group)
    assert result.candidate is None
    assert [(hold.reason, hold.detail) for hold in result.holds] == [(reason, detail)]


CANDIDATES: dict[str, tuple[list[Any], Any, tuple[str, ...], int, list[int]]] = {
    "lone pod": ([pod()], None, (), 1, [1]),
    "whole gang": (members(3), gang(3), (), 3, [3]),
    "members above the minimum": (members(5), gang(3), (), 3, [5]),
    "two sizes make two pod sets": ([*members(2), pod("big", batch_cpu=900, gang=in_group())], gang(3), (), 3, [1, 2]),
    "bound members count": ([*members(2), pod("old", gang=in_group(), node_name="n1")], gang(3), (), 2, [2]),
    "assumed members count": (members(3), gang(3), ("uid-w0",), 2, [2]),
    "succeeded members count": (
        [*members(1), pod("done", gang=in_group(), node_name="n1", phase=PodPhase.SUCCEEDED)],
        gang(2),
        (),
        1,
        [1],
    ),
    "minimum met: the rest is elastic": (
        [*members(2), pod("old", gang=in_group(), node_name="n1")],
        gang(1),
        (),
        0,
        [2],
    ),
    "only waiting members count": (
        [*members(2), pod("old", gang=in_group(), node_name="n1")],
        gang(2, match=MatchPolicy.ONLY_WAITING),
        (),
        2,
        [2],
    ),
    "waiting and running members count": (
        [*members(2), pod("old", gang=in_group(), node_name="n1")],
        gang(3, match=MatchPolicy.WAITING_AND_RUNNING),
        (),
        2,
        [2],
    ),
    "replacement of a failed member": (
        [*members(1), pod("bad", gang=in_group(), phase=PodPhase.FAILED), pod("ok", gang=in_group(), node_name="n1")],
        gang(2),
        (),
        1,
        [1],
    ),
}


@pytest.mark.parametrize("name", CANDIDATES)
def test_candidates(name: str) -> None:
    """How many members are needed at once, and how many wait in each pod set."""
    pods, group, assumed, needed, counts = CANDIDATES[name]
    result = assembled(pods, group, assumed).candidate
    assert result is not None
    assert (result.needed, [pods.count for pods in result.workload.pod_sets]) == (needed, counts)


def test_first_annotation_pod_defines_the_gang() -> None:
    """The oldest pod's annotations count, then the first name; later pods' values are ignored."""
    young = pod("a", gang=annotated(minimum=5), created_seconds=9.0)
    old = [pod(name, gang=annotated(minimum=number), created_seconds=1.0) for name, number in (("c", 9), ("b", 2))]
    result = assembled([young, *old]).candidate
    assert result is not None
    assert result.workload.min_total == 2


def test_eligible_when_the_minimum_was_complete() -> None:
    """A gang's place in the queue dates from the pod that completed its minimum; its priority is its highest."""
    result = assembled([*members(2), pod("z", gang=in_group(), created_seconds=50.0, priority=7)], gang(3)).candidate
    assert result is not None
    assert (result.workload.eligible_seconds, result.workload.priority) == (50.0, 7)


def test_a_gang_that_waits_no_longer_has_a_deadline() -> None:
    """So long after its minimum was complete: a restart begins anew."""
    patient, other = (assembled(members(3), gang(2, wait_seconds=wait)).candidate for wait in (60.0, 0.0))
    assert patient is not None and patient.workload.deadline_seconds == patient.workload.eligible_seconds + 60.0 == 61.0
    assert other is not None and other.workload.deadline_seconds is None


def test_unsupported_member_leaves_the_others_alone() -> None:
    """A member with a constraint we do not know is told so itself; the gang goes on without it."""
    result = assembled([*members(2), pod("x", gang=in_group(), unsupported=("spec.resourceClaims",))], gang(2))
    assert result.candidate is not None
    assert [hold.subject for hold in result.holds] == [WorkloadId.pod("default/x")]


def test_nothing_waits() -> None:
    """A gang whose pods all have nodes amounts to nothing."""
    assert assembled([pod(gang=in_group(), node_name="n1")], gang(1)) == Assembly()
    assert GangSpec(0).min_member == 0


def test_one_bound_pod_does_not_satisfy_a_gang() -> None:
    """A restart in the middle of binding finds one member bound: the others still go together."""
    result = assembled([*members(2), pod("old", gang=in_group(), node_name="n1", phase=PodPhase.RUNNING)], gang(3))
    assert result.candidate is not None
    assert result.candidate.workload.gangs == (("default/train", 2),)


ONCE: dict[str, tuple[GangPhase, bool, MatchPolicy, int | None]] = {
    "its status says it ran": (GangPhase.RUNNING, False, MatchPolicy.ONCE_SATISFIED, 0),
    "its status says it was bound whole": (GangPhase.SCHEDULED, False, MatchPolicy.ONCE_SATISFIED, 0),
    "it is remembered": (GangPhase.SCHEDULING, True, MatchPolicy.ONCE_SATISFIED, 0),
    "nothing says so": (GangPhase.SCHEDULING, False, MatchPolicy.ONCE_SATISFIED, None),
    "another policy does not ask": (GangPhase.RUNNING, True, MatchPolicy.WAITING_AND_RUNNING, None),
}


@pytest.mark.parametrize("name", ONCE)
def test_a_replacement_is_placed_alone_once_satisfied(name: str) -> None:
    """Two of three members are lost and one is replaced: placed alone if the minimum was met once, else held."""
    phase, ran, match, needed = ONCE[name]
    group = msgspec.structs.replace(gang(3, match=match), phase=phase)
    pods = roster([*members(1), pod("old", gang=in_group(), node_name="n1")], (), (SCHEDULER,))
    result = assemble_parts(GANG, [part_of("default/train", pods, group, ran=ran)])
    assert (result.candidate.needed if result.candidate else None) == needed


def test_completed_members_let_a_replacement_in() -> None:
    """Kubernetes issue 142330: two indexes are through, the third is replaced: nothing else is waited for."""
    done = [pod(f"d{i}", gang=in_group(), phase=PodPhase.SUCCEEDED) for i in range(2)]
    for match in (MatchPolicy.ONCE_SATISFIED, MatchPolicy.WAITING_AND_RUNNING):
        result = assembled([*members(1), *done], gang(3, match=match)).candidate
        assert result is not None
        assert result.needed == 1


POLICIES: dict[str, tuple[PreemptionPolicy | None, tuple[PreemptionPolicy, ...], PreemptionPolicy]] = {
    "one Never member": (None, (PreemptionPolicy.LOWER, PreemptionPolicy.NEVER), PreemptionPolicy.NEVER),
    "the gang says Never": (PreemptionPolicy.NEVER, (PreemptionPolicy.ALWAYS,) * 2, PreemptionPolicy.NEVER),
    "not all say Always": (None, (PreemptionPolicy.ALWAYS, PreemptionPolicy.LOWER), PreemptionPolicy.LOWER),
    "all say Always": (PreemptionPolicy.ALWAYS, (PreemptionPolicy.ALWAYS,) * 2, PreemptionPolicy.ALWAYS),
}


@pytest.mark.parametrize("name", POLICIES)
def test_most_restrictive_preemption_policy(name: str) -> None:
    """The gang's own and that of every waiting member; members that are placed have no say."""
    own, policies, expected = POLICIES[name]
    pods = [pod(f"w{i}", gang=in_group(), preemption_policy=policy) for i, policy in enumerate(policies)]
    placed = pod("old", gang=in_group(), node_name="n1", preemption_policy=PreemptionPolicy.NEVER)
    result = assembled([*pods, placed], gang(2, preemption_policy=own)).candidate
    assert result is not None
    assert result.workload.preemption_policy is expected


@pytest.mark.parametrize(("below_prod", "online"), [((), True), ((True, True), False), ((False, True), False)])
def test_a_workload_is_online_where_none_of_its_waiting_pods_is_of_a_band_below(
    below_prod: tuple[bool, ...], online: bool
) -> None:
    pods = [pod(f"w{i}", gang=in_group(), below_prod=below) for i, below in enumerate(below_prod or (False, False))]
    result = assembled(pods, gang(2)).candidate
    assert result is not None and result.requester.online is online
    (alone,) = (assembled([pod("one", below_prod=not online)]).candidate,)
    assert alone is not None and alone.requester.online is online


def test_what_a_candidate_says_of_itself() -> None:
    """Its standing by the gang's own priority, its profile, its traits by pod, members by rank before age."""
    rack = (TopologyLevel("rack", required=True),)
    pods = [pod(f"w{i}", gang=in_group(), rank=2 - i, priority=7, labels={"index": str(i)}) for i in range(3)]
    result = assembled(pods, gang(3, priority=5, topology=rack)).candidate
    assert result is not None
    assert result.requester == Requester(GANG, 5, online=True)
    assert result.profile == SCHEDULER
    assert result.uids == ("uid-w2", "uid-w1", "uid-w0")
    assert [dict(pod_traits.labels)["index"] for pod_traits in result.member_traits[0]] == ["2", "1", "0"]
    assert result.workload.topology == rack


def test_thousands_of_terms_about_nodes_count_as_attempts() -> None:
    """A few count for nothing beside the pod itself."""
    terms = tuple(NodeTerm(names=(Requirement("metadata.name", Operator.IN, (f"n{i}",)),)) for i in range(640))
    lone = [candidate([pod(affinity=Affinity(nodes=terms[:number]))]).asks for number in (1, 640)]
    assert lone == [1, 21]
