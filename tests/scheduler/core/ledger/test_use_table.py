"""What nodes are used of, whatever resources pods name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler_builders import pod

from model.resources import ResourceVector
from scheduler.core.ledger.use_table import UseTable
from scheduler.core.snapshot.podclass import PodClass, class_of

NODES = ("n1", "n2")
NAMES = ("cpu", "example.com/a", "example.com/b")


def asking(**amounts: int) -> PodClass:
    """A class that asks for `a` and `b` of example.com, and for cpu; scores count one cpu more."""
    requests = {name if name == "cpu" else f"example.com/{name}": amount for name, amount in amounts.items()}
    scored = ResourceVector({"cpu": amounts.get("cpu", 0) + 1})
    return class_of(pod(requests=requests, scored=scored))


steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(NODES), st.sampled_from([asking(a=1), asking(b=2, cpu=3), asking(a=4, b=5, cpu=6)])),
        st.lists(st.sampled_from(NAMES), unique=True).map(tuple),
    ),
    max_size=12,
)


@given(steps)
def test_sums_do_not_depend_on_when_a_resource_is_first_asked_for(told: list[object]) -> None:
    """Pods come before, between and after the looks that give resources their columns; taken off, nothing is left."""
    table, there = UseTable(), []
    for step in told:
        match step:
            case (str(node), PodClass() as pod_class):
                table.add((node,), pod_class)
                there.append((node, pod_class))
            case tuple(names):
                table.requested(NODES, [str(name) for name in names])
        expected = [
            [sum(dict(each.request).get(name, 0) for home, each in there if home == node) for name in NAMES]
            for node in NODES
        ]
        assert [[table.get(node, {}).get(name, 0) for name in NAMES] for node in NODES] == expected
        assert set(table) == {home for home, _ in there}
    for each in dict.fromkeys(pod_class for _, pod_class in there):
        row = table.class_requests(NAMES)[table.pod_class(each)]
        assert row.tolist() == [dict(each.request).get(name, 0) for name in NAMES]
    scored = [sum(dict(each.estimate.scored)["cpu"] for home, each in there if home == node) for node in NODES]
    assert table.scored(NODES, ("cpu",)).tolist() == [[amount] for amount in scored]
    for home, each in there:
        table.remove(home, each)
    assert dict(table) == {}
    assert not table.requested(NODES, NAMES).any()


def test_resources_that_no_node_lists_take_no_columns() -> None:
    """A pod may name thousands of them, and its author may choose its node: they cost what the pod is long."""
    table = UseTable()
    for number in range(5):
        requests = {f"example.com/{number}-{index}": 1 for index in range(1000)}
        table.add(("n1", "n1", "n2"), class_of(pod(requests=requests)))
    assert table.requested(NODES, ("cpu", "pods")).tolist() == [[0, 10], [0, 5]]
    assert table.width == 2
    assert table["n1"]["example.com/4-999"] == 2


@pytest.mark.parametrize("listed_first", [False, True])
def test_thousands_of_pods_that_ask_for_too_much_are_no_room(listed_first: bool) -> None:
    """Whoever makes pods may choose their node; once those are gone, what is left counts as before."""
    table, small, giant = UseTable(), asking(cpu=7), asking(cpu=1 << 60)
    if listed_first:
        table.requested(NODES, ("cpu",))
    table.add(("n1",), small)
    for total in (1000, 1100, 2100, 5000):
        table.add(("n1",) * (total - table.get("n1", {})["pods"] + 1), giant)
        assert table.requested(NODES, ("cpu",)).tolist()[0][0] >= 1 << 61
        assert table.scored(NODES, ("cpu",)).tolist()[0][0] >= 1 << 61
        assert table["n1"]["cpu"] >= 1 << 61
    for _ in range(5000):
        table.remove("n1", giant)
    assert table.requested(NODES, ("cpu", "pods")).tolist() == [[7, 1], [0, 0]]
