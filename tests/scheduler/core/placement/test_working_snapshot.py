"""What a working snapshot counts besides its snapshot: nominations, pods put in it, and who else is there."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler_builders import node, pod

from model.pod.affinity import Affinity, HostPort, PodTerm
from model.selector import Operator, Requirement, Selector
from model.workload import WorkloadId
from scheduler.core.ledger.ledger import Charge, Ledger, charge_of
from scheduler.core.ledger.live_pod_index import LivePodIndex
from scheduler.core.placement.working_snapshot import Assignment, Background, Nominated, Requester, WorkingSnapshot
from scheduler.core.snapshot.podclass import PodTraits, class_of, pod_traits_of
from scheduler.core.snapshot.snapshot import ClusterSnapshot, take

ZONES = {name: node(name, labels={"zone": zone}) for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b"))}
SMALL = class_of(pod())
APP = Selector((Requirement("app", Operator.IN, ("db",)),))
LONER: dict[str, Any] = {"labels": {"app": "db"}, "affinity": Affinity(anti_pods=(PodTerm("zone", APP),))}


def assignment(name: str, row: int, **more: Any) -> Assignment:
    item = pod(name, **more)
    return Assignment(item.uid, row, class_of(item), pod_traits_of(item))


def cluster(ledger: Ledger | None = None) -> ClusterSnapshot:
    return take(ZONES, ledger.nodes if ledger else {})


@pytest.mark.parametrize(
    ("subject", "priority", "room"),
    [
        (WorkloadId.pod("default/other"), 5, [1, 2, 2]),
        (WorkloadId.pod("default/other"), 4, [1, 2, 2]),
        (WorkloadId.pod("default/other"), 6, [2, 2, 2]),
        (WorkloadId.gang("default/g"), 5, [2, 2, 2]),
    ],
)
def test_nominations_of_equal_or_higher_priority_count(subject: WorkloadId, priority: int, room: list[int]) -> None:
    """Not one's own, and not those of lower priority."""
    working = WorkingSnapshot(cluster(), [Nominated(WorkloadId.gang("default/g"), 5, (assignment("w", 0),))])
    assert working.room(SMALL, PodTraits(), Requester(subject, priority)).tolist() == room


@pytest.mark.parametrize(("spares", "online", "room"), [(True, True, 2), (True, False, 1), (False, True, 1)])
def test_what_spares_online_workloads_stands_in_the_way_of_others_alone(spares: bool, online: bool, room: int) -> None:
    held = Nominated(WorkloadId.gang("default/g"), 5, (assignment("w", 0),), spares)
    asking = Requester(WorkloadId.pod("default/other"), 0, online)
    assert WorkingSnapshot(cluster(), [held]).room(SMALL, PodTraits(), asking).tolist() == [room, 2, 2]


def test_room_is_kept_from_the_moment_it_is_nominated() -> None:
    """Also in the middle of a turn, and not any more once it is dropped."""
    working, asking = WorkingSnapshot(cluster()), Requester(WorkloadId.pod("default/other"), 0)
    for assignments, room in (
        ((assignment("w", 0),), [1, 2, 2]),
        ((assignment("w", 1), assignment("v", 1)), [2, 0, 2]),
        ((), [2, 2, 2]),
    ):
        working.nominate([Nominated(WorkloadId.gang("default/g"), 5, assignments)])
        assert working.room(SMALL, PodTraits(), asking).tolist() == room
        assert working.report(SMALL, PodTraits(), asking).feasible == sum(number > 0 for number in room)


def test_a_pod_that_asks_for_everything_that_nodes_list_is_told_what_is_short() -> None:
    """Forty resources have a million million combinations, of which each node is one."""
    amounts = {f"example.com/{index:02}": 1 for index in range(40)}
    nodes = {"n1": node("n1", amounts=amounts), "n2": node("n2", amounts={**amounts, "example.com/07": 2})}
    asking = class_of(pod(requests={**amounts, "example.com/07": 2, "example.com/39": 2}))
    told = WorkingSnapshot(take(nodes, Ledger().nodes)).report(
        asking, PodTraits(), Requester(WorkloadId.pod("default/p"), 0)
    )
    lacking = "Insufficient example.com/39"
    assert told.refused == ((("Insufficient example.com/07", lacking), 1), ((lacking,), 1))


