"""Koordinator's labels and annotations of pods and nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kube.dialects.koordinator import labels
from model.fault import ConfigurationFault
from model.node import Node
from model.resources import ResourceVector

ANNOTATION = "node.koordinator.sh/"


def node(**annotations: str) -> Node:
    return Node("n", annotations={ANNOTATION + name.replace("_", "-"): text for name, text in annotations.items()})


def test_third_party_allocations() -> None:
    """Only koord-batch counts, summed by resource."""
    text = """{"allocations": [
        {"name": "yarn", "priority": "koord-batch", "resources": {"kubernetes.io/batch-cpu": "2k"}},
        {"name": "other", "priority": "koord-batch",
         "resources": {"kubernetes.io/batch-cpu": 500, "kubernetes.io/batch-memory": "1Gi"}},
        {"name": "mid", "priority": "koord-mid", "resources": {"kubernetes.io/mid-cpu": "1k"}}]}"""
    found = labels.third_party(node(thirdPartyAllocations=text))
    assert found == ResourceVector({"kubernetes.io/batch-cpu": 2500, "kubernetes.io/batch-memory": 1 << 30})


@pytest.mark.parametrize("text", ["{}", '{"allocations": []}', '{"allocations": null}'])
def test_third_parties_that_took_nothing(text: str) -> None:
    """Zero of everything, which is not the same as a Node that does not speak of them."""
    assert labels.third_party(node(thirdPartyAllocations=text)) == ResourceVector()
    assert labels.third_party(Node("n")) is None


def test_ratio_and_raw_allocatable() -> None:
    """Both are None on a node that does not carry them."""
    found = node(cpu_normalization_ratio="1.20", raw_allocatable='{"cpu": "7500m"}')
    assert labels.normalization_ratio(found) == 1.2
    assert labels.raw_allocatable(found) == ResourceVector({"cpu": 7500})
    assert labels.normalization_ratio(Node("n")) is None and labels.raw_allocatable(Node("n")) is None


READERS: dict[str, Callable[[Node], object]] = {
    "thirdPartyAllocations": labels.third_party,
    "cpu_normalization_ratio": labels.normalization_ratio,
    "raw_allocatable": labels.raw_allocatable,
}
BROKEN_ANNOTATIONS: dict[str, tuple[str, str, str]] = {
    "no list": ("thirdPartyAllocations", '{"allocations": 1}', ".allocations: is 1"),
    "a third party's quantity": (
        "thirdPartyAllocations",
        '{"allocations": [{"resources": {"kubernetes.io/batch-cpu": true}}]}',
        ".allocations[0].resources.kubernetes.io/batch-cpu: True is not a quantity",
    ),
    "a ratio below 1": ("cpu_normalization_ratio", "0.50", ": is '0.50' (write a number from 1.00 to 5.00)"),
    "a ratio above 5": ("cpu_normalization_ratio", "5.01", ": is '5.01'"),
    "a ratio that is none": ("cpu_normalization_ratio", "nan", ": is 'nan'"),
    "raw allocatable": ("raw_allocatable", '{"cpu": {}}', ".cpu: {} is not a quantity"),
}


@pytest.mark.parametrize(("name", "text", "told"), BROKEN_ANNOTATIONS.values(), ids=BROKEN_ANNOTATIONS.keys())
def test_a_broken_annotation_is_named(name: str, text: str, told: str) -> None:
    """Node, annotation, field, what stands there and what to write."""
    with pytest.raises(ConfigurationFault) as raised:
        READERS[name](node(**{name: text}))
    assert f"Node n: annotation {ANNOTATION}{name.replace('_', '-')}{told}" in str(raised.value)


ORIGIN = ANNOTATION + "originExtendedAllocatable"


def test_lending_annotations() -> None:
    """Two decimals, plain integers, keys in order; without third parties the origin goes, an unknown ratio stays."""
    assert labels.lending_annotations(None, None) == {ORIGIN: None}
    told = labels.lending_annotations({"kubernetes.io/batch-memory": 5, "kubernetes.io/batch-cpu": 1500}, 1.2)
    assert told == {
        ORIGIN: '{"resources":{"kubernetes.io/batch-cpu":"1500","kubernetes.io/batch-memory":"5"}}',
        ANNOTATION + "cpu-normalization-ratio": "1.20",
    }


PINNED: dict[str, tuple[str, labels.PinnedTo]] = {
    "nothing": ("", labels.PinnedTo()),
    "cpuset": ('{"cpuset": "0-3"}', labels.PinnedTo("0-3")),
    "zones": (
        '{"numaNodeResources": [{"node": 1, "resources": {"cpu": "2"}}, {"node": 0}, {"node": 1}]}',
        labels.PinnedTo("", (0, 1)),
    ),
    "no JSON": ("{", labels.PinnedTo()),
    "a wrong list": ('{"cpuset": "a", "numaNodeResources": [{"node": 0}]}', labels.PinnedTo("", (0,))),
    "a negative zone": ('{"cpuset": "0", "numaNodeResources": [{"node": -1}]}', labels.PinnedTo("0")),
    "a zone no machine has": ('{"numaNodeResources": [{"node": 65536}, {"node": 2}]}', labels.PinnedTo("", (2,))),
    "a zone that is no number": ('{"cpuset": "0", "numaNodeResources": [{"node": "1"}]}', labels.PinnedTo()),
    "fields in capitals": ('{"CPUSet": "0-1", "NUMANodeResources": [{"Node": 1}]}', labels.PinnedTo("0-1", (1,))),
}


@pytest.mark.parametrize(("text", "expected"), PINNED.values(), ids=PINNED.keys())
def test_what_the_scheduler_pinned_a_pod_to(text: str, expected: labels.PinnedTo) -> None:
    """An unreadable part of a status pins to nothing; an unreadable cpuset keeps the zones."""
    assert labels.pinned_to({"scheduling.koordinator.sh/resource-status": text}) == expected
