"""Which PodGroups of Volcano their queue admits: whose namespace, what is admitted already, and for how long."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from queue_world import BATCH, cpu, queue
from scheduler_builders import raw_node, raw_pod
from scheduler_fakes import World

from kube import objects


def group(name: str, millis: int, namespace: str = "default", phase: str = "Pending", **more: Any) -> Any:
    metadata = objects.Metadata(name=name, namespace=namespace, uid=f"uid-{namespace}-{name}")
    spec = {"minMember": 1, "queue": "team", "minResources": {BATCH: str(millis), **more}}
    return objects.VolcanoPodGroup(metadata, spec, objects.VolcanoPodGroupStatus(phase))


def phases(world: World) -> dict[str, str]:
    found = world.cache.gangs
    return {key: found.get(key).volcano_status.phase.value for key in sorted(found.keys)}  # type: ignore[union-attr]


def world(*items: Any, **spec: Any) -> World:
    found = World().see(raw_node(batch_cpu="4000"), queue("team", quota={"hard": cpu(1000)}, **spec), *items)
    found.turn()
    return found


def test_as_many_as_the_queue_may_have() -> None:
    """By age, then by name; who was admitted in this turn counts for the next."""
    found = world(*(group(f"g{i}", 400) for i in range(3)), group("g9", 200))
    assert phases(found) == {
        "default/g0": "Inqueue",
        "default/g1": "Inqueue",
        "default/g2": "Pending",
        "default/g9": "Inqueue",
    }


def test_a_resource_that_it_does_not_ask_for_is_no_matter() -> None:
    """Others have all that there may be of it."""
    found = world(group("all", 1000, phase="Inqueue"), group("none", 0))
    assert phases(found)["default/none"] == "Inqueue"


@pytest.mark.parametrize("phase", ["Pending", "Inqueue"])
def test_a_namespace_that_the_queue_is_not_for(phase: str) -> None:
    """Its PodGroups are not admitted, and those that say they are keep nobody out."""
    theirs = group("theirs", 1000, "evil", phase)
    found = world(theirs, group("ours", 1000), admissionControl={"namespaces": ["default"]})
    assert phases(found) == {"default/ours": "Inqueue", "evil/theirs": phase}


@pytest.mark.parametrize("pods", [0, 1])
def test_nobody_waits_for_ever_for_pods_that_are_not_made(pods: int) -> None:
    """Five minutes after it kept somebody out it does so no more, whatever it makes of what it asked for."""
    member = raw_pod("m", batch_cpu="100", annotations={"scheduling.k8s.io/group-name": "first"})
    scheduler_gated = msgspec.structs.replace(member, spec=msgspec.structs.replace(member.spec, scheduling_gates=[{}]))
    found = world(group("first", 1000), group("second", 1000), *[scheduler_gated] * pods)
    found.turn(after=299.0)
    assert phases(found)["default/second"] == "Pending"
    due = found.cycle.next_due()
    assert due is not None and due <= found.clock.now + 1.0
    found.turn(after=1.0)
    assert phases(found)["default/second"] == "Inqueue"


def test_who_waits_longest_comes_first() -> None:
    """Whatever the names: one that is made again has no earlier turn."""
    again, waits = group("a", 1000), group("z", 1000)
    metadata = msgspec.structs.replace(again.metadata, creation_timestamp=datetime.fromtimestamp(50.0, UTC))
    found = world(msgspec.structs.replace(again, metadata=metadata), waits)
    assert phases(found) == {"default/a": "Pending", "default/z": "Inqueue"}


def test_many_that_wait_have_their_turns() -> None:
    """A turn looks at some; the others are due soon, until all had theirs."""
    found = World().see(raw_node(batch_cpu="4000"), queue("team", quota={"hard": cpu(0)}))
    found.see(*(group(f"g{i:03}", 1) for i in range(600))).turn()
    found.see(queue("team", quota={"hard": cpu(1000)}))
    for admitted in (256, 344, 600):
        due = found.cycle.next_due()
        assert due is not None and due <= found.clock.now + 1.0
        found.turn(after=1.0)
        assert list(phases(found).values()).count("Inqueue") == admitted
    found.turn(after=1.0)
    assert found.cycle.next_due() is None


def test_resources_that_nobody_has() -> None:
    """Are no reason to wait, however many it names."""
    found = world(group("g", 100, **{f"example.com/r{i}": "1" for i in range(100)}))
    assert phases(found) == {"default/g": "Inqueue"}
