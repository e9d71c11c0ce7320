"""The store: revisions, event logs, watches and their limits."""

import asyncio
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedded.apiserver.apimachinery.resource_types import CONFIG_MAPS, LEASES, NODES, PODS, SECRETS
from embedded.apiserver.apimachinery.selectors import EVERYTHING, Filter, parse_fields, parse_labels
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.storage.object_store import Change, Store
from embedded.apiserver.storage.watch_queue import Watcher


def pod(name="a", namespace="default", node="", labels=None, uid=None):
    meta = {"name": name, "namespace": namespace, "uid": uid or f"{namespace}/{name}", "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"nodeName": node}}


@pytest.fixture
def store(clock):
    return Store(clock, ring_events=4)


def seen(watcher):
    return [(seen.change, seen.record.name) for seen in watcher.take()]


def test_revisions_start_at_the_clock_and_grow_by_one(store, clock):
    """A later server never reuses the revisions of an earlier one."""
    first = store.revision
    store.put(PODS, pod("a"))
    store.put(CONFIG_MAPS, pod("b"))
    assert store.revision == first + 2
    clock.advance(3600)
    assert Store(clock).revision > store.revision


def test_a_list_is_in_order_and_goes_on_after_a_key(store):
    """Lists are sorted by namespace and name, whatever the order of writing."""
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "y"), ("c", "a")):
        store.put(PODS, pod(name, namespace))
    assert [r.key for r in store.select("pods", EVERYTHING)] == [("a", "y"), ("a", "z"), ("b", "x"), ("c", "a")]
    assert [r.key for r in store.select("pods", Filter("a"))] == [("a", "y"), ("a", "z")]
    assert [r.key for r in store.select("pods", EVERYTHING, ("a", "z"))] == [("b", "x"), ("c", "a")]
    assert [r.key for r in store.select("pods", Filter("a"), ("a", "y"))] == [("a", "z")]


def test_a_watch_replays_what_happened_since_its_revision(store):
    """Events after the revision come once each, in order, and those before it do not come."""
    store.put(PODS, pod("a"))
    since = store.revision
    store.put(PODS, pod("b"))
    store.remove(PODS, pod("a"))
    watcher = store.watch("pods", EVERYTHING, since)
    store.put(PODS, pod("b", labels={"x": "y"}))
    assert seen(watcher) == [(Change.ADDED, "b"), (Change.DELETED, "a"), (Change.MODIFIED, "b")]


def test_a_revision_the_log_has_dropped_is_expired(store):
    """What cannot be replayed completely is refused with 410, never silently skipped."""
    since = store.revision
    for _ in range(5):
        store.put(PODS, pod("a"))
    with pytest.raises(StatusError) as refused:
        store.watch("pods", EVERYTHING, since)
    assert (refused.value.code, refused.value.reason) == (410, "Expired")
    assert len(store.watch("pods", EVERYTHING, since + 1).take()) == 4


def test_the_log_is_bounded_in_bytes_too(clock):
    """Large objects shorten the history instead of filling the memory."""
    store = Store(clock, ring_events=1000, history_bytes=6000)
    since = store.revision
    for _ in range(20):
        store.put(PODS, pod("a", labels={"x": "y" * 300}))
    with pytest.raises(StatusError):
        store.watch("pods", EVERYTHING, since)
    assert len(store.watch("pods", EVERYTHING, store.revision - 2).take()) == 2


def test_the_logs_of_all_types_are_bounded_together(clock):
    """Where most is kept, most is forgotten: a type that changes much does not cost another its history."""
    store = Store(clock, history_bytes=100_000)
    since = store.revision
    for rtype in (NODES, CONFIG_MAPS, SECRETS):
        store.put(rtype, {"metadata": {"name": "a", "uid": rtype.id}})
    for number in range(500):
        store.put(PODS, pod("a"))
        store.put(LEASES, {"metadata": {"name": str(number), "uid": str(number)}})
    assert [len(store.watch(rtype.id, EVERYTHING, since).take()) for rtype in (NODES, CONFIG_MAPS, SECRETS)] == [
        1,
        1,
        1,
    ]
    kept = [len(shelf._events) for shelf in store._shelves.values()]
    assert sum(kept) < 130 and len(store.watch("pods", EVERYTHING, store.revision - 40).take()) == 20
    for rtype in (PODS, LEASES):
        with pytest.raises(StatusError):
            store.watch(rtype.id, EVERYTHING, since)


@pytest.mark.parametrize("labels", [0, 1, 6, 30])
def test_what_is_kept_of_a_change_is_what_it_takes(clock, labels):
    """The bound is one of memory: labels, fields and names weigh as much as many a body."""
    store = Store(clock, history_bytes=2 << 20)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(3000):
            store.put(PODS, pod(f"a-{number % 100}", labels={f"l{at}": f"{number}" for at in range(labels)}))
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.6 * (2 << 20) < taken < 1.2 * (2 << 20)