def test_a_nominated_pods_terms_count_with_it() -> None:
    """Who asks with a lower priority stays out of the zone that one nominated keeps for itself; a higher one does not."""
    working = WorkingSnapshot(cluster(), [Nominated(WorkloadId.gang("default/g"), 5, (assignment("w", 0, **LONER),))])
    like = pod("x", labels={"app": "db"})
    for priority, room in ((5, [0, 0, 2]), (6, [2, 2, 2])):
        assert (
            working.room(class_of(like), pod_traits_of(like), Requester(WorkloadId.pod("default/x"), priority)).tolist()
            == room
        )


def test_a_port_is_taken_once() -> None:
    """One more of a node, however much room there is; none where one sits."""
    with_port = pod("x", host_ports=(HostPort(80),))
    working, asking = WorkingSnapshot(cluster()), Requester(WorkloadId.pod("default/x"), 0)
    assert working.room(class_of(with_port), pod_traits_of(with_port), asking).tolist() == [1, 1, 1]
    working.put([Assignment("u", 1, class_of(with_port), pod_traits_of(with_port))])
    assert working.room(class_of(with_port), pod_traits_of(with_port), asking).tolist() == [1, 0, 1]
    assert working.report(class_of(with_port), pod_traits_of(with_port), asking).refused == (
        (("node(s) didn't have free ports for the requested pod ports",), 1),
    )


def room_for_db(working: WorkingSnapshot) -> list[int]:
    like = pod("x", labels={"app": "db"})
    return working.room(class_of(like), pod_traits_of(like), Requester(WorkloadId.pod("default/x"), 0)).tolist()


def charge(name: str, where: str, **more: Any) -> Charge:
    found = charge_of(pod(name, node_name=where, **more))
    assert found is not None
    return found


def test_live_index_follow_the_ledger_from_working_to_working() -> None:
    """Residents' terms count from the first working snapshot on, whether they came before or after anybody asked."""
    ledger = Ledger()
    background = Background(LivePodIndex(ledger))
    assert room_for_db(WorkingSnapshot(cluster(ledger), background=background)) == [2, 2, 2]
    ledger.confirm(charge("a", "n1", **LONER))
    working = WorkingSnapshot(cluster(ledger), background=background)
    assert room_for_db(working) == [0, 0, 2]
    ledger.confirm(charge("b", "n3", **LONER))
    assert room_for_db(working) == [0, 0, 2]
    assert room_for_db(WorkingSnapshot(cluster(ledger), background=background)) == [0, 0, 0]
    ledger.forget("uid-a")
    assert room_for_db(WorkingSnapshot(cluster(ledger), background=background)) == [2, 2, 0]


def test_who_is_assumed_and_put_counts_once() -> None:
    """Whether the ledger learns of it before or after the working snapshot, and gone means gone."""
    ledger = Ledger()
    background = Background(LivePodIndex(ledger))
    working = WorkingSnapshot(cluster(ledger), background=background)
    member = assignment("a", 0, labels={"app": "db"})
    working.put([member])
    ledger.assume([Charge(member.uid, "n1", member.pod_class, member.pod_traits)])
    assert working.pod_index.counts(APP, frozenset({"default"})).tolist() == [1, 0, 0]
    later = assignment("b", 2, labels={"app": "db"})
    working.put([later])
    ledger.assume([Charge(later.uid, "n3", later.pod_class, later.pod_traits)])
    assert working.pod_index.counts(APP, frozenset({"default"})).tolist() == [1, 0, 1]
    following = WorkingSnapshot(cluster(ledger), background=background, following=working)
    assert following.pod_index.counts(APP, frozenset({"default"})).tolist() == [1, 0, 1]
    following.remove([later])
    assert following.pod_index.counts(APP, frozenset({"default"})).tolist() == [1, 0, 0]


def test_residents_keep_their_places_when_nodes_come_and_go() -> None:
    """Rows are numbered again; pods on a node that was not known count once it is."""
    ledger = Ledger()
    background = Background(LivePodIndex(ledger))
    ledger.confirm(charge("a", "n3", **LONER))
    ledger.confirm(charge("b", "n0", labels={"app": "db"}))
    seen = WorkingSnapshot(cluster(ledger), background=background).pod_index.counts(APP, None)
    assert seen.tolist() == [0, 0, 1]
    ledger.forget("uid-a")
    ledger.confirm(charge("c", "n2", **LONER))
    nodes = {"n0": node("n0"), "n2": ZONES["n2"], "n3": ZONES["n3"]}
    working = WorkingSnapshot(take(nodes, ledger.nodes), background=background)
    assert working.pod_index.counts(APP, None).tolist() == [1, 1, 0]
