"""cpuQOS of classes and of pods, as documents write it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube.dialects.koordinator.cpuqos import (
    ANNOTATION,
    CpuClasses,
    cpu_layers,
    cpu_strategy,
    pod_identity,
    reads_pod_identity,
    slo_cpu,
)
from kube.objects import ConfigMap, Metadata, NodeSLO
from model.fault import ConfigurationFault
from model.qos import USUAL_CPU, CpuQos, CpuQosStrategy


def of_slo(strategy: Any) -> CpuClasses:
    return slo_cpu(NodeSLO(Metadata("n"), {"resourceQOSStrategy": strategy}))


def be(**fields: Any) -> CpuClasses:
    return of_slo({"beClass": {"cpuQOS": fields}})


def policy(name: str) -> CpuClasses:
    return of_slo({"policies": {"cpuPolicy": name}})


# documents, the later before the earlier -> the class BE
CASES: dict[str, tuple[tuple[CpuClasses, ...], CpuQos | None]] = {
    "nothing": ((), None),
    "fields without the switch": ((be(groupIdentity=-1, schedIdle=1),), None),
    "on": ((be(enable=True),), CpuQos(-1)),
    "every field": ((be(enable=True, groupIdentity=1, schedIdle=1, coreExpeller=True),), CpuQos(1, True)),
    "an identity of 0": ((be(enable=True, groupIdentity=0),), CpuQos(0)),
    "a later document": ((be(enable=True, groupIdentity=0), be(groupIdentity=1)), CpuQos(1)),
    "a later one that is silent": ((be(enable=True, schedIdle=1), be()), CpuQos(-1, True)),
    "switched off later": ((be(enable=True), be(enable=False)), None),
    "policy coreSched": ((be(enable=True, schedIdle=1), policy("coreSched")), CpuQos(0, True)),
    "policy groupIdentity": ((be(enable=True), policy("groupIdentity")), CpuQos(-1)),
    "an empty policy": ((be(enable=True), policy("")), CpuQos(-1)),
    "a later policy": ((be(enable=True), policy("coreSched"), policy("groupIdentity")), CpuQos(-1)),
    "a policy alone": ((policy("coreSched"),), None),
    "another class": ((of_slo({"lsClass": {"cpuQOS": {"enable": True}}}),), None),
    "a class without CPU": ((of_slo({"beClass": {"memoryQOS": {"enable": True}}}),), None),
}


@pytest.mark.parametrize(("documents", "expected"), CASES.values(), ids=CASES)
def test_a_class(documents: tuple[CpuClasses, ...], expected: CpuQos | None) -> None:
    """Off unless a document says on; Koordinator's defaults for what nobody says; no identity under coreSched."""
    assert cpu_strategy(documents).be == expected


def test_each_class_by_its_name() -> None:
    """In the ConfigMap as in a NodeSLO; LSE has none of its own."""
    strategy = {f"{name}Class": {"cpuQOS": {"enable": True}} for name in ("lsr", "ls", "be", "system")}
    text = msgspec.json.encode({"clusterStrategy": strategy}).decode()
    layers = cpu_layers(ConfigMap(Metadata("c", "n"), {"resource-qos-config": text}))
    assert layers is not None
    assert cpu_strategy(layers.of({})) == cpu_strategy((of_slo(strategy),)) == USUAL_CPU
    assert cpu_layers(None) is None and cpu_strategy((slo_cpu(None),)) == CpuQosStrategy()


@pytest.mark.parametrize(("field", "value"), [("groupIdentity", 3), ("groupIdentity", -2), ("schedIdle", 2)])
def test_a_field_out_of_range(field: str, value: Any) -> None:
    """Object, field and value; what is wrong in another part of the section is nothing to CPU."""
    with pytest.raises(ConfigurationFault, match=rf"^NodeSLO n: spec\.resourceQOSStrategy\.beClass\.cpuQOS\.{field}"):
        be(**{field: value})
    assert of_slo({"beClass": {"resctrlQOS": {"mbaPercent": "x"}}}) is not None


# annotation -> the pod's own identity, whether it reads
PODS: dict[str, tuple[str, int | None, bool]] = {
    "an identity": ('{"groupIdentity": 1}', 1, True),
    "0": ('{"groupIdentity": 0}', 0, True),
    "letters as Go reads them": ('{"GroupIdentity": -1}', -1, True),
    "an object without one": ("{}", None, True),
    "out of range": ('{"groupIdentity": 3}', None, False),
    "a text": ('{"groupIdentity": "1"}', None, False),
    "empty": (" ", None, False),
    "no object": ("[]", None, False),
    "no JSON": ("{", None, False),
}


@pytest.mark.parametrize(("text", "expected", "reads"), PODS.values(), ids=PODS)
def test_a_pod(text: str, expected: int | None, reads: bool) -> None:
    """What cannot be read says nothing, and is told of by whoever asks whether it reads."""
    assert pod_identity({ANNOTATION: text}) == expected
    assert reads_pod_identity(text) is reads
    assert pod_identity({}) is None
