"""koord-scheduler-config."""

from __future__ import annotations

import pytest

from kube.dialects.koordinator.schedulerconfig import CoschedulingArgs, SchedulerConfig, read
from model.fault import ConfigurationFault
from model.workload import MatchPolicy
from tests.kube.test_yamldocuments import INVALID

TYPED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: LeastAllocated}}
      - name: Coscheduling
        args:
          apiVersion: kubescheduler.config.k8s.io/v1
          kind: CoschedulingArgs
          enablePreemption: true
          defaultTimeout: 30s
          defaultMatchPolicy: only-waiting
    schedulerName: koord-scheduler
"""
PLAIN = """
kind: KubeSchedulerConfiguration
profiles: [{pluginConfig: [{name: Coscheduling, args: {enablePreemption: false}}]}]
"""

CASES: dict[str, tuple[dict[str, str], bool | None]] = {
    "no keys": ({}, None),
    "typed arguments": ({"koord-scheduler-config": TYPED}, True),
    "plain arguments": ({"config.yaml": PLAIN}, False),
    "the first key by name": ({"b": TYPED, "a": PLAIN}, False),
    "other documents beside it": ({"a": "kind: Other\n---\n" + TYPED, "b": "just words", "c": ""}, True),
    "another plugin": ({"a": PLAIN.replace("Coscheduling", "LoadAware")}, None),
    "no arguments": ({"a": PLAIN.replace(", args: {enablePreemption: false}", "")}, None),
    "null profiles": ({"a": "kind: KubeSchedulerConfiguration\nprofiles: null"}, None),
}


def coscheduling(data: dict[str, str]) -> CoschedulingArgs | None:
    return next((each.coscheduling for each in read(data).profiles if each.coscheduling), None)


@pytest.mark.parametrize(("data", "expected"), CASES.values(), ids=CASES.keys())
def test_enable_preemption(data: dict[str, str], expected: bool | None) -> None:
    """None where nothing says it."""
    found = coscheduling(data)
    assert (found.enable_preemption if found else None) is expected


def test_the_other_arguments() -> None:
    """Timeout and match policy."""
    found = coscheduling({"a": TYPED})
    assert found and (found.default_timeout, found.default_match_policy) == (30.0, MatchPolicy.ONLY_WAITING)


def profile(text: str) -> SchedulerConfig:
    """Of one profile with this content, a line of JSON or YAML."""
    return read({"k": f"kind: KubeSchedulerConfiguration\nprofiles: [{text}]"})


def plugin(name: str, args: str) -> SchedulerConfig:
    return profile(f"{{pluginConfig: [{{name: {name}, args: {{{args}}}}}]}}")


WEIGHTS: dict[str, tuple[str, dict[str, int]]] = {
    "nothing": ("{}", {}),
    "a weight": ("{score: {enabled: [{name: LoadAwareScheduling, weight: 3}]}}", {"LoadAwareScheduling": 3}),
    "no weight is 1": ("{score: {enabled: [{name: NodeAffinity}]}}", {"NodeAffinity": 1}),
    "off": ("{score: {disabled: [{name: NodeAffinity}]}}", {"NodeAffinity": 0}),
    "off and on again": (
        "{score: {disabled: [{name: NodeAffinity}], enabled: [{name: NodeAffinity, weight: 5}]}}",
        {"NodeAffinity": 5},
    ),
    "at every point": ("{multiPoint: {enabled: [{name: InterPodAffinity, weight: 9}]}}", {"InterPodAffinity": 9}),
    "the point's own word": (
        "{multiPoint: {enabled: [{name: NodeAffinity, weight: 9}]}, score: {enabled: [{name: NodeAffinity, weight: 2}]}}",
        {"NodeAffinity": 2},
    ),
    "plugins of others": ("{score: {enabled: [{name: Reservation, weight: 5000}]}}", {}),
}


@pytest.mark.parametrize(("text", "expected"), WEIGHTS.values(), ids=WEIGHTS.keys())
def test_weights_of_scores(text: str, expected: dict[str, int]) -> None:
    """As kube-scheduler merges plugin sets."""
    (found,) = profile(f"{{plugins: {text}}}").profiles
    assert dict(found.weights) == expected


def test_all_scores_off_but_one() -> None:
    """`*` stands for all of them."""
    (found,) = profile('{plugins: {score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit}]}}}').profiles
    assert {name for name, weight in found.weights if weight} == {"NodeResourcesFit"}
    assert len(found.weights) == 7


UNSERVED: dict[str, tuple[str, str]] = {
    "a plugin": ("{plugins: {filter: {enabled: [{name: ElasticQuota}]}}}", "nothing acts on plugin ElasticQuota"),
    "plugins": (
        "{plugins: {filter: {enabled: [{name: DeviceShare}, {name: NodeNUMAResource}, {name: LoadAwareScheduling}]}}}",
        "nothing acts on plugins DeviceShare, NodeNUMAResource",
    ),
    "a filter that is switched off": (
        "{plugins: {filter: {disabled: [{name: LoadAwareScheduling}]}}}",
        "plugins.filter.disabled: LoadAwareScheduling cannot be switched off there",
    ),
    "a field": (
        "{pluginConfig: [{name: Coscheduling, args: {enablePreemptoin: true}}]}",
        "args: nothing reads 'enablePreemptoin'; did you mean 'enablePreemption'?",
    ),
    "another resource": (
        "{pluginConfig: [{name: LoadAwareScheduling, args: {usageThresholds: {cpu: 1, nvidia.com/gpu: 2}}}]}",
        "usageThresholds: nothing acts on 'nvidia.com/gpu', but on cpu and memory",
    ),
}


@pytest.mark.parametrize(("text", "told"), UNSERVED.values(), ids=UNSERVED.keys())
def test_what_nothing_acts_on_is_said(text: str, told: str) -> None:
    """One sentence, with the place."""
    (sentence,) = profile(text).unserved
    assert sentence.startswith("ConfigMap koord-scheduler-config: data['k'].profiles[0]") and told in sentence


def test_fields_of_the_whole_are_said_in_one_sentence() -> None:
    """The lease and the rest are the settings file's."""
    found = read({"k": "kind: KubeSchedulerConfiguration\nleaderElection: {}\nparallelism: 3\nprofiles: []"})
    (sentence,) = found.unserved
    assert "nothing acts on leaderElection, parallelism: this scheduler's own settings say it" in sentence


