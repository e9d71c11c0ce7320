"""Pods whose reading takes long hold up nobody else, however often they are written."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from scheduler_builders import raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from scheduler.cache.long_pods import parts_of

TERMS = 900
PARTS = 3 * TERMS


def preferred(number: int) -> dict[str, Any]:
    """Of as many terms, with a weight, a key and an operator each."""
    terms = [
        {"weight": 1, "preference": {"matchExpressions": [{"key": f"k{index}", "operator": "Exists"}]}}
        for index in range(number)
    ]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def long(name: str, label: str, namespace: str = "default", **more: Any) -> objects.Pod:
    pod = raw_pod(name, batch_cpu="2k", **more)
    metadata = msgspec.structs.replace(pod.metadata, namespace=namespace, labels={"word": label})
    spec = msgspec.structs.replace(pod.spec, affinity=preferred(TERMS))
    made: objects.Pod = msgspec.structs.replace(pod, metadata=metadata, spec=spec)
    return made


def word(world: World, name: str, namespace: str = "default") -> str:
    record = world.cache.pods.find(namespace, name)
    return record.pod.labels["word"] if record is not None else ""


def test_of_a_long_pod_that_is_written_again_and_again_the_newest_word_is_read_at_times() -> None:
    """A tenth of the time is for such words; an online pod that comes among them is placed at once."""
    world = World().see(raw_node(), long("big", "first"))
    world.turn()
    assert word(world, "big") == "first"
    world.see(long("big", "second"), long("big", "third"), raw_pod("web"))
    world.turn(after=0.05)
    assert (word(world, "big"), world.binder.assigned) == ("first", {"web": "n1"})
    assert world.loop._long.next_due() is not None
    world.turn(after=0.1)
    assert word(world, "big") == "third"
    assert world.loop._long.next_due() is None


def test_a_turn_reads_one_and_namespaces_take_turns() -> None:
    """Whoever has many such pods keeps others from no more than their turn."""
    world = World().see(*(long(f"e{index}", "told", "evil") for index in range(3)), long("own", "told"))
    read = []
    for _ in range(4):
        world.turn(after=1.0)
        names = [("evil", f"e{index}") for index in range(3)] + [("default", "own")]
        read.append([name for namespace, name in names if word(world, name, namespace)])
    assert read == [["e0"], ["e0", "own"], ["e0", "e1", "own"], ["e0", "e1", "e2", "own"]]


def test_what_holds_room_of_a_node_is_read_at_once() -> None:
    """A long pod that is put on a node, resized there, or deleted; other words of it wait as any."""
    world = World().see(raw_node(batch_cpu="3k"), long("big", "waits"), long("other", "waits"))
    world.turn()
    world.see(long("big", "placed", node_name="n1"), long("other", "placed", node_name="n1"))
    world.turn()
    assert (word(world, "big"), word(world, "other")) == ("placed", "placed")
    world.see(long("big", "again", node_name="n1"))
    busy = long("third", "told")
    world.see(busy).turn(after=1.0)
    assert word(world, "big") == "again"
    changed = long("big", "resized", node_name="n1")
    grown = raw_pod("big", batch_cpu="3k").spec.containers
    resized = msgspec.structs.replace(changed, spec=msgspec.structs.replace(changed.spec, containers=grown))
    world.see(resized).turn()
    assert word(world, "big") == "resized"
    world.gone(resized, busy).turn()
    assert (word(world, "big"), word(world, "third")) == ("", "")
    assert world.loop._long.next_due() is None


def test_a_pod_of_thousands_of_labels_is_long() -> None:
    """Each word of one of 100,000 took 0.2 s."""
    many = {f"l{index}": "" for index in range(PARTS)}
    world = World().see(raw_node(), raw_pod("big", labels=many | {"word": "first"}, batch_cpu="2k"))
    world.turn()
    world.see(raw_pod("big", labels=many | {"word": "second"}, batch_cpu="2k"), raw_pod("web"))
    world.turn(after=0.05)
    assert (word(world, "big"), world.binder.assigned) == ("first", {"web": "n1"})
    world.turn(after=0.1)
    assert word(world, "big") == "second"


@pytest.mark.parametrize("deep", [1, 5000])
def test_the_parts_of_a_pod(deep: int) -> None:
    """Labels, containers, amounts, terms and other words, also where they lie deep."""
    nested: Any = "x"
    for _ in range(deep):
        nested = [nested]
    pod = raw_pod("p")
    usual = parts_of(pod)

    def more(**spec: Any) -> int:
        return parts_of(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **spec))) - usual

    assert 0 < usual < 100
    assert (more(affinity=preferred(TERMS)), more(affinity={"odd": nested})) == (PARTS - 1, 0)
    assert more(node_selector={"a": "b", "c": "d"}) == 2
    assert parts_of(raw_pod("p", labels={"a": "b", "c": "d"})) == usual + 2
