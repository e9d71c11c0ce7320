"""Who is where: counts by row, however they came about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from filter_builders import HOST, apart, selector, term
from scheduler_builders import pod

from model.affinity import Affinity, PreferredPods
from model.selector import Operator, Requirement, Selector
from scheduler.core.picture.pod_index import Crowd
from scheduler.core.picture.pod_queries import TermKind
from scheduler.core.picture.podclass import kin_of

WEB = kin_of(pod("w", labels={"app": "web"}))
DB = kin_of(pod("d", labels={"app": "db", "tier": "x"}))
GOING = kin_of(pod("g", labels={"app": "web"}, deleting=True))
AWAY = kin_of(pod("o", namespace="other", labels={"app": "web"}))
SHY = kin_of(pod("s", affinity=apart(term(HOST, app="web"))))


def several() -> Crowd:
    crowd = Crowd(3)
    crowd.put_all((WEB, DB, GOING, AWAY), (0, 1, 0, 2))
    crowd.put(WEB, 2, 2)
    return crowd


COUNTS: dict[str, tuple[tuple[Any, ...], bool, list[int]]] = {
    "by label, anywhere": ((selector(app="web"),), False, [2, 0, 3]),
    "in a namespace": ((selector(app="web"), frozenset({"default"})), False, [2, 0, 2]),
    "in no namespace": ((selector(app="web"), frozenset()), False, [0, 0, 0]),
    "without those that go": ((selector(app="web"),), True, [1, 0, 3]),
    "several values": ((Selector((Requirement("app", Operator.IN, ("web", "db", "web")),)),), False, [2, 1, 3]),
    "by what is missing": ((Selector((Requirement("tier", Operator.DOES_NOT_EXIST),)),), False, [2, 0, 3]),
    "everybody": ((Selector(),), False, [2, 1, 3]),
    "nobody": ((None,), False, [0, 0, 0]),
}


@pytest.mark.parametrize(("about", "staying", "expected"), COUNTS.values(), ids=COUNTS)
def test_counts(about: tuple[Any, ...], staying: bool, expected: list[int]) -> None:
    """By row; and after one more came and one left, asked before or not."""
    asked, unasked = several(), several()
    assert asked.counts(*about, staying=staying).tolist() == expected
    for crowd in (asked, unasked):
        crowd.put(DB, 0)
        crowd.remove(WEB, 2)
    later = asked.counts(*about, staying=staying).tolist()
    assert later == unasked.counts(*about, staying=staying).tolist()


def test_a_copy_and_its_original_go_their_own_ways() -> None:
    """Neither sees what the other does, whatever was asked before."""
    crowd = several()
    crowd.counts(selector(app="web"))
    copy = crowd.copy()
    copy.put(WEB, 1)
    crowd.put(WEB, 0)
    again = copy.copy()
    again.remove(WEB, 2)
    found = [each.counts(selector(app="web")).tolist() for each in (crowd, copy, again)]
    assert found == [[3, 0, 3], [2, 1, 3], [2, 1, 2]]


def test_long_histories_of_copies_stay_apart() -> None:
    """Also where what they share was written long ago, and each writes much."""
    crowd = Crowd(2)
    crowd.put_all([WEB] * 3000, [0] * 3000)
    copy = crowd.copy()
    copy.put_all([WEB] * 3000, [1] * 3000)
    crowd.put_all([DB] * 3000, [1] * 3000)
    assert crowd.counts(selector(app="web")).tolist() == [3000, 0]
    assert copy.counts(selector(app="web")).tolist() == [3000, 3000]
    assert copy.counts(selector(app="db")).tolist() == [0, 0]


def test_much_coming_and_going_changes_no_count() -> None:
    """The history is written anew from time to time, and who is long gone is forgotten."""
    crowd = several()
    crowd.counts(selector(app="web"))
    passing = [kin_of(pod("p", labels={"app": "web", "index": str(i)})) for i in range(3000)]
    for kins in (passing, passing, [SHY] * 3000):
        crowd.put_all(kins, [1] * 3000)
        crowd.put_all(kins, [1] * 3000, -1)
    assert crowd.counts(selector(app="web")).tolist() == [2, 0, 3]
    assert crowd.counts(selector(app="db")).tolist() == [0, 1, 0]
    crowd.put(passing[0], 1)
    assert crowd.counts(selector(index="0")).tolist() == [0, 1, 0]
    assert crowd.objections(WEB) == ()


def test_rows_are_numbered_anew() -> None:
    """Node 0 is gone with its pods, a new one comes first."""
    crowd = several()
    crowd.counts(selector(app="web"))
    crowd.remap(np.array([-1, 1, 3]), 4)
    assert crowd.counts(selector(app="web")).tolist() == [0, 0, 0, 3]
    assert crowd.counts(selector(app="db")).tolist() == [0, 1, 0, 0]
    crowd.put(WEB, 0)
    assert crowd.counts(selector(app="web")).tolist() == [1, 0, 0, 3]


def test_objections_are_those_of_residents_that_are_there() -> None:
    """None for pods no term is about; none once their holder left; one however many hold it."""
    crowd = several()
    crowd.put(kin_of(pod("t", affinity=apart(term(HOST, app="cache")))), 0)
    assert crowd.objections(WEB) == ()
    crowd.put_all((SHY, SHY), (0, 1))
    assert len(crowd.objections(WEB)) == 1
    assert (crowd.objections(DB), crowd.objections(AWAY)) == ((), ())
    crowd.put_all((SHY, SHY), (0, 1), -1)
    assert crowd.objections(WEB) == ()


def test_objections_by_namespace_labels_tell_namespaces_apart() -> None:
    """Two pods with the same labels are not alike where one's namespace may be picked and the other's not."""
    crowd = Crowd(1)
    crowd.put(kin_of(pod("s", affinity=apart(term(HOST, where=selector(team="y"), app="web")))), 0)
    assert crowd.objections(WEB)
    assert crowd.objections(WEB) != crowd.objections(AWAY)
    labels = {"other": {"team": "y"}}
    assert crowd.held_about(WEB, TermKind.ANTI, labels) == ()
    ((held, rows),) = crowd.held_about(AWAY, TermKind.ANTI, labels)
    assert (held.term.topology_key, rows.tolist()) == (HOST, [1])


def test_preferred_terms_of_residents_carry_their_weight() -> None:
    """Scores ask for them the same way."""
    crowd = Crowd(2)
    liking = Affinity(preferred_pods=(PreferredPods(7, term(HOST, app="web")), PreferredPods(-3, term(app="web"))))
    crowd.put(kin_of(pod("l", affinity=liking)), 1, 2)
    found = crowd.held_about(WEB, TermKind.PREFERRED, {})
    assert [(held.weight, rows.tolist()) for held, rows in found] == [(7, [0, 2]), (-3, [0, 2])]
    assert crowd.held_about(WEB, TermKind.ANTI, {}) == ()
