"""The one comparator."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest
from scheduler_builders import candidate, gang, in_group, pod

from model.workload import Workload
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queueing.order import AgeingPolicy, Ranking, Share, dominant_share, in_order

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


def test_dominant_share() -> None:
    """DRF's paper example, exactly; weights divide; a resource the cluster lacks does not count."""
    totals = {"cpu": 9, "memory": 18}
    assert dominant_share({"cpu": 3, "memory": 12}, totals) == Share(Fraction(2, 3), "memory")
    assert dominant_share({"cpu": 6, "memory": 2, "gpu": 5}, totals, weight=2) == Share(Fraction(1, 3), "cpu")
    assert dominant_share({}, totals) == Share()


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
