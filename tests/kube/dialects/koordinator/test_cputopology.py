"""The CPUs a NodeResourceTopology tells of, as Koordinator and we write them."""

from __future__ import annotations

import json

import pytest

from kube.dialects.koordinator import topology
from kube.dialects.koordinator.cputopology import processors
from kube.dialects.koordinator.topology import ANNOTATION_CPU_TOPOLOGY, NodeResourceTopology
from kube.objects import Metadata
from model.fault import ConfigurationFault
from model.node import Node
from model.topology import CpuBasics, CpuInfo, NodeTopology, Processor, SharePools


def told(text: str | None) -> NodeResourceTopology:
    annotations = {} if text is None else {ANNOTATION_CPU_TOPOLOGY: text}
    return NodeResourceTopology(Metadata(name="n1", annotations=annotations))


def detail(*cpus: dict[str, int]) -> str:
    return json.dumps({"detail": cpus})


@pytest.mark.parametrize(
    ("case", "text", "expected"),
    [
        ("no annotation", None, ()),
        ("an empty one", " ", ()),
        ("no detail", '{"detail":null}', ()),
        ("by number", detail({"id": 1, "core": 1}, {"id": 0}), (Processor(0, 0, 0, 0), Processor(1, 1, 0, 0))),
        ("two threads of a core", detail({"id": 4, "core": 7}, {"id": 12, "core": 7}), (Processor(4, 4, 0, 0), Processor(12, 4, 0, 0))),
        ("cores counted again in each socket", detail({"id": 0}, {"id": 1, "socket": 1, "node": 1}), (Processor(0, 0, 0, 0), Processor(1, 1, 1, 1))),
        ("a CPU given twice counts as written last", detail({"id": 0, "node": 1}, {"id": 0, "node": 0}), (Processor(0, 0, 0, 0),)),
    ],
)  # fmt: skip
def test_processors_by_case(case: str, text: str | None, expected: tuple[Processor, ...]) -> None:
    """Each CPU once, by number, its core named by the core's lowest CPU."""
    assert processors(told(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", "NodeResourceTopology n1: annotation node.koordinator.sh/cpu-topology"),
        (detail({"core": 1}), "detail[0]"),
        (detail({"id": -1}), "detail[0].id: is -1"),
        (detail({"id": 10**9}), "detail[0].id: is 1000000000"),
    ],
)
def test_a_wrong_annotation_is_named(text: str, expected: str) -> None:
    """Object, annotation, field."""
    with pytest.raises(ConfigurationFault) as raised:
        processors(told(text))
    assert expected in str(raised.value)


def test_what_we_write_is_what_we_read() -> None:
    """The agent's own document says the machine's CPUs back."""
    cpus = (Processor(0, 0, 0, 0), Processor(1, 1, 1, 1), Processor(2, 0, 0, 0))
    body = topology.document(Node("n1"), NodeTopology(CpuInfo(CpuBasics(), cpus, ()), (), SharePools()), {})
    assert processors(told(body["metadata"]["annotations"][ANNOTATION_CPU_TOPOLOGY])) == cpus
