"""koord-scheduler-config."""

from __future__ import annotations

import pytest

from kube.dialects.schedulerconfig import CoschedulingArgs, coscheduling
from model.fault import ConfigurationFault
from model.workload import MatchPolicy

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


@pytest.mark.parametrize(("data", "expected"), CASES.values(), ids=CASES.keys())
def test_enable_preemption(data: dict[str, str], expected: bool | None) -> None:
    """None where nothing says it."""
    assert coscheduling(data).enable_preemption is expected


def test_the_other_arguments() -> None:
    """Timeout and match policy."""
    assert coscheduling({"a": TYPED}) == CoschedulingArgs(True, 30.0, MatchPolicy.ONLY_WAITING)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", r"data\['k'\]: is not YAML"),
        (PLAIN.replace("false", "maybe"), r"pluginConfig\[0\].args.enablePreemption: is 'maybe' .expected `bool"),
        (TYPED.replace("30s", "soon"), "defaultTimeout: is 'soon' .expected a duration such as 5m"),
        (TYPED.replace("only-waiting", "some"), "defaultMatchPolicy: is 'some' .write one of only-waiting"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, told: str) -> None:
    """ConfigMap, key and field."""
    with pytest.raises(ConfigurationFault, match=f"^ConfigMap koord-scheduler-config: .*{told}"):
        coscheduling({"k": text})
