"""What no history of events may lead to."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_builders import raw_group, raw_node, raw_pod
from scheduler_fakes import World

from model.fault import KubernetesFault

gangs = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 600)), min_size=1, max_size=4)
nodes = st.lists(st.integers(0, 1500), min_size=1, max_size=4)


def run(capacities: list[int], shapes: list[tuple[int, int, int]], failing: set[str]) -> World:
    """Gangs of (members, minimum, request each) arrive one by one; bindings of `failing` pods fail once."""
    world = World().see(*(raw_node(f"n{i}", batch_cpu=str(cpu)) for i, cpu in enumerate(capacities)))
    world.binder.failures = {name: KubernetesFault("POST", "500", status=500) for name in failing}
    seen: set[str] = set()
    for number, (count, minimum, size) in enumerate(shapes):
        group = f"g{number}"
        world.see(raw_group(group, minimum))
        world.see(*(raw_pod(f"{group}-{i}", group=group, batch_cpu=str(size), created=number) for i in range(count)))
        world.turn(after=20.0)
        for name in world.binder.assigned.keys() - seen:
            owner = int(name[1 : name.index("-")])
            pod = raw_pod(
                name,
                group=f"g{owner}",
                batch_cpu=str(shapes[owner][2]),
                created=owner,
                node_name=world.binder.assigned[name],
            )
            world.see(pod)
        seen = set(world.binder.assigned)
    for _ in range(4):
        world.turn(after=20.0)
    return world


@settings(max_examples=60)
@given(nodes, gangs, st.sets(st.sampled_from([f"g{g}-{i}" for g in range(4) for i in range(4)]), max_size=3))
def test_no_node_over_committed_and_no_gang_in_part(
    capacities: list[int], shapes: list[tuple[int, int, int]], failing: set[str]
) -> None:
    """Whatever fails on the way, nodes hold what they lend, and without failures a gang is whole or not bound."""
    world = run(capacities, shapes, failing)
    used: Counter[str] = Counter()
    bound: Counter[int] = Counter()
    for name, node in world.binder.assigned.items():
        owner = int(name[1 : name.index("-")])
        used[node] += shapes[owner][2]
        bound[owner] += 1
    assert all(used[f"n{i}"] <= cpu for i, cpu in enumerate(capacities))
    touched = {int(name[1 : name.index("-")]) for name in failing}
    for owner, (_, minimum, _) in enumerate(shapes):
        if owner not in touched:
            assert bound[owner] == 0 or bound[owner] >= minimum
    assert run(capacities, shapes, failing).binder.assigned == world.binder.assigned
