"""The specs of NodeSLO and NodeMetric from slo-controller-config: what documents say, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube.dialects.koordinator.nodeobjects import NodeDocuments, node_metric_spec, node_slo_spec, read
from kube.dialects.koordinator.sloconfig import ColocationFields
from kube.objects import ConfigMap, Metadata


def config(**keys: Any) -> ConfigMap:
    """Keys with `_` for `-`; texts as they are, everything else as JSON."""
    data = {
        key.replace("_", "-"): value if isinstance(value, str) else json.dumps(value) for key, value in keys.items()
    }
    return ConfigMap(Metadata(name="slo-controller-config", namespace="koordinator-system"), data)


def slo(labels: dict[str, str] | None = None, **keys: Any) -> dict[str, Any]:
    documents, faults = read(config(**keys))
    assert not faults
    return node_slo_spec(documents, labels or {})


GPU = {"nodeSelector": {"matchLabels": {"pool": "gpu"}}, "name": "gpu"}
SPECS: dict[str, tuple[dict[str, Any], dict[str, str], dict[str, Any]]] = {
    "nothing said": ({}, {}, {}),
    "the cluster's values": (
        {"resource_threshold_config": {"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 60}}},
        {},
        {"resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressThresholdPercent": 60}},
    ),
    "an entry that matches is merged in": (
        {
            "resource_qos_config": {
                "clusterStrategy": {"beClass": {"cpuQOS": {"enable": True, "groupIdentity": -1}}},
                "nodeStrategies": [{**GPU, "beClass": {"cpuQOS": {"groupIdentity": 0}}}],
            }
        },
        {"pool": "gpu"},
        {"resourceQOSStrategy": {"beClass": {"cpuQOS": {"enable": True, "groupIdentity": 0}}}},
    ),
    "the first that matches alone": (
        {
            "cpu_burst_config": {
                "nodeStrategies": [{**GPU, "policy": "auto"}, {**GPU, "policy": "none", "cpuBurstPercent": 500}]
            }
        },
        {"pool": "gpu"},
        {"cpuBurstStrategy": {"policy": "auto"}},
    ),
    "an entry for others": (
        {"system_config": {"clusterStrategy": {"minFreeKbytesFactor": 100}, "nodeStrategies": [{**GPU, "x": 1}]}},
        {"pool": "web"},
        {"systemStrategy": {"minFreeKbytesFactor": 100}},
    ),
    "an entry without a selector matches nothing": (
        {"system_config": {"nodeStrategies": [{"minFreeKbytesFactor": 100}]}},
        {},
        {"systemStrategy": {}},
    ),
    "null is silent": (
        {"system_config": {"clusterStrategy": {"a": 1}, "nodeStrategies": [{**GPU, "a": None}]}},
        {"pool": "gpu"},
        {"systemStrategy": {"a": 1}},
    ),
    "an entry's list of host applications replaces the cluster's": (
        {
            "host_application_config": {
                "applications": [{"name": "nginx"}],
                "nodeConfigs": [{**GPU, "applications": [{"name": "driver"}]}],
            }
        },
        {"pool": "gpu"},
        {"hostApplications": [{"name": "driver"}]},
    ),
    "names of the document in any case": (
        {"system_config": {"ClusterStrategy": {"a": 1}, "NODESTRATEGIES": []}},
        {},
        {"systemStrategy": {"a": 1}},
    ),
}


@pytest.mark.parametrize(("keys", "labels", "spec"), SPECS.values(), ids=SPECS)
def test_node_slo_says_what_documents_say(keys, labels, spec):
    assert slo(labels, **keys) == spec


BROKEN = {
    "no JSON": "{",
    "no object": "[]",
    "cluster no object": '{"clusterStrategy": 1}',
    "entries no list": '{"nodeStrategies": {}}',
    "entry no object": '{"nodeStrategies": [1]}',
    "selector no object": '{"nodeStrategies": [{"nodeSelector": 1}]}',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_key_that_cannot_be_read_keeps_what_it_said(text):
    """Every other key takes effect; the fault names ConfigMap and key."""
    before, _ = read(config(system_config={"clusterStrategy": {"a": 1}}))
    after, faults = read(config(system_config=text, cpu_burst_config={"clusterStrategy": {"policy": "auto"}}), before)
    assert node_slo_spec(after, {}) == {"systemStrategy": {"a": 1}, "cpuBurstStrategy": {"policy": "auto"}}
    assert [
        fault.where.startswith("ConfigMap koordinator-system/slo-controller-config: system-config") for fault in faults
    ] == [True]


def test_a_broken_key_that_never_was_good_says_nothing():
    documents, faults = read(config(system_config="{"))
    assert node_slo_spec(documents, {}) == {} and len(faults) == 1


def test_a_deleted_config_map_says_nothing():
    before, _ = read(config(system_config={"clusterStrategy": {"a": 1}}))
    assert read(None, before) == (NodeDocuments(), [])


def test_node_metric_tells_how_to_measure():
    """The node's entry, then the Node's own annotation; defaults fill the rest of the policy."""
    told = {"metricAggregateDurationSeconds": 120, "nodeConfigs": [{**GPU, "metricReportIntervalSeconds": 30}]}
    documents, _ = read(config(colocation_config=told))
    own = ColocationFields(aggregate_seconds=90.0)
    assert node_metric_spec(documents, {"pool": "gpu"}, own) == {
        "metricCollectPolicy": {
            "aggregateDurationSeconds": 90,
            "reportIntervalSeconds": 30,
            "nodeAggregatePolicy": {"durations": ["5m0s", "10m0s", "30m0s"]},
            "nodeMemoryCollectPolicy": "usageWithoutPageCache",
        }
    }


def test_node_metric_is_silent_where_documents_are():
    assert node_metric_spec(NodeDocuments(), {}, None) == {}
