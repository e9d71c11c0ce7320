"""CPUs of system-class pods alone, from a Node's annotation."""

from __future__ import annotations

import pytest

from kube.dialects.koordinator.systemqos import ANNOTATION_SYSTEM_QOS, system_cpus
from model.fault import ConfigurationFault
from model.node import Node

TOLD: dict[str, tuple[str | None, tuple[int, ...]]] = {
    "no annotation": (None, ()),
    "empty": ("", ()),
    "exclusive by default": ('{"cpuset": "3,0-1"}', (0, 1, 3)),
    "exclusive": ('{"cpuset": "2", "cpusetExclusive": true}', (2,)),
    "shared": ('{"cpuset": "2", "cpusetExclusive": false}', ()),
    "no list": ('{"cpusetExclusive": true}', ()),
    "null": ('{"cpuset": null, "cpusetExclusive": null}', ()),
    "names in other cases": ('{"CPUSet": "1"}', (1,)),
    "fields of a newer version": ('{"cpuset": "1", "weight": []}', (1,)),
}


def node(text: str | None) -> Node:
    return Node("n", annotations={} if text is None else {ANNOTATION_SYSTEM_QOS: text})


@pytest.mark.parametrize(("text", "cpus"), TOLD.values(), ids=TOLD.keys())
def test_system_cpus(text: str | None, cpus: tuple[int, ...]) -> None:
    """Those nobody else may use, ascending."""
    assert system_cpus(node(text)) == cpus


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "Node n: annotation node.koordinator.sh/system-qos-resource: is a list"),
        ('{"cpuset": "3-1"}', "system-qos-resource.cpuset: '3-1' is not a CPU list"),
        ('{"cpuset": "1", "cpusetExclusive": "no"}', "system-qos-resource.cpusetExclusive: is 'no'"),
    ],
)
def test_broken(text: str, told: str) -> None:
    """The node, the annotation, the field and what to write."""
    with pytest.raises(ConfigurationFault) as fault:
        system_cpus(node(text))
    assert told in str(fault.value)
