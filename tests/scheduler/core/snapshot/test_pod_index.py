"""Who is where: counts by row, however they came about."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from filter_builders import HOST, apart, selector, term
from scheduler_builders import pod

from model.pod.affinity import Affinity, PreferredPods
from model.selector import Operator, Requirement, Selector
from scheduler.core.snapshot.pod_index import PodIndex
from scheduler.core.snapshot.pod_queries import TermKind
from scheduler.core.snapshot.podclass import PodTraits, pod_traits_of

WEB = pod_traits_of(pod("w", labels={"app": "web"}))
DB = pod_traits_of(pod("d", labels={"app": "db", "tier": "x"}))
GOING = pod_traits_of(pod("g", labels={"app": "web"}, deleting=True))
AWAY = pod_traits_of(pod("o", namespace="other", labels={"app": "web"}))
SHY = pod_traits_of(pod("s", affinity=apart(term(HOST, app="web"))))


def several() -> PodIndex:
    pod_index = PodIndex(3)
    pod_index.put_all((WEB, DB, GOING, AWAY), (0, 1, 0, 2))
    pod_index.put(WEB, 2, 2)
    return pod_index


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
    for pod_index in (asked, unasked):
        pod_index.put(DB, 0)
        pod_index.remove(WEB, 2)
    later = asked.counts(*about, staying=staying).tolist()
    assert later == unasked.counts(*about, staying=staying).tolist()


def test_a_copy_and_its_original_go_their_own_ways() -> None:
    """Neither sees what the other does, whatever was asked before."""
    pod_index = several()
    pod_index.counts(selector(app="web"))
    copy = pod_index.copy()
    copy.put(WEB, 1)
    pod_index.put(WEB, 0)
    again = copy.copy()
    again.remove(WEB, 2)
    found = [each.counts(selector(app="web")).tolist() for each in (pod_index, copy, again)]
    assert found == [[3, 0, 3], [2, 1, 3], [2, 1, 2]]


def test_long_histories_of_copies_stay_apart() -> None:
    """Also where what they share was written long ago, and each writes much."""
    pod_index = PodIndex(2)
    pod_index.put_all([WEB] * 3000, [0] * 3000)
    copy = pod_index.copy()
    copy.put_all([WEB] * 3000, [1] * 3000)
    pod_index.put_all([DB] * 3000, [1] * 3000)
    assert pod_index.counts(selector(app="web")).tolist() == [3000, 0]
    assert copy.counts(selector(app="web")).tolist() == [3000, 3000]
    assert copy.counts(selector(app="db")).tolist() == [0, 0]


def test_much_coming_and_going_changes_no_count() -> None:
    """The history is written again from time to time, and who is long gone is forgotten."""
    pod_index = several()
    pod_index.counts(selector(app="web"))
    passing = [pod_traits_of(pod("p", labels={"app": "web", "index": str(i)})) for i in range(3000)]
    for each_traits in (passing, passing, [SHY] * 3000):
        pod_index.put_all(each_traits, [1] * 3000)
        pod_index.put_all(each_traits, [1] * 3000, -1)
    assert pod_index.counts(selector(app="web")).tolist() == [2, 0, 3]
    assert pod_index.counts(selector(app="db")).tolist() == [0, 1, 0]
    pod_index.put(passing[0], 1)
    assert pod_index.counts(selector(index="0")).tolist() == [0, 1, 0]
    assert pod_index.objections(WEB) == ()


def test_rows_are_numbered_again() -> None:
    """Node 0 is gone with its pods, a new one comes first."""
    pod_index = several()
    pod_index.counts(selector(app="web"))
    pod_index.remap(np.array([-1, 1, 3]), 4)
    assert pod_index.counts(selector(app="web")).tolist() == [0, 0, 0, 3]
    assert pod_index.counts(selector(app="db")).tolist() == [0, 1, 0, 0]
    pod_index.put(WEB, 0)
    assert pod_index.counts(selector(app="web")).tolist() == [1, 0, 0, 3]


def test_objections_are_those_of_residents_that_are_there() -> None:
    """None for pods no term is about; none once their holder left; one however many hold it."""
    pod_index = several()
    pod_index.put(pod_traits_of(pod("t", affinity=apart(term(HOST, app="cache")))), 0)
    assert pod_index.objections(WEB) == ()
    pod_index.put_all((SHY, SHY), (0, 1))
    assert len(pod_index.objections(WEB)) == 1
    assert (pod_index.objections(DB), pod_index.objections(AWAY)) == ((), ())
    pod_index.put_all((SHY, SHY), (0, 1), -1)
    assert pod_index.objections(WEB) == ()


def test_objections_by_namespace_labels_tell_namespaces_apart() -> None:
    """Two pods with the same labels are not alike where one's namespace may be picked and the other's not."""
    pod_index = PodIndex(1)
    pod_index.put(pod_traits_of(pod("s", affinity=apart(term(HOST, where=selector(team="y"), app="web")))), 0)
    assert pod_index.objections(WEB)
    assert pod_index.objections(WEB) != pod_index.objections(AWAY)
    labels = {"other": {"team": "y"}}
    assert pod_index.held_about(WEB, TermKind.ANTI, labels, [HOST]) == ()
    ((key, rows),) = pod_index.held_about(AWAY, TermKind.ANTI, labels, [HOST])
    assert (key, rows.tolist()) == (HOST, [1])
    assert pod_index.held_about(AWAY, TermKind.ANTI, labels, ["rack"]) == ()


def test_preferred_terms_of_residents_carry_their_weight() -> None:
    """Scores ask for them the same way."""
    pod_index = PodIndex(2)
    liking = Affinity(preferred_pods=(PreferredPods(7, term(HOST, app="web")), PreferredPods(-3, term(app="web"))))
    pod_index.put(pod_traits_of(pod("l", affinity=liking)), 1, 2)
    keys = [HOST, term().topology_key]
    found = pod_index.held_about(WEB, TermKind.PREFERRED, {}, keys)
    assert [rows.tolist() for _, rows in found] == [[0, 14], [0, -6]]
    assert pod_index.held_about(WEB, TermKind.ANTI, {}, keys) == ()


def shy_of(number: int, key: str) -> PodTraits:
    """Away from pods without a label of this number; no two are alike."""
    without = Selector((Requirement(f"no{number}", Operator.DOES_NOT_EXIST),))
    return pod_traits_of(pod("s", affinity=apart(msgspec.structs.replace(term(key), selector=without))))


@pytest.mark.parametrize("number", [3, 32, 33, 60])
def test_many_terms_of_residents_are_summed_by_key(number: int) -> None:
    """As if each were counted by itself, also where one has gone from a copy."""
    keys = (HOST, "rack", "absent")
    pod_index, bearers = PodIndex(2), [shy_of(i, keys[i % 3]) for i in range(number)]
    for i, bearer in enumerate(bearers):
        pod_index.put(bearer, i % 2)
    other = pod_index.copy()
    other.remove(bearers[0], 0)
    for index, gone in ((pod_index, set[int]()), (other, {0})):
        found = {key: np.zeros(2, np.int64) for key in keys[:2]}
        for key, rows in index.held_about(WEB, TermKind.ANTI, {}, keys[:2]):
            found[key] += rows
        expected = {key: [0, 0] for key in keys[:2]}
        for i in sorted(set(range(number)) - gone):
            if keys[i % 3] in expected:
                expected[keys[i % 3]][i % 2] += 1
        assert {key: rows.tolist() for key, rows in found.items()} == expected
        assert len(index.objections(WEB)) == number - len(gone)
