"""Slots of charged pods: taken, left, and taken again by others; arrays say what the charges say."""

from __future__ import annotations

from scheduler_builders import in_group, node, pod

from model.workload import WorkloadId
from scheduler.core.ledger.charge import Charge, charge_of
from scheduler.core.ledger.pod_table import Slots
from scheduler.core.ledger.use_table import UseTable
from scheduler.core.snapshot.snapshot import ClusterSnapshot, take

NODES = {name: node(name) for name in ("n1", "n2")}


def charged(name: str, on: str = "n1", **more: object) -> Charge:
    found = charge_of(pod(name, node_name=on, **more))
    assert found is not None
    return found


def filled(*charges: Charge) -> Slots:
    slots = Slots()
    slots.put_all(charges)
    return slots


def seen(table: UseTable) -> ClusterSnapshot:
    return take(NODES, table)


def test_put_get_and_pop() -> None:
    """By uid; who left is not there any more, and leaving twice is nothing."""
    one, two = charged("a"), charged("b")
    slots = filled(one, two)
    assert (len(slots), slots.get("uid-a"), slots.get("uid-x")) == (2, one, None)
    assert slots.any_of(["uid-x", "uid-b"]) and not slots.any_of(["uid-x"])
    assert slots.pop("uid-a") is one
    assert slots.pop("uid-a") is None
    assert (len(slots), slots.get("uid-a"), list(slots.charges())) == (1, None, [two])


def test_a_slot_that_was_left_is_taken_again() -> None:
    """The arrays stay as long, and tell of the newcomer."""
    table = UseTable()
    slots = filled(charged("a", "n1"), charged("b", "n2"))
    slots.residents(seen(table), table)
    slots.pop("uid-a")
    left = slots.residents(seen(table), table)
    assert (left.rows.tolist(), left.pods[0]) == ([-1, 1], None)
    slots.put_all([charged("c", "n2", priority=9), charged("d", "n1")])
    found = slots.residents(seen(table), table)
    assert found.slot_of == {"uid-b": 1, "uid-c": 0, "uid-d": 2}
    assert (found.rows.tolist(), found.priorities.tolist()) == ([1, 1, 0], [9, 0, 0])


def test_homes_of_a_job() -> None:
    """Nodes with how many of its pods, none of who left and none of other jobs."""
    table, own = UseTable(), WorkloadId.gang("default/g")
    members = [
        charged(name, on, gang=in_group("g")) for name, on in (("a", "n1"), ("b", "n2"), ("c", "n2"), ("d", "n9"))
    ]
    slots = filled(*members, charged("e", "n1"))
    assert slots.members_by_node(own, table) == {"n1": 1, "n2": 2, "n9": 1}
    slots.pop("uid-b")
    assert slots.members_by_node(own, table) == {"n1": 1, "n2": 1, "n9": 1}
    assert slots.members_by_node(WorkloadId.gang("default/none"), table) == {}


def test_another_table_is_read_again() -> None:
    """Rows and classes are numbers of one table."""
    first, second = UseTable(), UseTable()
    slots = filled(charged("a", "n2", batch_cpu=300), charged("b", "n1", batch_cpu=700))
    before = slots.residents(seen(first), first)
    second.numbers_of_rows(["n1"])
    slots.refresh()
    after = slots.residents(seen(second), second)
    assert before.rows.tolist() == after.rows.tolist() == [1, 0]
    assert after.class_requests[after.classes].tolist() == before.class_requests[before.classes].tolist()


def test_numbers_of_jobs_that_are_gone_are_given_up() -> None:
    """Jobs come and go by the thousand; what is remembered of them is bounded by the pods that are there."""
    table, slots = UseTable(), Slots()
    for round_ in range(40):
        batch = [charged(f"p{round_}-{i}") for i in range(100)]
        slots.put_all(batch)
        found = slots.residents(seen(table), table)
        for each in batch:
            slots.pop(each.uid)
    assert len(found.subject_names) <= 2 * 100 + 1024 + 100
    slots.put_all([charged("last")])
    found = slots.residents(seen(table), table)
    assert found.subject_names[found.subjects[found.slot_of["uid-last"]]] == WorkloadId.pod("default/last")


def test_free_slots_have_no_numbers_of_long_ago() -> None:
    """Rules index what they keep by a slot's numbers: those of a slot that was left stay below what there is."""
    table, slots = UseTable(), Slots()
    slots.put_all([charged(f"gone{i}", queue=f"q{i}") for i in range(600)])
    slots.residents(seen(table), table)
    for i in range(600):
        slots.pop(f"uid-gone{i}")
    for turn in range(2000):
        slots.put_all([charged("p", queue=f"other{turn}"), charged(f"p{turn}")])
        found = slots.residents(seen(table), table)
        slots.pop("uid-p")
        slots.pop(f"uid-p{turn}")
    assert int(found.subjects.max()) < len(found.subject_names)
    assert int(found.queues.max()) < len(found.queue_names)


def test_names_of_queues_that_are_gone_are_given_up() -> None:
    """A pod may name another queue again and again."""
    table, slots = UseTable(), Slots()
    for turn in range(3000):
        slots.put_all([charged("p", queue=f"q{turn}")])
        found = slots.residents(seen(table), table)
        slots.pop("uid-p")
    assert len(found.queue_names) <= 2 + 1024 + 1
    assert found.queue_names[found.queues[0]] == "q2999"


def test_pods_that_went_before_anybody_looked() -> None:
    """Their slots have no queue: rules that look at all residents by their queue find none."""
    table, slots = UseTable(), filled(charged("a"), charged("b"))
    slots.pop("uid-a"), slots.pop("uid-b")
    found = slots.residents(seen(table), table)
    assert (len(found.rows), len(found.queues), list(found.queue_names)) == (0, 0, [])
