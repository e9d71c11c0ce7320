"""Koordinator's ConfigMaps: refused for what their readers refuse, warned of for what looks like a slip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from document_builders import checked, cluster, config, entry

from admission.check_result import CheckResult

GOOD: dict[str, Mapping[str, Any]] = {
    "nothing": {},
    "an empty key": {"colocation_config": ""},
    "colocation": {"colocation_config": {"enable": True, "cpuReclaimThresholdPercent": 110, "nodeConfigs": [entry()]}},
    "threshold": {
        "resource_threshold_config": {
            "clusterStrategy": {"enable": True, "cpuSuppressPolicy": "cfsQuota", "memoryEvictThresholdPercent": 80},
            "nodeStrategies": [entry(cpuEvictThresholdPercent=90)],
        }
    },
    "qos": {
        "resource_qos_config": {
            "clusterStrategy": {
                "policies": {"cpuPolicy": "groupIdentity", "netQOSPolicy": "tc"},
                "beClass": {
                    "cpuQOS": {"enable": True, "groupIdentity": -1},
                    "memoryQOS": {"wmarkRatio": 95, "wmarkMinAdj": 50},
                    "resctrlQOS": {"catRangeStartPercent": 0, "catRangeEndPercent": 30},
                    "networkQOS": {"ingressLimit": "50M", "egressLimit": 20},
                    "blkioQOS": {"blocks": [{"name": "sda", "type": "device", "ioCfg": {"ioWeightPercent": 60}}]},
                },
            }
        }
    },
    "burst": {"cpu_burst_config": {"clusterStrategy": {"policy": "auto", "cfsQuotaBurstPeriodSeconds": -1}}},
    "system": {"system_config": {"clusterStrategy": {"minFreeKbytesFactor": 100, "totalNetworkBandwidth": "10G"}}},
    "host applications": {"host_application_config": {"applications": [{"name": "nginx", "qos": "LS"}]}},
    "normalization": {"cpu_normalization_config": {"enable": True, "ratioModel": {"x": {"baseRatio": 1.2}}}},
    "amplification": {"resource_amplification_config": {"enable": True, "resourceAmplificationRatio": {"cpu": 1.5}}},
    "disjoint entries": {"system_config": {"nodeStrategies": [entry("a"), entry("b")]}},
    "other letters": {"colocation_config": {"Enable": True}},
}


@pytest.mark.parametrize("data", GOOD.values(), ids=GOOD)
def test_good_config(data: Mapping[str, Any]) -> None:
    """Nothing to say but what nobody acts on."""
    found = checked(config(**data))
    assert found.refusals == ()
    assert [
        each for each in found.warnings if not (": nothing acts on " in each or " acted on in part: " in each)
    ] == []


BAD: dict[str, tuple[Mapping[str, Any], str]] = {
    "no JSON": ({"colocation_config": "{"}, "colocation-config: cannot be read"),
    "no object": ({"colocation_config": []}, "colocation-config"),
    "colocation range": ({"colocation_config": {"midCPUThresholdPercent": 101}}, "midCPUThresholdPercent: is 101"),
    "degrade time": ({"colocation_config": {"degradeTimeMinutes": 0}}, "degradeTimeMinutes: is 0"),
    "in an entry": (
        {"colocation_config": {"nodeConfigs": [entry(cpuCalculatePolicy="x")]}},
        "nodeConfigs[0].cpuCalculatePolicy",
    ),
    "suppress range": (
        cluster("resource_threshold_config", cpuSuppressThresholdPercent=101),
        "cpuSuppressThresholdPercent",
    ),
    "lower above upper": (
        cluster("resource_threshold_config", memoryEvictThresholdPercent=70, memoryEvictLowerPercent=70),
        "expected memoryEvictLowerPercent below memoryEvictThresholdPercent",
    ),
    "group identity": (
        cluster("resource_qos_config", lsClass={"cpuQOS": {"groupIdentity": 3}}),
        "clusterStrategy.lsClass.cpuQOS.groupIdentity: is 3",
    ),
    "watermark": (cluster("resource_qos_config", beClass={"memoryQOS": {"wmarkMinAdj": 51}}), "wmarkMinAdj: is 51"),
    "memory priority": (cluster("resource_qos_config", beClass={"memoryQOS": {"priority": 13}}), "priority: is 13"),
    "cache range": (
        cluster("resource_qos_config", beClass={"resctrlQOS": {"catRangeStartPercent": 30, "catRangeEndPercent": 30}}),
        "catRangeStartPercent below catRangeEndPercent",
    ),
    "network policy": (cluster("resource_qos_config", policies={"netQOSPolicy": "x"}), "write one of tc, terway-qos"),
    "burst policy": (cluster("cpu_burst_config", policy="never"), "write one of none, cpuBurstOnly"),
    "burst range": (cluster("cpu_burst_config", cpuBurstPercent=0), "cpuBurstPercent: is 0"),
    "quota burst": (cluster("cpu_burst_config", cfsQuotaBurstPercent=99), "cfsQuotaBurstPercent: is 99"),
    "watermark scale": (cluster("system_config", watermarkScaleFactor=401), "watermarkScaleFactor: is 401"),
    "satisfaction without an upper share": (
        cluster("resource_threshold_config", cpuEvictBESatisfactionLowerPercent=40),
        "clusterStrategy.cpuEvictBESatisfactionLowerPercent: is 40 without cpuEvictBESatisfactionUpperPercent; "
        "set that to more than 40",
    ),
    "satisfaction without a lower share": (
        cluster("resource_threshold_config", cpuEvictBESatisfactionUpperPercent=80),
        "clusterStrategy.cpuEvictBESatisfactionUpperPercent: is 80 without cpuEvictBESatisfactionLowerPercent",
    ),
    "satisfaction upside down": (
        cluster(
            "resource_threshold_config", cpuEvictBESatisfactionLowerPercent=35, cpuEvictBESatisfactionUpperPercent=22
        ),
        "cpuEvictBESatisfactionLowerPercent: is 35, and cpuEvictBESatisfactionUpperPercent is 22; "
        "write a lower one below the upper one",
    ),
    "satisfaction upside down by an entry": (
        {
            "resource_threshold_config": {
                "clusterStrategy": {"cpuEvictBESatisfactionLowerPercent": 40, "cpuEvictBESatisfactionUpperPercent": 80},
                "nodeStrategies": [entry(cpuEvictBESatisfactionUpperPercent=30)],
            }
        },
        "nodeStrategies[0].cpuEvictBESatisfactionLowerPercent: is 40, and cpuEvictBESatisfactionUpperPercent is 30",
    ),
    "network share of more than everything": (
        cluster("resource_qos_config", lsClass={"networkQOS": {"ingressRequest": 101}}),
        "lsClass.networkQOS.ingressRequest: is 101",
    ),
    "no network share": (
        cluster("resource_qos_config", lsClass={"networkQOS": {"ingressRequest": "50a"}}),
        "expected ingressRequest to be 0 to 100 percent or a quantity such as 50M",
    ),
    "an empty network share": (
        cluster("resource_qos_config", beClass={"networkQOS": {"egressLimit": ""}}),
        "expected egressLimit to be 0 to 100 percent or a quantity such as 50M",
    ),
    "a negative network": (cluster("system_config", totalNetworkBandwidth="-1G"), "expected totalNetworkBandwidth"),
    "no seconds": (
        {"colocation_config": {"nodeConfigs": [entry(metricReportIntervalSeconds=0)]}},
        "colocation-config.nodeConfigs[0].metricReportIntervalSeconds: is 0; write 1 or more",
    ),
    "two applications": ({"host_application_config": {"applications": [{"name": "a"}, {"name": "a"}]}}, "name once"),
    "ratio": ({"cpu_normalization_config": {"defaultRatio": 0.9}}, "defaultRatio: is 0.9"),
    "amplification below one": ({"resource_amplification_config": {"resourceAmplificationRatio": {"cpu": 0.5}}}, "0.5"),
    "no name": ({"system_config": {"nodeStrategies": [entry("")]}}, "nodeStrategies[0].name: is missing"),
    "no selector": ({"system_config": {"nodeStrategies": [{"name": "a"}]}}, "nodeSelector: is empty"),
    "a selector of nothing": ({"system_config": {"nodeStrategies": [{"name": "a", "nodeSelector": {}}]}}, "is empty"),
    "a name twice": (
        {"system_config": {"nodeStrategies": [entry("a"), entry("a", {"pool": "b"})]}},
        "name 'a' is given twice",
    ),
    "one within another": (
        {"system_config": {"nodeStrategies": [entry("a", {"x": "1"}), entry("b", {"x": "1", "y": "1"})]}},
        "'a' and 'b' select the same nodes",
    ),
}


@pytest.mark.parametrize(("data", "words"), BAD.values(), ids=BAD)
def test_bad_config(data: Mapping[str, Any], words: str) -> None:
    """One sentence that names key and field."""
    (refusal,) = checked(config(**data)).refusals
    assert words in refusal and refusal.startswith("ConfigMap koordinator-system/slo-controller-config: ")


def scheduler_config(args: str) -> bytes:
    profile = f"{{schedulerName: koord-scheduler, pluginConfig: [{{name: Coscheduling, args: {{{args}}}}}]}}"
    text = f"kind: KubeSchedulerConfiguration\nprofiles: [{profile}]"
    named = {"name": "koord-scheduler-config", "namespace": "koordinator-system"}
    return msgspec.json.encode({"metadata": named, "data": {"koord-scheduler-config": text}})


def test_the_schedulers_config() -> None:
    """What the scheduler could not read is refused, what nothing acts on draws a warning, the rest neither."""
    assert checked(scheduler_config("enablePreemption: true")) == CheckResult()
    (refusal,) = checked(scheduler_config("enablePreemption: maybe")).refusals
    assert refusal.startswith("ConfigMap koordinator-system/koord-scheduler-config: data[")
    assert "args.enablePreemption: is 'maybe'" in refusal
    found = checked(scheduler_config("controllerWorkers: 3"))
    assert (
        found.refusals == ()
        and "nothing acts on pluginConfig[Coscheduling].args.controllerWorkers" in found.warnings[0]
    )


def test_every_wrong_key_is_told_at_once() -> None:
    """Nobody likes to learn of one mistake a day."""
    both = {"system_config": "{", "colocation_config": "{"}
    assert len(checked(config(**both)).refusals) == 2


CROSSED = {"system_config": {"nodeStrategies": [entry("a", {"x": "1"}), entry("b", {"y": "1"})]}}


def test_a_node_that_two_entries_select() -> None:
    """It is found where it exists; where it might come to exist, the writer is warned."""
    apart = checked(config(**CROSSED), n1={"x": "1"}, n2={"y": "1"})
    assert apart.refusals == () and "a node may match 'a' and 'b'; then the first one holds" in apart.warnings[0]
    (refusal,) = checked(config(**CROSSED), n2={"x": "1", "y": "1"}, n1={"x": "1", "y": "1"}).refusals
    assert "'a' and 'b' both select node n1" in refusal


MISSPELT: dict[str, tuple[Mapping[str, Any], str]] = {
    "a key": ({"colocation_configs": {}}, "nothing reads 'colocation-configs'; did you mean 'colocation-config'?"),
    "a field": ({"colocation_config": {"enabled": True}}, "nothing reads 'enabled'; did you mean 'enable'?"),
    "a field of the cluster": (
        cluster("resource_threshold_config", cpuSuppressThresholdPercents=60),
        "did you mean 'cpuSuppressThresholdPercent'?",
    ),
    "a deep field": (
        cluster("resource_qos_config", beClass={"cpuQOS": {"identity": 1}}),
        "clusterStrategy.beClass.cpuQOS",
    ),
    "a field of an entry": (
        {"system_config": {"nodeStrategies": [entry(watermarkScaleFactors=1)]}},
        "nodeStrategies[0]: nothing reads 'watermarkScaleFactors'",
    ),
    "the list of entries": ({"colocation_config": {"nodeStrategies": []}}, "nothing reads 'nodeStrategies'"),
    "nonsense": ({"system_config": {"qqq": 1}}, "system-config: nothing reads 'qqq'"),
}


@pytest.mark.parametrize(("data", "words"), MISSPELT.values(), ids=MISSPELT)
def test_misspelt_fields_draw_a_warning(data: Mapping[str, Any], words: str) -> None:
    """They are not refused: a document may be newer than this program."""
    found = checked(config(**data))
    assert found.refusals == () and len(found.warnings) == 1 and words in found.warnings[0]


def test_what_was_wrong_before_does_not_stop_a_change() -> None:
    """Whoever switches lending off must not have to mend another key first."""
    old = config(colocation_config={"enable": True}, system_config="{")
    new = config(colocation_config={"enable": False}, system_config="{")
    found = checked(new, old=old)
    assert found.refusals == () and "system-config: cannot be read" in found.warnings[0]
    worse = config(colocation_config={"enable": 1}, system_config="{")
    assert len(checked(worse, old=old).refusals) == 1


SATISFACTION = {"cpuEvictBESatisfactionLowerPercent": 40, "cpuEvictBESatisfactionUpperPercent": 80}


ASLEEP: dict[str, tuple[Mapping[str, Any], str]] = {
    "satisfaction beyond what koordlet takes": (
        {**SATISFACTION, "cpuEvictBESatisfactionLowerPercent": 61},
        "cpuEvictBESatisfactionLowerPercent: is 61, which switches its rule off; write 1 to 60",
    ),
    "an upper one of everything": (
        {**SATISFACTION, "cpuEvictBESatisfactionUpperPercent": 100},
        "cpuEvictBESatisfactionUpperPercent: is 100, which switches its rule off; write at most 99",
    ),
    "CPU in use without a priority": (
        {"cpuEvictThresholdPercent": 90},
        "cpuEvictThresholdPercent: nothing acts on it without evictEnabledPriorityThreshold",
    ),
    "requests of memory": (
        {"memoryAllocatableEvictThresholdPercent": 120},
        "nothing acts on it without memoryAllocatableEvictLowerPercent and allocatableEvictPriorityThreshold",
    ),
}


@pytest.mark.parametrize(("fields", "words"), ASLEEP.values(), ids=ASLEEP)
def test_a_rule_that_is_off_all_the_same(fields: Mapping[str, Any], words: str) -> None:
    """Accepted with a sentence, in the ConfigMap and in a NodeSLO; where everything is off it is not missed."""
    slo = {"metadata": {"name": "n"}, "spec": {"resourceUsedThresholdWithBE": fields}}
    of_node = checked(msgspec.json.encode(slo), "NodeSLO", "slo.koordinator.sh")
    for found in (checked(config(**cluster("resource_threshold_config", **fields))), of_node):
        (told,) = found.warnings
        assert found.refusals == () and words in told
    assert checked(config(**cluster("resource_threshold_config", enable=False, **fields))) == CheckResult()


def test_an_entry_may_complete_what_the_cluster_began() -> None:
    """What holds on a node counts: the cluster's values, and the entry's over them."""
    rule = {**SATISFACTION, "enable": True}
    whole = {"clusterStrategy": rule, "nodeStrategies": [entry(cpuEvictBESatisfactionUpperPercent=90)]}
    assert checked(config(resource_threshold_config=whole)) == CheckResult()
    zero = cluster("resource_threshold_config", cpuEvictBESatisfactionLowerPercent=0)
    assert checked(config(**zero)) == CheckResult()


def network(**classes: Any) -> dict[str, Any]:
    return {name: {"networkQOS": {"enable": True, **fields}} for name, fields in classes.items()}


def at_odds(data: Mapping[str, Any]) -> list[str]:
    found = checked(config(**data))
    assert found.refusals == ()
    return [each.partition("resource-qos-config.")[2] for each in found.warnings if "nothing acts on" not in each]


def test_network_shares_that_do_not_go_together() -> None:
    """Koordinator accepts them: the writer is told."""
    too_much = network(lsClass={"ingressRequest": 80}, beClass={"ingressRequest": 30, "egressRequest": 30})
    (told,) = at_odds(cluster("resource_qos_config", **too_much))
    assert told == (
        "clusterStrategy.networkQOS: ingressRequest of lsClass, beClass is 110 % of the bandwidth together; "
        "write at most 100"
    )
    below = network(lsClass={"egressRequest": 50, "egressLimit": 40})
    (told,) = at_odds(cluster("resource_qos_config", **below))
    assert told == "clusterStrategy.lsClass.networkQOS.egressLimit: is less than egressRequest; write at least as much"


def test_network_shares_in_amounts() -> None:
    """Of the whole where it is known; else they are not compared."""
    shares = cluster(
        "resource_qos_config", **network(lsClass={"ingressRequest": "500M"}, beClass={"ingressRequest": 20})
    )
    assert at_odds(shares) == []
    assert at_odds({**shares, **cluster("system_config", totalNetworkBandwidth="1G")}) == []
    (told,) = at_odds({**shares, **cluster("system_config", totalNetworkBandwidth="600M")})
    assert "is 103 % of the bandwidth together" in told


@pytest.mark.parametrize(("limit", "words"), [("40M", "ingressLimit: is less than ingressRequest"), ("1G", "")])
def test_two_amounts_compare_whatever_the_whole_is(limit: str, words: str) -> None:
    shares = network(lsClass={"ingressRequest": "500M", "ingressLimit": limit})
    told = at_odds(cluster("resource_qos_config", **shares))
    assert [words in each for each in told] == ([True] if words else [])


def test_network_shares_of_an_entry() -> None:
    """Over the cluster's, and only what is new."""
    of_all = network(lsClass={"ingressRequest": 60}, beClass={"ingressRequest": 30})
    over = {"beClass": {"networkQOS": {"ingressRequest": 50}}}
    data = {"resource_qos_config": {"clusterStrategy": of_all, "nodeStrategies": [entry(**over)]}}
    (told,) = at_odds(data)
    assert told.startswith("nodeStrategies[0].networkQOS: ingressRequest of lsClass, beClass is 110 %")
    off = {"beClass": {"networkQOS": {"enable": False}}}
    data = {"resource_qos_config": {"clusterStrategy": of_all, "nodeStrategies": [entry(**over | off)]}}
    assert at_odds(data) == []
