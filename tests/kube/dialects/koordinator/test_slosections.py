"""The sections with all their ranges."""

from __future__ import annotations

from typing import Any

import pytest

from kube.dialects.koordinator.slosections import (
    amplification_layers,
    qos_layers,
    slo_sections,
    system_layers,
)
from kube.objects import ConfigMap, Metadata, NodeSLO
from model.fault import ConfigurationFault


def config(key: str, text: str) -> ConfigMap:
    return ConfigMap(Metadata(name="c", namespace="n"), {key: text})


READERS: dict[str, tuple[Any, str]] = {
    "resource-qos-config": (qos_layers, '{"clusterStrategy":{"beClass":{"cpuQOS":{"groupIdentity":-1}}}}'),
    "system-config": (system_layers, '{"clusterStrategy":{"schedFeatures":{"ID_ABSOLUTE_EXPEL":true}}}'),
    "resource-amplification-config": (amplification_layers, '{"resourceAmplificationRatio":{"cpu":1.5}}'),
}


@pytest.mark.parametrize("key", READERS)
def test_readers(key: str) -> None:
    """Each reads its key, and nothing where there is none."""
    reader, text = READERS[key]
    assert reader(config(key, text)) is not None
    assert reader(None) is reader(config("other", text)) is None


NETWORK = {"a percentage": 50, "a quantity": "50M"}


@pytest.mark.parametrize("limit", NETWORK.values(), ids=NETWORK)
def test_network_limits(limit: Any) -> None:
    """A number is a share of the node's bandwidth, a text an amount."""
    slo = NodeSLO(Metadata(name="n"), {"resourceQOSStrategy": {"beClass": {"networkQOS": {"egressLimit": limit}}}})
    assert slo_sections(slo)["resourceQOSStrategy"].be_class.network.egress_limit == limit


def test_a_fault_names_object_and_field() -> None:
    """As all dialects do."""
    slo = NodeSLO(Metadata(name="n"), {"cpuBurstStrategy": {"cfsQuotaBurstPercent": 99}})
    with pytest.raises(ConfigurationFault, match=r"^NodeSLO n: spec\.cpuBurstStrategy\.cfsQuotaBurstPercent: is 99"):
        slo_sections(slo)
