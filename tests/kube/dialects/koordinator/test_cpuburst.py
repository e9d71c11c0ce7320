"""CPU bursts in NodeSLO, ConfigMap and a pod's annotation."""

from __future__ import annotations

from typing import Any

import pytest

from kube.dialects.koordinator.cpuburst import (
    ANNOTATION,
    BurstFields,
    BurstPolicyText,
    burst_layers,
    burst_overlaid,
    burst_terms,
    reads_terms,
    slo_burst,
)
from kube.dialects.koordinator.nodesettings import Sources, node_settings, read
from kube.objects import ConfigMap, Metadata, NodeSLO
from model.fault import ConfigurationFault
from model.nodesettings import NodeSettings
from model.pod.colocation import BurstTerms
from model.strategy import BurstPolicy, BurstStrategy


def config(text: str) -> ConfigMap:
    return ConfigMap(Metadata(name="c", namespace="n"), {"cpu-burst-config": text})


def slo(**fields: Any) -> NodeSLO:
    return NodeSLO(Metadata(name="n"), {"cpuBurstStrategy": fields})


def settings(sources: Sources, own: BurstStrategy | None = None) -> BurstStrategy:
    documents, faults = read(sources)
    assert faults == ()
    return node_settings(documents, NodeSettings(burst=own or BurstStrategy())).burst


def test_later_beats_earlier() -> None:
    """The agent's own, the ConfigMap's, the NodeSLO's; an empty policy says nothing."""
    own = BurstStrategy(BurstPolicy.AUTO, 500)
    assert settings(Sources(), own) == own
    cluster = config('{"clusterStrategy": {"policy": "none", "cpuBurstPercent": 40}}')
    assert settings(Sources(config_map=cluster), own) == BurstStrategy(BurstPolicy.NONE, 40)
    both = Sources(config_map=cluster, slo=slo(policy="cpuBurstOnly"))
    assert settings(both, own) == BurstStrategy(BurstPolicy.CPU_BURST, 40)
    assert settings(Sources(slo=slo(policy="")), own) == own


def test_readers() -> None:
    """Nothing without a document; what stands in one by its field."""
    assert burst_layers(None) is None and slo_burst(None) == slo_burst(NodeSLO(Metadata("n"))) == BurstFields()
    layers = burst_layers(config('{"clusterStrategy": {"cfsQuotaBurstPercent": 300}}'))
    assert layers is not None and layers.cluster.quota_pct == 300
    assert slo_burst(slo(policy="auto", sharePoolThresholdPercent=60)) == BurstFields(BurstPolicyText.AUTO, pool_pct=60)


def test_a_broken_document_leaves_the_last_one() -> None:
    """As all settings do."""
    good, _ = read(Sources(slo=slo(policy="auto")))
    after, faults = read(Sources(slo=slo(policy="always")), good)
    assert node_settings(after, NodeSettings()).burst.policy is BurstPolicy.AUTO
    assert next(map(str, faults)).startswith("NodeSLO n: spec.cpuBurstStrategy.policy: is 'always'")
    with pytest.raises(ConfigurationFault, match="cpuBurstPercent: is 0"):
        slo_burst(slo(cpuBurstPercent=0))


# the annotation's text -> what the pod says, whether it can be read
WORDS: dict[str, tuple[str, BurstTerms, bool]] = {
    "policy": ('{"policy": "cpuBurstOnly"}', BurstTerms(BurstPolicy.CPU_BURST), True),
    "off": ('{"policy": "none"}', BurstTerms(BurstPolicy.NONE), True),
    "share": ('{"cpuBurstPercent": 50}', BurstTerms(None, 50), True),
    "an empty policy": ('{"policy": ""}', BurstTerms(), True),
    "nothing": ("{}", BurstTerms(), True),
    "no object": ("auto", BurstTerms(), False),
    "another policy": ('{"policy": "max"}', BurstTerms(), False),
    "out of range": ('{"policy": "auto", "cpuBurstPercent": 10001}', BurstTerms(), False),
    "empty": ("", BurstTerms(), False),
    "too deep": ("[" * 100_000, BurstTerms(), False),
}


@pytest.mark.parametrize(("text", "expected", "readable"), WORDS.values(), ids=WORDS.keys())
def test_words_of_a_pod(text: str, expected: BurstTerms, readable: bool) -> None:
    """Its own policy and share; a text with a fault says nothing at all, as in Koordinator."""
    assert burst_terms({ANNOTATION: text}) == expected
    assert reads_terms(text) == readable


def test_without_the_annotation() -> None:
    """As the node says."""
    assert burst_terms({}) == BurstTerms()
    assert burst_overlaid(BurstStrategy(BurstPolicy.AUTO), BurstFields()) == BurstStrategy(BurstPolicy.AUTO)