def test_a_type_that_is_served_no_more_leaves_no_log(store):
    """And one that comes back under its name does not tell of the time before."""
    since = store.revision
    store.put(PODS, pod("a"))
    watcher = store.watch("pods", EVERYTHING, None)
    store.forget("pods")
    assert watcher.closed and store.count("pods") == 1  # there are objects still: nothing is lost
    store.remove(PODS, pod("a"))
    store.forget("pods")
    assert "pods" not in store._shelves
    with pytest.raises(StatusError) as refused:
        store.watch("pods", EVERYTHING, since)
    assert refused.value.code == 410


def test_a_revision_from_before_the_start_is_expired(store):
    """A client that outlived a restart starts over."""
    with pytest.raises(StatusError) as refused:
        store.watch("pods", EVERYTHING, store.revision - 1)
    assert refused.value.code == 410


def test_a_revision_from_the_future_is_a_timeout(store):
    """The client is told to try again, with the cause clients look for."""
    with pytest.raises(StatusError) as refused:
        store.watch("pods", EVERYTHING, store.revision + 1)
    assert refused.value.code == 504
    assert refused.value.details["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_entering_and_leaving_a_selector_is_adding_and_deleting(store):
    """A watch with a selector sees its own part of the world as if it were all of it."""
    wanted = Filter(labels=parse_labels("team=x"))
    watcher = store.watch("pods", wanted, None)
    for labels in ({"team": "y"}, {"team": "x"}, {"team": "x", "more": "z"}, {}, {"team": "x"}):
        store.put(PODS, pod("a", labels=labels))
    store.remove(PODS, pod("a"))
    changes = [change for change, _ in seen(watcher)]
    assert changes == [Change.ADDED, Change.MODIFIED, Change.DELETED, Change.ADDED, Change.DELETED]


def test_a_watch_pinned_to_a_node_sees_pods_come_and_go(store):
    """The index of watches by node loses neither the binding of a pod nor its removal."""
    wanted = Filter(fields=parse_fields("spec.nodeName=n1", PODS))
    watcher = store.watch("pods", wanted, None)
    other = store.watch("pods", Filter(fields=parse_fields("spec.nodeName=n2", PODS)), None)
    store.put(PODS, pod("a"))
    store.put(PODS, pod("a", node="n1"))
    store.remove(PODS, pod("a", node="n1"))
    assert [change for change, _ in seen(watcher)] == [Change.ADDED, Change.DELETED]
    assert other.take() == []


MOVES = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from(["", "n1", "n2", None])), max_size=40
)


@settings(max_examples=60)
@given(moves=MOVES)
def test_a_list_by_node_finds_what_a_scan_finds(moves):
    """However pods are bound, replaced and removed."""
    store = Store(lambda: 1_790_000_000.0)
    for namespace, name, node in moves:
        if node is not None:
            store.put(PODS, pod(name, namespace, node))
        elif store.get("pods", namespace, name):
            store.remove(PODS, pod(name, namespace))
    everything = list(store.select("pods", EVERYTHING))
    for node in ("", "n1", "n2", "n3"):
        for namespace in ("", "a"):
            wanted = Filter(namespace, fields=parse_fields(f"spec.nodeName={node}", PODS))
            assert list(store.select("pods", wanted)) == [r for r in everything if r.admitted_by(wanted)]


def test_a_slow_watcher_is_cut_and_the_others_are_not(store):
    """One reader that does not read costs nobody else an event."""
    slow = store.watch("pods", EVERYTHING, None, limit=3)
    quick = store.watch("pods", EVERYTHING, None, limit=3)
    received = 0
    for number in range(6):
        store.put(PODS, pod(f"p{number}"))
        received += len(quick.take())
    assert slow.cut and slow.take() == []
    assert not quick.cut and received == 6


def test_a_watcher_is_cut_by_the_bytes_that_wait_for_it():
    """A few large objects weigh as much as many small ones; what was there before it came does not count."""
    watcher = Watcher(100, limit_bytes=10)
    watcher.preload(["x"] * 200)
    watcher.offer("a", 6)
    assert len(watcher.take()) == 201
    watcher.offer("b", 6)
    assert not watcher.cut
    watcher.offer("c", 6)
    assert watcher.cut and watcher.take() == []


def test_a_reader_with_a_full_backlog_is_not_cut_at_once(store):
    """Whoever comes back after a pause first gets to read what it missed."""
    since = store.revision
    for number in range(4):
        store.put(PODS, pod(f"p{number}"))
    watcher = store.watch("pods", EVERYTHING, since, limit=2)
    store.put(PODS, pod("next"))
    assert [name for _, name in seen(watcher)] == ["p0", "p1", "p2", "p3", "next"]


