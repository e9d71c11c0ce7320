"""memoryQOS of classes and of pods, as documents write it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kube.dialects.koordinator.memoryqos import (
    ANNOTATION,
    MemoryClasses,
    memory_layers,
    memory_strategy,
    pod_memory,
    reads_pod_memory,
    slo_memory,
)
from kube.objects import ConfigMap, Metadata, NodeSLO
from model.fault import ConfigurationFault
from model.qos import RECOMMENDED, MemoryQos, MemoryQosPolicy, MemoryQosStrategy, PodMemoryQos

ALL = {
    "minLimitPercent": 1,
    "lowLimitPercent": 2,
    "throttlingPercent": 3,
    "wmarkRatio": 4,
    "wmarkScalePermill": 5,
    "wmarkMinAdj": 6,
    "priorityEnable": 1,
    "priority": 7,
    "oomKillGroup": 1,
}
EACH = MemoryQos(1, 2, 3, 4, 5, 6, 1, 7, 1)


def of_slo(strategy: Any) -> MemoryClasses:
    return slo_memory(NodeSLO(Metadata("n"), {"resourceQOSStrategy": strategy}))


def ls(**fields: Any) -> MemoryClasses:
    return of_slo({"lsClass": {"memoryQOS": fields}})


ON = RECOMMENDED.ls or MemoryQos()
# documents, the later before the earlier -> the class LS
CASES: dict[str, tuple[tuple[MemoryClasses, ...], MemoryQos | None]] = {
    "nothing": ((), None),
    "fields without the switch": ((ls(**ALL),), None),
    "on": ((ls(enable=True),), ON),
    "every field": ((ls(enable=True, **ALL),), EACH),
    "a later document": ((ls(enable=True, minLimitPercent=10), ls(minLimitPercent=20)), replace(ON, min_pct=20)),
    "a later one that is silent": ((ls(enable=True, minLimitPercent=10), ls()), replace(ON, min_pct=10)),
    "switched off later": ((ls(enable=True), ls(enable=False)), None),
    "another class": ((of_slo({"beClass": {"memoryQOS": {"enable": True}}}),), None),
    "a class without memory": ((of_slo({"lsClass": {"cpuQOS": {"enable": True}}}),), None),
}


@pytest.mark.parametrize(("documents", "expected"), CASES.values(), ids=CASES)
def test_a_class(documents: tuple[MemoryClasses, ...], expected: MemoryQos | None) -> None:
    """Off unless a document says on; Koordinator's defaults for what nobody says."""
    assert memory_strategy(documents).ls == expected


def test_each_class_by_its_name() -> None:
    """In the ConfigMap as in a NodeSLO; LSE has none of its own."""
    strategy = {f"{name}Class": {"memoryQOS": {"enable": True}} for name in ("lsr", "ls", "be", "system")}
    text = msgspec.json.encode({"clusterStrategy": strategy}).decode()
    layers = memory_layers(ConfigMap(Metadata("c", "n"), {"resource-qos-config": text}))
    assert layers is not None
    assert memory_strategy(layers.of({})) == memory_strategy((of_slo(strategy),)) == RECOMMENDED
    assert memory_layers(None) is None and memory_strategy((slo_memory(None),)) == MemoryQosStrategy()


@pytest.mark.parametrize(("field", "value"), [("minLimitPercent", 101), ("wmarkMinAdj", 51), ("priority", "1")])
def test_a_field_out_of_range(field: str, value: Any) -> None:
    """Object, field and value; what is wrong in another part of the section is nothing to memory."""
    with pytest.raises(
        ConfigurationFault, match=rf"^NodeSLO n: spec\.resourceQOSStrategy\.lsClass\.memoryQOS\.{field}"
    ):
        ls(**{field: value})
    assert of_slo({"lsClass": {"resctrlQOS": {"mbaPercent": "x"}}}) is not None


# annotation -> the pod's words
PODS: dict[str, tuple[str, PodMemoryQos | None]] = {
    "auto": ('{"policy": "auto"}', PodMemoryQos(MemoryQosPolicy.AUTO)),
    "none": ('{"policy": "none"}', PodMemoryQos(MemoryQosPolicy.NONE)),
    "fields alone": ('{"throttlingPercent": 80}', PodMemoryQos(fields=MemoryQos(throttling_pct=80))),
    "an empty policy": ('{"policy": "", "priority": 3}', PodMemoryQos(fields=MemoryQos(priority=3))),
    "all": (msgspec.json.encode({"policy": "auto", **ALL}).decode(), PodMemoryQos(MemoryQosPolicy.AUTO, EACH)),
    "an object without anything": ("{}", PodMemoryQos()),
    "letters as Go reads them": ('{"Policy": "auto"}', PodMemoryQos(MemoryQosPolicy.AUTO)),
    "empty": (" ", None),
    "another policy": ('{"policy": "some"}', None),
    "out of range": ('{"minLimitPercent": 101}', None),
    "no object": ("[]", None),
    "no JSON": ("{", None),
}


@pytest.mark.parametrize(("text", "expected"), PODS.values(), ids=PODS)
def test_a_pod(text: str, expected: PodMemoryQos | None) -> None:
    """What cannot be read says nothing, and is told of by whoever asks whether it reads."""
    assert pod_memory({ANNOTATION: text}) == expected
    assert reads_pod_memory(text) is (expected is not None)
    assert pod_memory({}) is None
