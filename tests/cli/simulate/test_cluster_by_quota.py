"""The node that takes the place of a cluster: as much as queues bring."""

from __future__ import annotations

import pytest

from cli.simulate.cluster_by_quota import NODE, cluster_nodes
from model.flavor.resource_flavor import ResourceFlavor
from model.queue import Queue, QuotaCell


@pytest.mark.parametrize(
    ("case", "queues", "told"),
    [
        ("their own", {"a": QuotaCell(nominal=4000), "b": QuotaCell(nominal=500)}, "4500m"),
        ("at most, where they have nothing of their own", {"a": QuotaCell(maximum=4000)}, "4000m"),
        ("no end, where one says nothing", {"a": QuotaCell(nominal=4000), "b": None}, f"{1 << 50}m"),
    ],
)
def test_how_much_there_is(case: str, queues: dict[str, QuotaCell | None], told: str) -> None:
    """Of what is requested and no queue speaks of there is no end."""
    found = (
        Queue(name, cells={("", "cpu"): cell} if cell else {}, source=f"Queue/{name}") for name, cell in queues.items()
    )
    (node,) = cluster_nodes(found, ["cpu", "x.dev/y"], {})
    assert node.metadata.name == NODE
    assert node.status.allocatable is not None
    assert (node.status.allocatable["cpu"], node.status.allocatable["x.dev/y"]) == (told, str(1 << 50)), case


def test_a_node_of_each_flavour() -> None:
    """With its labels, and as much of it as queues that name it bring; another queue has no word on it."""
    queues = (
        Queue("a", cells={("a100", "x.dev/gpu"): QuotaCell(nominal=8, maximum=8)}),
        Queue("b", cells={("a100", "x.dev/gpu"): QuotaCell(nominal=4, maximum=4)}),
        Queue("c", cells={("v100", "x.dev/gpu"): QuotaCell(nominal=2, maximum=2)}),
    )
    flavors = {"a100": ResourceFlavor("a100", {"product": "A"})}
    nodes = {node.metadata.name: node for node in cluster_nodes(queues, ["x.dev/gpu"], flavors)}
    amounts = {name: (node.status.allocatable or {})["x.dev/gpu"] for name, node in nodes.items()}
    assert amounts == {"cluster": str(1 << 50), "a100": "12", "v100": "2"}
    assert (nodes["a100"].metadata.labels or {})["product"] == "A"