def test_a_watch_of_a_namespace_sees_no_other(store):
    """With and without a node, each is offered exactly its own."""
    node = parse_fields("spec.nodeName=n1", PODS)
    wanted = {"all": EVERYTHING, "a": Filter("a"), "b": Filter("b"), "a on n1": Filter("a", fields=node)}
    watchers = {name: store.watch("pods", each, None) for name, each in wanted.items()}
    store.put(PODS, pod("x", "a"))
    store.put(PODS, pod("y", "a", node="n1"))
    store.put(PODS, pod("z", "b", node="n1"))
    found = {name: [n for _, n in seen(watcher)] for name, watcher in watchers.items()}
    assert found == {"all": ["x", "y", "z"], "a": ["x", "y"], "b": ["z"], "a on n1": ["y"]}


def test_controllers_first_hear_of_what_exists(store):
    """In the order of their last change, so that a restart is no different from having been there all along."""
    store.put(PODS, pod("b"))
    store.put(CONFIG_MAPS, pod("m"))
    store.put(PODS, pod("a"))
    store.put(PODS, pod("b"))
    listener = store.listen()
    store.put(PODS, pod("c"))
    heard = [(type_id, event.change, event.record.name) for type_id, event in listener.take()]
    assert [(type_id, name) for type_id, _, name in heard] == [
        ("configmaps", "m"),
        ("pods", "a"),
        ("pods", "b"),
        ("pods", "c"),
    ]
    assert {change for _, change, _ in heard} == {Change.ADDED}


WRITES = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from(["put", "label", "remove"])), max_size=40
)
FILTERS = (EVERYTHING, Filter("a"), Filter(labels=parse_labels("l=1")), Filter("b", parse_labels("!l")))


@settings(max_examples=60)
@given(writes=WRITES, wanted=st.sampled_from(FILTERS))
def test_every_moment_can_be_listed_and_watched_from(writes, wanted):
    """A list at a revision is what a list was then, and its watch leads to what a list is now."""
    store = Store(lambda: 1_790_000_000.0, ring_events=1000)
    moments = {store.revision: []}
    for namespace, name, what in writes:
        there = store.get("pods", namespace, name)
        if what == "remove" and there:
            store.remove(PODS, pod(name, namespace))
        elif what != "remove":
            store.put(PODS, pod(name, namespace, labels={"l": "1"} if what == "label" else {}))
        moments[store.revision] = list(store.select("pods", wanted))
    for revision, then in moments.items():
        assert list(store.select_at("pods", revision, wanted)) == then
        state = {record.key: record for record in then}
        for item in store.watch("pods", wanted, revision).take():
            assert (item.change is Change.ADDED) == (item.record.key not in state)
            if item.change is Change.DELETED:
                del state[item.record.key]
            else:
                state[item.record.key] = item.record
        assert [state[key] for key in sorted(state)] == list(store.select("pods", wanted))


def test_a_closed_watcher_receives_nothing_more(store):
    """Closing a watch frees what the store keeps for it."""
    watcher = store.watch("pods", EVERYTHING, None)
    watcher.close()
    store.put(PODS, pod("a"))
    assert watcher.take() == []


def test_waiting_ends_with_the_first_event(store):
    """A waiting reader wakes up for an event."""

    async def read():
        watcher = store.watch("pods", EVERYTHING, None)
        asyncio.get_running_loop().call_soon(lambda: store.put(PODS, pod("a")))
        return await watcher.wait(5)

    assert [event.record.name for event in asyncio.run(read())] == ["a"]


def test_children_are_found_by_their_owner(store):
    """The owner index follows creation, change of owner and removal."""
    child = pod("child")
    child["metadata"]["ownerReferences"] = [{"uid": "o1"}]
    store.put(PODS, child)
    assert store.children("o1") == [("pods", "default", "child")]
    child["metadata"]["ownerReferences"] = [{"uid": "o2"}]
    store.put(PODS, child)
    assert (store.children("o1"), store.children("o2")) == ([], [("pods", "default", "child")])
    store.remove(PODS, child)
    assert store.children("o2") == []


def test_what_is_stored_is_not_what_the_caller_holds(store):
    """Changing an object after storing it changes nothing stored."""
    mine = pod("a", labels={"x": "1"})
    store.put(PODS, mine)
    mine["metadata"]["labels"]["x"] = "2"
    held = store.get("pods", "default", "a")
    assert b'"x":"1"' in held.body and held.labels == {"x": "1"}


def test_changes_of_a_type_are_counted(store):
    """Whatever comes, changes, goes or is put back; other types count for themselves."""
    counts = [store.changes(PODS.id)]
    for act in (
        lambda: store.put(PODS, pod("a")),
        lambda: store.put(PODS, pod("a", node="n")),
        lambda: store.remove(PODS, pod("a")),
        lambda: store.load(PODS, pod("b") | {"metadata": pod("b")["metadata"] | {"resourceVersion": "1"}}),
    ):
        act()
        counts.append(store.changes(PODS.id))
    assert counts == sorted(set(counts))
    assert store.changes(CONFIG_MAPS.id) == 0
