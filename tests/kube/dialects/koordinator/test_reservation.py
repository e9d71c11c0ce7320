"""What of a Node is reserved, in amounts and in CPUs."""

from __future__ import annotations

import json

import pytest

from kube.dialects.koordinator.reservation import reservation, written_out
from model.fault import ConfigurationFault
from model.node import Node
from model.resources import ResourceVector
from model.topology import Processor

ANNOTATION = "node.koordinator.sh/reservation"
# Two cores of two threads each: CPU 0 with 2, CPU 1 with 3.
PROCESSORS = tuple(Processor(cpu, core=cpu % 2, socket=0, node=0) for cpu in range(4))


def node(text: str | None) -> Node:
    return Node("n", annotations={} if text is None else {ANNOTATION: text})


RESERVED: dict[str, tuple[str | None, dict[str, int]]] = {
    "resources": ('{"resources": {"cpu": "1500m", "memory": "2Gi"}}', {"cpu": 1500, "memory": 2 << 30}),
    # 0, 1, 2, 3 and 8: five CPUs, though 2 is listed twice
    "a CPU list replaces the amount of cpu": (
        '{"resources": {"cpu": "1", "memory": "1Gi"}, "reservedCPUs": "0-3,2,8", "applyPolicy": "ReservedCPUsOnly"}',
        {"cpu": 5000, "memory": 1 << 30},
    ),
    "a CPU list alone": ('{"reservedCPUs": "1-2"}', {"cpu": 2000}),
    "an empty CPU list is none": ('{"resources": {"cpu": 2}, "reservedCPUs": ""}', {"cpu": 2000}),
    "names in other cases": ('{"Resources": {"cpu": 2}, "reservedcpus": "0"}', {"cpu": 1000}),
    "fields of a newer version": ('{"resources": null, "colour": []}', {}),
    "nothing": ("", {}),
    "no annotation": (None, {}),
}


@pytest.mark.parametrize(("text", "expected"), RESERVED.values(), ids=RESERVED.keys())
def test_reserved_amounts(text: str | None, expected: dict[str, int]) -> None:
    """In base units; the count of reserved CPUs wins over the amount."""
    assert reservation(node(text)).reserved == ResourceVector(expected)


CHOSEN: dict[str, tuple[str | None, tuple[int, ...], str | None]] = {
    # the annotation, the CPUs, what is told as reservedCPUs (None: the annotation is copied as it is)
    "by number": ('{"reservedCPUs": "3", "resources": {"cpu": 2}}', (3,), None),
    "one CPU": ('{"resources": {"cpu": "1"}}', (0,), "0"),
    "a core": ('{"resources": {"cpu": "2"}}', (0, 2), "0,2"),
    "half a CPU more takes a whole one": ('{"resources": {"cpu": "2500m"}}', (0, 1, 2), "0-2"),
    "more than there are": ('{"resources": {"cpu": "99"}}', (0, 1, 2, 3), "0-3"),
    "an empty list": ('{"resources": {"cpu": "1"}, "reservedCPUs": ""}', (0,), "0"),
    "memory only": ('{"resources": {"memory": "1Gi"}}', (), None),
    "no annotation": (None, (), None),
}


@pytest.mark.parametrize(("text", "cpus", "told"), CHOSEN.values(), ids=CHOSEN.keys())
def test_an_amount_is_reserved_as_cpus(text: str | None, cpus: tuple[int, ...], told: str | None) -> None:
    """Core by core from the lowest, whatever the order they are given in; the copy names them beside all else."""
    assert reservation(node(text)).chosen(PROCESSORS[::-1]) == cpus
    copy = written_out(node(text), PROCESSORS)
    if told is None:
        assert copy == text
    else:
        assert copy is not None and text is not None
        assert json.loads(copy) == {**json.loads(text), "reservedCPUs": told}


BROKEN: dict[str, tuple[str, str]] = {
    "no JSON": ("{", ": cannot be read: Input data was truncated (write a JSON object)"),
    "no object": ("[]", ": is a list (expected an object)"),
    "a wrong quantity": ('{"resources": {"cpu": "2x"}}', ".resources.cpu: '2x' is not a quantity"),
    "a negative amount": ('{"resources": {"cpu": "-1"}}', ".resources.cpu: '-1' is negative"),
    "a wrong CPU list": ('{"reservedCPUs": "3-1"}', ".reservedCPUs: '3-1' is not a CPU list"),
    "a number for a CPU list": ('{"reservedCPUs": 4}', ".reservedCPUs: is 4 (expected a text"),
    "an unknown policy": (
        '{"applyPolicy": "Maybe"}',
        ".applyPolicy: is 'Maybe' (write one of Default, ReservedCPUsOnly)",
    ),
}


@pytest.mark.parametrize(("text", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_reservation_is_named(text: str, told: str) -> None:
    """Node, annotation, field, what stands there and what to write."""
    with pytest.raises(ConfigurationFault) as raised:
        reservation(node(text))
    assert f"Node n: annotation {ANNOTATION}{told}" in str(raised.value)
