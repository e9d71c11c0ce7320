"""Room kept for the head of a queue."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import at_length
from reservation_world import SLOTS, World, big, small
from scheduler_builders import candidate, pod

from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.placement.working_snapshot import Nominated
from scheduler.core.queueing.order import Ranking

HEAD = WorkloadId.gang("default/train")


def stream(world: World, head: Candidate, turns: int, arrivals: int, *, ends_when_kept: bool = False) -> None:
    """Small pods arrive behind the head each second until it is placed, or only until room is kept for it.

    Those that find no room at once go away again.
    """
    world.add([head])
    for number in range(turns):
        if not (ends_when_kept and world.reservations.subjects):
            pods = (small(f"s{number}-{i}", created=10.0 + number) for i in range(arrivals))
            world.add(candidate([item]) for item in pods)
        world.turn(run_seconds=10.0 + number % 7)
        if HEAD in world.placed:
            return
        world.waiting = {HEAD: head}


def full(nodes: int, most_reservations: int = 1) -> World:
    """Every slot is taken by pods that end one after another."""
    world = World(nodes, most_reservations)
    for i, name in enumerate(sorted(world.nodes)):
        for slot in range(SLOTS):
            world.put(small(f"r{i}-{slot}"), name, end=4.0 + (i * SLOTS + slot) % 17)
    return world


def test_a_large_gang_is_placed_under_a_stream_of_small_pods() -> None:
    """Volcano issues 3095 and 748: all 64 slots of 8 nodes, while six pods a second want one each."""
    world = full(8)
    stream(world, big(64), turns=200, arrivals=6)
    assert world.placed[HEAD] <= world.reserved_until[HEAD] <= 5.0 + 20.0


def test_without_it_the_gang_starves() -> None:
    """The same stream, nothing kept: each slot that ends is taken at once."""
    world = full(8, most_reservations=0)
    stream(world, big(64), turns=200, arrivals=6)
    assert HEAD not in world.placed
    assert len(world.placed) > 500


def test_back_fill_takes_what_the_head_cannot_use() -> None:
    """Members of half a node each: while whole halves drain for them, fragments elsewhere go on working."""
    world = full(8)
    stream(world, big(8, each=4000), turns=60, arrivals=6)
    filled = [at for subject, at in world.placed.items() if subject != HEAD and 5.0 < at < world.placed[HEAD]]
    assert len(filled) > 10
    assert world.placed[HEAD] <= world.reserved_until[HEAD]


@pytest.mark.parametrize("online", [True, False], ids=["online", "batch"])
def test_an_online_pod_never_waits_for_it(online: bool) -> None:
    """Who waits, and for how long, is the word of whoever made the gang: of another namespace, for ten years."""
    world = full(2)
    world.add([big(2 * SLOTS, timeout=3e8)])
    for _ in range(8):
        world.turn()
    assert world.reservations.subjects and HEAD not in world.placed
    web = candidate([pod("web", batch_cpu=1000, created_seconds=world.now, below_prod=not online)])
    world.add([web])
    world.turn()
    assert (web.subject in world.placed) is online


ends = st.lists(st.integers(4, 30), min_size=3 * SLOTS, max_size=3 * SLOTS)
gang_sizes = st.lists(st.integers(1, 3 * SLOTS), min_size=1, max_size=12)


def busy(ends: list[int]) -> World:
    """Three nodes, full of pods that end then."""
    world = World(3)
    for index, end in enumerate(ends):
        world.put(small(f"r{index}"), f"n{index % 3:03}", float(end))
    return world


@settings(max_examples=10)
@given(ends=ends, size=st.integers(1, 3 * SLOTS), arrivals=st.integers(1, 5))
def test_back_fill_never_delays_the_head(ends: list[int], size: int, arrivals: int) -> None:
    """Pods arrive behind it without end, or none from the moment on that room is kept for it: it is placed as early."""
    indexed, alone = busy(ends), busy(ends)
    stream(indexed, big(size), turns=60, arrivals=arrivals)
    stream(alone, big(size), turns=60, arrivals=arrivals, ends_when_kept=True)
    assert indexed.placed[HEAD] == alone.placed[HEAD]


@settings(max_examples=10)
@given(ends=ends, size=st.integers(1, 6), arrivals=st.integers(1, 5))
def test_large_members_wait_for_their_own_rows_at_most(ends: list[int], size: int, arrivals: int) -> None:
    """Members of half a node are placed no later than when all that ran on the rows chosen for them has ended."""
    world = busy(ends)
    stream(world, big(size, each=4000), turns=60, arrivals=arrivals)
    assert world.placed[HEAD] <= world.reserved_until.get(HEAD, world.placed[HEAD])


@settings(max_examples=10)
@given(sizes=gang_sizes, reservations=st.integers(0, 2))
def test_gangs_never_hold_and_wait(sizes: list[int], reservations: int) -> None:
    """scheduler-plugins issues 114 and 117: each gang is placed whole or not at all, and every one in the end."""
    world = World(3, reservations)
    world.add(big(size, f"g{number}", created=float(number)) for number, size in enumerate(sizes))
    for _ in range(11 * len(sizes) + 1):
        running = len(world.ends)
        before = set(world.placed)
        world.turn(run_seconds=10.0)
        placed = [sizes[int(subject.name.rpartition("/g")[2])] for subject in world.placed.keys() - before]
        assert sum(placed) <= 3 * SLOTS
        assert len(world.ends) <= running + sum(placed)
        assert len(world.ends) == sum(
            sizes[int(subject.name.rpartition("/g")[2])]
            for subject, at in world.placed.items()
            if at + 10.0 > world.now
        )
    assert len(world.placed) == len(sizes)


test_back_fill_at_length = at_length(
    test_back_fill_never_delays_the_head, ends=ends, size=st.integers(1, 3 * SLOTS), arrivals=st.integers(1, 5)
)
test_large_members_at_length = at_length(
    test_large_members_wait_for_their_own_rows_at_most, ends=ends, size=st.integers(1, 6), arrivals=st.integers(1, 5)
)
test_gangs_at_length = at_length(test_gangs_never_hold_and_wait, sizes=gang_sizes, reservations=st.integers(0, 2))


def kept(world: World, item: Candidate) -> Nominated | None:
    working = world.working()
    residents = world.ledger.residents(working.snapshot)
    return world.reservations.reserve(working, item, residents, Ranking(world.now))[0]


def nodes_of(world: World, found: Nominated | None) -> set[str]:
    assert found is not None
    return {world.snapshot.names[assignment.row] for assignment in found.assignments}


def waits_on(world: World, size: int, name: str) -> Candidate:
    """A gang that waits too, without the time having changed."""
    item = big(size, name)
    world.add([item])
    return item


def waits(world: World, size: int = SLOTS, name: str = "train", **more: Any) -> Candidate:
    """A gang that has waited long enough."""
    item = big(size, name, **more)
    world.add([item])
    world.now = 100.0
    return item


def test_nothing_is_kept_before_its_time() -> None:
    """Five seconds here; whoever needs nobody else placed with it gets none."""
    world = full(2)
    item = waits(world)
    world.now = 4.9
    assert kept(world, item) is None
    world.now = 5.0
    assert kept(world, item) is not None


def end_some(world: World, name: str, number: int) -> None:
    """So many pods of a node end."""
    for charge in [item for item in world.ledger.charges() if item.node == name][:number]:
        world.ledger.forget(charge.uid)


def test_it_stays_where_it_is() -> None:
    """The same rows from turn to turn, also when another is nearer to being free, or the rows of nodes move."""
    world = full(3)
    item = waits(world, 1, each=SLOTS * 1000)
    assert nodes_of(world, kept(world, item)) == {"n000"}
    end_some(world, "n001", SLOTS - 1)
    assert nodes_of(world, kept(world, item)) == {"n000"}
    world.nodes["a"] = msgspec.structs.replace(world.nodes["n001"], name="a", unschedulable=True)
    assert nodes_of(world, kept(world, item)) == {"n000"}


def test_a_assignment_moves_to_where_there_is_room_now() -> None:
    """Three of eight slots become free elsewhere: three members are kept there, the others where they were."""
    world = full(3)
    item = waits(world)
    assert nodes_of(world, kept(world, item)) == {"n000"}
    end_some(world, "n002", 3)
    found = kept(world, item)
    assert found is not None
    assert sorted(assignment.row for assignment in found.assignments) == [0] * 5 + [2] * 3
    assert kept(world, item) == found


def test_it_moves_where_its_rows_cannot_serve_any_more() -> None:
    """A node that is gone, and one that higher priority has taken."""
    world = full(3)
    item = waits(world)
    (first,) = nodes_of(world, kept(world, item))
    del world.nodes[first]
    (second,) = nodes_of(world, kept(world, item))
    assert second != first
    end_some(world, second, 1)
    world.put(small("vip", priority=9), second, 1e9)
    (third,) = nodes_of(world, kept(world, item))
    assert third not in (first, second)


def test_the_least_missing_room_is_chosen() -> None:
    """The node on which the fewest have to end; the pods of higher priority and of DaemonSets are taken to stay."""
    world = full(4)
    end_some(world, "n002", 2)
    assert nodes_of(world, kept(world, waits(world))) == {"n002"}
    for name in ("vip0", "vip1"):
        world.put(small(name, priority=9), "n002", 1e9)
    world.reservations.drop(HEAD)
    assert "n002" not in nodes_of(world, kept(world, waits(world)))
    daemon = msgspec.structs.replace(small("daemon"), daemon=True)
    world.reservations.drop(HEAD)
    for name in ("n000", "n001", "n003"):
        end_some(world, name, 1)
        world.put(msgspec.structs.replace(daemon, uid=f"daemon-{name}"), name, 1e9)
    assert kept(world, waits(world, 4 * SLOTS)) is None


@pytest.mark.parametrize(("timeout", "end"), [(300.0, 400.0), (2e9, 3700.0)], ids=["its own", "an hour at most"])
def test_it_is_given_up_when_out_of_time_and_not_kept_at_once_again(timeout: float, end: float) -> None:
    """A gang that found no place within its timeout lets another of its queue try; what it had is news to others."""
    world = full(2)
    item = waits(world, timeout=timeout)
    assert kept(world, item) is not None
    assert world.reservations.next_due() == end
    assignments = world.reservations.settle(world.waiting, world.snapshot, end)
    assert len(assignments) == SLOTS
    world.now = end
    assert (kept(world, item), world.reservations.subjects) == (None, ())
    assert kept(world, waits(world, name="other")) is not None


def test_it_goes_with_its_workload() -> None:
    """Placed, gone or changed."""
    world = full(2)
    item = waits(world)
    assert kept(world, item) is not None
    changed = big(SLOTS - 1)
    assert len(world.reservations.settle({item.subject: changed}, world.snapshot, 101.0)) == SLOTS
    assert kept(world, item) is not None
    assert len(world.reservations.settle({}, world.snapshot, 101.0)) == SLOTS


def test_one_a_queue_and_the_first_in_the_order_has_it() -> None:
    """The second gets none while the first has it; the first takes it over from the second; queues do not compete."""
    world = full(4)
    second, first = waits(world, name="second", created=2.0), waits(world, name="first", created=1.0)
    assert kept(world, second) is not None
    working = world.working()
    found, gave_way = world.reservations.reserve(
        working, first, world.ledger.residents(working.snapshot), Ranking(world.now)
    )
    assert (found is not None, len(gave_way)) == (True, SLOTS)
    assert (kept(world, second), world.reservations.subjects) == (None, (first.subject,))
    elsewhere = waits(world, name="elsewhere", created=9.0)
    elsewhere = msgspec.structs.replace(elsewhere, workload=msgspec.structs.replace(elsewhere.workload, queue="other"))
    world.add([elsewhere])
    assert kept(world, elsewhere) is not None


def test_what_can_never_fit_keeps_nothing() -> None:
    """More than the cluster has: not searched for again at once, not for others alike, and nobody is kept from it."""
    world = full(2)
    hopeless = waits(world, 2 * SLOTS + 1)
    assert kept(world, hopeless) is None
    world.nodes["n9"] = msgspec.structs.replace(world.nodes["n000"], name="n9")
    fitting = waits(world, 2, "fits")
    assert kept(world, fitting) is None
    world.now += 1.0
    assert kept(world, waits_on(world, 2 * SLOTS + 1, "alike")) is None
    assert kept(world, fitting) is not None
    world.reservations.drop(fitting.subject)
    world.now += 5.0
    assert kept(world, hopeless) is not None
