"""The one comparator, and the tournament down the tree of queues."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import msgspec
import pytest
from order_builders import ORGS, PAPER, drf, light
from queue_builders import CPU, MEMORY, books, queue
from scheduler_builders import candidate, gang, in_group, pod

from model.queue import Cell, Queue, QueueOrder
from model.workload import Workload
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queueing.order import AgeingPolicy, Ranking, Tournament, in_order
from scheduler.core.queues.tree import tree_of

NOW = 100.0


def waiting(uid: str, **changes: object) -> Candidate:
    base = candidate([pod(uid, uid=uid)])
    fields = {"uid": uid, "eligible_seconds": 10.0} | changes
    workload: Workload = msgspec.structs.replace(base.workload, **fields)
    return msgspec.structs.replace(base, workload=workload)


SHARES = {"default": Fraction(1, 2), "small": Fraction(1, 3)}
CASES: dict[str, tuple[Candidate, Candidate]] = {
    "past its deadline goes before a smaller share": (
        waiting("b", deadline_seconds=99.0),
        waiting("a", queue="small", priority=9),
    ),
    "a deadline to come does not count": (waiting("a", priority=1), waiting("b", deadline_seconds=101.0)),
    "smaller share goes before priority": (waiting("b", queue="small"), waiting("a", priority=9999)),
    "priority goes before age": (waiting("b", priority=1, eligible_seconds=50.0), waiting("a")),
    "older first": (waiting("b", eligible_seconds=1.0), waiting("a")),
    "uid last": (waiting("a"), waiting("b")),
}


@pytest.mark.parametrize("name", CASES)
def test_who_is_first(name: str) -> None:
    """The first criterion that differs decides, whatever the order of arrival."""
    first, second = CASES[name]
    for given in ([first, second], [second, first]):
        assert [item.workload.uid for item in in_order(given, SHARES.__getitem__, NOW)] == [
            first.workload.uid,
            second.workload.uid,
        ]


def test_share_is_read_again() -> None:
    """Placing a head raises its queue's share, so the other queue's head is next."""
    shares = {"a": Fraction(0), "b": Fraction(1, 10)}
    heads = [waiting(f"{queue}{i}", queue=queue) for queue in "ab" for i in range(2)]
    seen = []
    for head in in_order(heads, shares.__getitem__, NOW):
        seen.append(head.workload.uid)
        shares[head.workload.queue] += Fraction(2, 10)
    assert seen == ["a0", "b0", "a1", "b1"]


def order(given: list[Candidate], ranking: Ranking) -> list[str]:
    return [item.workload.uid for item in in_order(given, lambda queue: Fraction(0), ranking)]


AGED: dict[str, tuple[float, float, list[str]]] = {
    "points close a small gap": (3600.0, 60.0, ["old", "new"]),
    "not a large one": (60.0, 60.0, ["new", "old"]),
    "not beyond the most": (1e6, 101.0, ["new", "old"]),
}


@pytest.mark.parametrize("name", AGED)
def test_waiting_earns_a_place_in_the_order(name: str) -> None:
    """Volcano issues 3095 and 748: a point a minute, at most so many, so that a little priority starves nobody."""
    waited, gap, expected = AGED[name]
    given = [waiting("new", priority=int(gap), eligible_seconds=1e6), waiting("old", eligible_seconds=1e6 - waited)]
    assert order(given, Ranking(1e6, AgeingPolicy())) == expected
    assert order(given, Ranking(1e6)) == ["new", "old"]


LATE: dict[str, tuple[float, float, list[str]]] = {
    "a deadline of a second does not count at once": (1.0, 30.0, ["dear", "hasty"]),
    "but after as long as any must wait": (1.0, 600.0, ["hasty", "dear"]),
    "a longer one counts when it is over": (900.0, 899.0, ["dear", "hasty"]),
    "then": (900.0, 901.0, ["hasty", "dear"]),
}


@pytest.mark.parametrize(("wanted", "waited", "expected"), LATE.values(), ids=LATE)
def test_no_deadline_is_a_short_way_to_the_front(wanted: float, waited: float, expected: list[str]) -> None:
    """Anybody may write one of a second; it goes before other queues and priorities only once it has really waited."""
    hasty = waiting("hasty", eligible_seconds=1e6 - waited, deadline_seconds=1e6 - waited + wanted)
    given = [hasty, waiting("dear", priority=9000, eligible_seconds=1e6)]
    assert order(given, Ranking(1e6, AgeingPolicy())) == expected


def test_whose_room_is_being_freed_goes_before_its_equals() -> None:
    """Not before higher priority."""
    given = [waiting("a", eligible_seconds=1.0), waiting("b"), waiting("c", priority=1)]
    assert order(given, Ranking(NOW, nominated={given[1].subject})) == ["c", "b", "a"]


def test_who_is_bound_in_part_goes_before_its_equals() -> None:
    """However long they have waited, since it holds room that nobody uses; not before a higher band."""
    group = gang(2)
    half = candidate([pod("h1", gang=in_group(), node_name="n1"), pod("h2", gang=in_group())], group)
    late = msgspec.structs.replace(half, workload=msgspec.structs.replace(half.workload, eligible_seconds=NOW))
    given = [waiting("old", eligible_seconds=-1e6), late, waiting("band", priority=1000)]
    assert order(given, Ranking(NOW, AgeingPolicy())) == ["band", late.workload.uid, "old"]
    assert order(given, Ranking(NOW)) == ["band", late.workload.uid, "old"]


def served(given: list[Candidate], tournament: Tournament, ranking: Ranking | float = NOW) -> list[str]:
    return [item.workload.uid for item in in_order(given, tournament, ranking)]


def shares_of(**given: int) -> Callable[[str], Fraction]:
    """In hundredths; those that are not named have none."""
    return {name: Fraction(given.get(name, 0), 100) for name in (*ORGS.queues, "gone")}.__getitem__


TREE_CASES: dict[str, tuple[list[Candidate], Callable[[str], Fraction], list[str]]] = {
    "orgs are compared before their queues": (
        [light("a", "a1"), light("b", "b1")],
        shares_of(A=30, a1=1, B=20, b1=20),
        ["b", "a"],
    ),
    "then the queues of the org": (
        [light("1", "a1"), light("2", "a2"), light("3", "c")],
        shares_of(A=30, a1=20, a2=10, c=40),
        ["2", "1", "3"],
    ),
    "a late head goes first at every level": (
        [light("a", "a1"), light("b", "b2", deadline_seconds=99.0), light("c", "c", priority=9)],
        shares_of(A=1, B=90, b2=90),
        ["b", "c", "a"],
    ),
    "priority decides among equal shares alone": (
        [light("a", "a1", priority=5), light("b", "b1", priority=9), light("c", "c", priority=7)],
        shares_of(c=1),
        ["b", "a", "c"],
    ),
    "a queue that nobody wrote hangs below the root": (
        [light("a", "a1"), light("g", "gone")],
        shares_of(A=10, gone=5),
        ["g", "a"],
    ),
    "work of an inner queue is compared with its children": (
        [light("1", "a1"), light("A", "A"), light("c", "c")],
        shares_of(A=10, a1=5, c=8),
        ["c", "1", "A"],
    ),
}


@pytest.mark.parametrize("name", TREE_CASES)
def test_down_the_tree(name: str) -> None:
    """The first difference decides at each queue that has others below it, whatever the order of arrival."""
    given, share_of, expected = TREE_CASES[name]
    for candidates in (given, given[::-1]):
        assert served(candidates, Tournament(share_of, ORGS)) == expected


def test_equal_heads_go_by_the_name_of_their_queue() -> None:
    given = [light("x", name) for name in ("b1", "a2", "c", "a1")]
    found = [item.workload.queue for item in in_order(given, Tournament(shares_of(), ORGS), NOW)]
    assert found == ["a1", "a2", "b1", "c"]


def test_who_would_borrow_goes_after_those_who_would_not() -> None:
    """Whatever the shares; asked of the queue and of those above it."""
    given = [light("a", "a1"), light("b", "b1"), light("c", "c")]
    borrowing = dict.fromkeys(("A", "a1"), lambda item: item.workload.uid == "a")
    tournament = Tournament(shares_of(A=1, B=20, c=30), ORGS, borrowing)
    assert served(given, tournament) == ["b", "c", "a"]
    late = [light("a", "a1", deadline_seconds=1.0), *given[1:]]
    assert served(late, tournament) == ["a", "b", "c"]


def test_a_strict_queue_goes_by_time_alone() -> None:
    """Neither priority nor a deadline moves anybody in it; between queues its head's key counts as any other's."""
    tree = tree_of((queue("s", order=QueueOrder.STRICT_FIFO), queue("t")))
    given = [
        light("late", "s", eligible_seconds=3.0, deadline_seconds=1.0),
        light("high", "s", eligible_seconds=2.0, priority=9),
        light("first", "s", eligible_seconds=1.0),
        light("other", "t", eligible_seconds=0.0, priority=1),
    ]
    assert served(given, Tournament(lambda name: Fraction(0), tree)) == ["other", "first", "high", "late"]


@pytest.mark.parametrize("queues", [("a1",), ("a1", "a2", "c")])
def test_a_stopped_queue_yields_no_more(queues: tuple[str, ...]) -> None:
    """From the step on in which the cycle says so; the others go on."""
    given = [light(f"{name}{at}", name, eligible_seconds=float(at)) for name in queues for at in range(3)]
    tournament = Tournament(shares_of(), ORGS)
    seen = []
    for item in in_order(given, tournament, NOW):
        seen.append(item.workload.uid)
        if seen[-1] == "a11":
            tournament.stopped.add("a1")
    assert [uid for uid in seen if uid.startswith("a1")] == ["a10", "a11"]
    assert len(seen) == len(given) - 1
    assert [uid for uid in served(given, tournament) if uid.startswith("a1")] == []


DRF: dict[str, tuple[list[Queue], dict[Cell, int], dict[str, dict[Cell, int]], dict[str, int]]] = {
    "the paper: 9 CPUs and 18 GB": ([queue("a"), queue("b")], {CPU: 9, MEMORY: 18}, PAPER, {"a": 3, "b": 2}),
    "weights 2:1": ([queue("a", weight=2), queue("b")], {CPU: 9, MEMORY: 18}, PAPER, {"a": 4, "b": 1}),
    "the same in bytes": (
        [queue("a"), queue("b")],
        {CPU: 9, MEMORY: 18 << 30},
        {"a": {CPU: 1, MEMORY: 4 << 30}, "b": {CPU: 3, MEMORY: 1 << 30}},
        {"a": 3, "b": 2},
    ),
    "orgs of one and of two": (
        [queue("A"), queue("a", "A"), queue("B"), queue("b", "B"), queue("c", "B")],
        {CPU: 24},
        {"a": {CPU: 1}, "b": {CPU: 1}, "c": {CPU: 1}},
        {"a": 12, "b": 6, "c": 6},
    ),
    "10/30/20": (
        [queue("sci"), queue("eng", weight=5), queue("dev", "eng", weight=3), queue("prod", "eng", weight=2)],
        {CPU: 60},
        {"sci": {CPU: 1}, "dev": {CPU: 1}, "prod": {CPU: 1}},
        {"sci": 10, "dev": 30, "prod": 20},
    ),
    "one that does not fit stops nobody": (
        [queue("a"), queue("b")],
        {CPU: 10},
        {"a": {CPU: 11}, "b": {CPU: 1}},
        {"b": 10},
    ),
}


@pytest.mark.parametrize("name", DRF)
def test_progressive_filling(name: str) -> None:
    """Weighted DRF falls out of the order: worked examples (S98, S100)."""
    queues, capacity, needs, expected = DRF[name]
    assert drf(books(queues, capacity), needs) == expected


LIES = {
    "more memory": {CPU: 1, MEMORY: 6},
    "more CPU": {CPU: 2, MEMORY: 4},
    "both": {CPU: 2, MEMORY: 8},
    "as the other": {CPU: 3, MEMORY: 4},
}


@pytest.mark.parametrize("name", LIES)
def test_asking_for_more_than_needed_gives_no_more_tasks(name: str) -> None:
    """DRF's strategy-proofness on the paper's case: each task of the lie is of use once at most."""
    capacity = {CPU: 9, MEMORY: 18}
    honest = drf(books([queue("a"), queue("b")], capacity), PAPER)
    lied = drf(books([queue("a"), queue("b")], capacity), PAPER | {"a": LIES[name]})
    assert lied["a"] <= honest["a"]