def test_what_is_heeded_draws_no_word() -> None:
    """As the guide on job preemption writes it."""
    assert read({"a": TYPED}).unserved == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", r"data\['k'\]: is not YAML"),
        (
            PLAIN.replace("false", "maybe"),
            r"pluginConfig\[0\].args.enablePreemption: is 'maybe' .expected true or false",
        ),
        (TYPED.replace("30s", "soon"), "defaultTimeout: is 'soon' .expected a duration such as 5m"),
        (TYPED.replace("only-waiting", "some"), "defaultMatchPolicy: is 'some' .write one of only-waiting"),
        (
            TYPED.replace("LeastAllocated", "Some"),
            "scoringStrategy.type: is 'Some' .write one of LeastAllocated, MostAllocated",
        ),
        ("kind: KubeSchedulerConfiguration\nprofiles: 3", "profiles: is 3"),
        (f"kind: KubeSchedulerConfiguration\nx: {'[' * 70}{']' * 70}", "is nested more than 64 levels deep"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, told: str) -> None:
    """ConfigMap, key and field."""
    with pytest.raises(ConfigurationFault, match=f"^ConfigMap koord-scheduler-config: .*{told}"):
        read({"k": text})


@pytest.mark.parametrize(("text", "told"), INVALID.values(), ids=INVALID)
def test_what_is_no_yaml_is_said(text: str, told: str) -> None:
    """It neither ends the program nor makes it wait."""
    with pytest.raises(
        ConfigurationFault, match=r"^ConfigMap koord-scheduler-config: data\['k'\]: is not YAML: "
    ) as refused:
        read({"k": text})
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("name", "args", "told"),
    [
        ("LoadAwareScheduling", "usageThresholds: {cpu: 101}", r"usageThresholds\['cpu'\]: is 101"),
        ("LoadAwareScheduling", "nodeMetricExpirationSeconds: -1", "nodeMetricExpirationSeconds: is -1"),
        ("LoadAwareScheduling", "aggregated: {usageAggregationType: p42}", "usageAggregationType: is 'p42'"),
        (
            "NodeResourcesFit",
            "scoringStrategy: {requestedToCapacityRatio: {shape: [{utilization: 9}, {utilization: 1}]}}",
            "shape: does not rise",
        ),
        ("InterPodAffinity", "hardPodAffinityWeight: 101", "hardPodAffinityWeight: is 101"),
    ],
)
def test_amounts_have_bounds(name: str, args: str, told: str) -> None:
    """Those of the settings that they stand for."""
    with pytest.raises(ConfigurationFault, match=told):
        plugin(name, args)


def test_a_weight_has_bounds() -> None:
    """As in kube-scheduler's own validation: 0 to 100."""
    with pytest.raises(ConfigurationFault, match=r"plugins.score.enabled\[0\].weight: is 101"):
        profile("{plugins: {score: {enabled: [{name: NodeAffinity, weight: 101}]}}}")
