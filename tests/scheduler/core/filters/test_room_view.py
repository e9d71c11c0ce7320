"""How many more pods of a class a node takes: counted once, then by the rows that changed, always as if counted again."""

from __future__ import annotations

import numpy as np
import pytest
from scheduler_builders import node, pod, snapshot

from model.node import Taint, TaintEffect
from model.pod.spec import Toleration
from model.resources import BATCH_CPU, PODS
from scheduler.core.filters import fit
from scheduler.core.filters.room_view import RoomView, need_of, plain
from scheduler.core.snapshot.podclass import class_of
from scheduler.core.snapshot.snapshot import LARGEST_AMOUNT

GONE = Taint("gone", "", TaintEffect.NO_SCHEDULE)
SIZES = (1000, 2500, 400, 3000, 0, 9000, 1200, 800, 5000, 650, 3100, 2000)
NODES = snapshot(
    *(node(f"n{i:02}", batch_cpu=size, pods=4, taints=(GONE,) if i % 5 == 3 else ()) for i, size in enumerate(SIZES))
)
CLASS = class_of(pod(batch_cpu=500))


def counted(free: np.ndarray, held: np.ndarray | None = None) -> RoomView:
    """A view that has counted everything."""
    view = RoomView(NODES, CLASS)
    view.catch_up(free, held, None)
    return view


def test_room_is_the_scarcest_resource_and_nothing_where_it_may_not_go() -> None:
    """4 pods a node at most; tainted nodes take none."""
    wanted = [0 if i % 5 == 3 else min(size // 500, 4) for i, size in enumerate(SIZES)]
    assert counted(NODES.free).room.tolist() == wanted


@pytest.mark.parametrize("changed", [(5,), (1, 2, 5), tuple(range(12))], ids=["few", "some", "all"])
@pytest.mark.parametrize("reported", [True, False], ids=["after a report", "before"])
def test_rows_that_changed_are_counted_as_if_again(changed: tuple[int, ...], reported: bool) -> None:
    """Whichever way they are counted, room and report are those of a new view."""
    before = NODES.free.copy()
    view = counted(before)
    if reported:
        view.report(before, None)
    after = before.copy()
    after[list(changed)] = after[list(changed)] // 3
    view.catch_up(after, None, list(changed))
    again = counted(after)
    assert view.room.tolist() == again.room.tolist()
    assert view.report(after, None) == again.report(after, None)


def test_many_changed_rows_of_many_are_counted_as_arrays() -> None:
    """More than a few, fewer than a quarter."""
    many = snapshot(*(node(f"n{i:03}", batch_cpu=100 * i) for i in range(64)))
    view, after = RoomView(many, CLASS), many.free.copy()
    view.catch_up(many.free, None, None)
    view.report(many.free, None)
    rows = list(range(20, 30))
    after[rows] = 450
    view.catch_up(after, None, rows)
    assert view.room[rows].tolist() == [0] * 10
    report = view.report(after, None)
    assert dict(report.refused)[(fit.insufficient(BATCH_CPU),)] == 5 + 10


def test_what_is_held_counts_as_used() -> None:
    """For all rows and for one."""
    held = np.zeros_like(NODES.free)
    held[5] = NODES.free[5]
    assert counted(NODES.free, held).room[5] == 0
    view = counted(NODES.free)
    view.catch_up(NODES.free, held, [5])
    assert view.room[5] == 0


def test_the_report_is_that_of_the_filter() -> None:
    """As `fit.report` counts it, with the nodes' own refusals."""
    report = counted(NODES.free).report(NODES.free, None)
    words = dict(report.refused)
    assert report.nodes == len(SIZES)
    assert words[(fit.insufficient(BATCH_CPU),)] == sum(1 for i, size in enumerate(SIZES) if size < 500 and i % 5 != 3)
    assert sum(words.values()) + report.feasible == len(SIZES)


def test_need_in_columns() -> None:
    """Listed resources by column, others by name; no amount is beyond what sums hold."""
    asked = class_of(pod(requests={BATCH_CPU: 500, "example.com/gpu": 2, "huge": 1}))
    need = need_of((BATCH_CPU, PODS), asked)
    assert (need.columns, need.amounts) == ((0, 1), (500, 1))
    assert need.unlisted == ("example.com/gpu", "huge")
    assert need_of((BATCH_CPU,), class_of(pod(batch_cpu=1 << 62))).amounts == (LARGEST_AMOUNT,)


def test_a_resource_that_no_node_lists_leaves_no_room() -> None:
    """Room stays at nothing whatever is free."""
    view = RoomView(NODES, class_of(pod(requests={"example.com/gpu": 1})))
    view.catch_up(NODES.free, None, None)
    assert not view.room.any()


def test_plain_is_told_by_traits_and_shortage_alone() -> None:
    """Not where claims decide, nor where a resource is unknown, nor with too many resources."""
    assert plain(NODES.resources, CLASS)
    assert plain(NODES.resources, class_of(pod(tolerations=(Toleration(key="gone", operator="Exists"),))))
    assert not plain(NODES.resources, class_of(pod(claims=("data",))))
    assert not plain(NODES.resources, class_of(pod(requests={"example.com/gpu": 1})))
    wide = tuple(f"r{i}" for i in range(13))
    assert not plain((*wide, PODS), class_of(pod(requests=dict.fromkeys(wide, 1))))
    assert plain((*wide[:11], PODS), class_of(pod(requests=dict.fromkeys(wide[:11], 1))))
