"""deploy/crds/noderesourcetopologies.yaml takes what the agent writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from embedded.tests.apiserver.conftest import api
from kube.dialects.koordinator.topology import NodeResourceTopology, changes, document, zones
from model.node import Node
from model.resources import BATCH_CPU, CPU, MEMORY, ResourceVector
from model.topology import CpuBasics, CpuInfo, NodeTopology, NumaNode, Processor, SharePools, Zone

__all__ = ["api"]
DEFINITION = Path(__file__).parents[4] / "deploy/crds/noderesourcetopologies.yaml"
OBJECTS = "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies"
AMOUNTS = ResourceVector({CPU: 2000, MEMORY: 1 << 30})
REPORT = NodeTopology(
    CpuInfo(CpuBasics("Xeon"), (Processor(0, 0, 0, 0),), (NumaNode(0, (0,), 1 << 30),)),
    (Zone(0, "node-0", AMOUNTS, AMOUNTS),),
    SharePools(),
)


def body(lent: int) -> dict[str, Any]:
    return document(Node("n", uid="u"), REPORT, {0: ResourceVector({BATCH_CPU: lent})})


@pytest.fixture
def topologies(api: Any) -> Any:
    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", yaml.safe_load(DEFINITION.read_text()))
    api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    return api


def current(api: Any) -> NodeResourceTopology:
    return msgspec.convert(api.get(f"{OBJECTS}/n"), NodeResourceTopology)


def test_the_document_is_stored_whole(topologies: Any) -> None:
    """No field is unknown to the schema, and nothing differs afterwards."""
    answer = topologies.raw("POST", f"{OBJECTS}?fieldValidation=Strict", body(500))
    assert (answer.status, answer.warnings) == (201, ())
    assert changes(current(topologies), body(500)) == {}


def test_a_patch_brings_it_up_to_date_once(topologies: Any) -> None:
    """The zone's new amount is there; the same patch again was made from an older version: 409."""
    topologies.post(OBJECTS, body(500))
    patch = changes(current(topologies), body(700))
    assert topologies.patch(f"{OBJECTS}/n", patch)[0] == 200
    assert zones(current(topologies))[0].allocatable[BATCH_CPU] == 700
    assert topologies.patch(f"{OBJECTS}/n", patch)[0] == 409


def test_a_zone_without_amounts_is_refused(topologies: Any) -> None:
    """As upstream: a row has a name and its three amounts."""
    wrong = body(500)
    del wrong["zones"][0]["resources"][0]["available"]
    code, status = topologies.call("POST", OBJECTS, wrong)
    assert code == 422 and status["details"]["causes"][0]["field"] == "zones[0].resources[0].available"
