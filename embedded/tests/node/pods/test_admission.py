"""The kubelet's last word: admit, or reject with the reason and words of a real one."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.pods.admission import judge, judge_under_pressure
from embedded.resources import ResourceVector as R

NODE = R({"cpu": 2000, "memory": 4096, "pods": 3, "kubernetes.io/batch-cpu": 1000})


@pytest.mark.parametrize(
    ("wanted", "admitted", "reason"),
    [
        pytest.param({"cpu": 2000}, [], None, id="exactly fits"),
        pytest.param({"cpu": 2001}, [], "OutOfcpu", id="too much cpu"),
        pytest.param({"cpu": 1500}, [{"cpu": 600}], "OutOfcpu", id="cpu taken"),
        pytest.param({"cpu": 3000, "memory": 9999}, [], "OutOfcpu", id="first lack in the kubelet's order"),
        pytest.param({"memory": 4097}, [], "OutOfmemory", id="memory"),
        pytest.param({}, [{}, {}, {}], "OutOfpods", id="pods"),
        pytest.param({}, [{"cpu": 2000}], None, id="nothing asked is always there"),
        pytest.param({"kubernetes.io/batch-cpu": 1000}, [], None, id="batch fits"),
        pytest.param(
            {"kubernetes.io/batch-cpu": 1},
            [{"kubernetes.io/batch-cpu": 1000}],
            "OutOfkubernetes.io/batch-cpu",
            id="batch taken",
        ),
        pytest.param({"kubernetes.io/batch-memory": 1}, [], "OutOfkubernetes.io/batch-memory", id="batch key missing"),
        pytest.param({"kubernetes.io/batch-memory": 0}, [], None, id="zero of a missing key"),
        pytest.param({"nvidia.com/gpu": 1}, [], None, id="extended resource unknown to the node is not judged"),
    ],
)
def test_resources(wanted: dict[str, int], admitted: list[dict[str, int]], reason: str | None) -> None:
    """Requests against allocatable minus what admitted pods hold."""
    verdict = judge(R(wanted), [R(each) for each in admitted], NODE, node_selector={}, node_labels={})
    assert (verdict.reason if verdict else None) == reason


def test_words() -> None:
    """The message is the kubelet's, numbers in base units."""
    verdict = judge(R({"cpu": 4000}), [R({"cpu": 1000})], NODE, node_selector={}, node_labels={})
    assert verdict is not None
    assert verdict.message == (
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 4000, used: 1000, capacity: 2000"
    )


def test_node_selector() -> None:
    """A pod bound against its node selector is rejected before resources are looked at."""
    verdict = judge(R(), [], NODE, node_selector={"zone": "a"}, node_labels={"zone": "b"})
    assert verdict is not None and verdict.reason == "NodeAffinity"


@pytest.mark.parametrize(
    ("pressures", "qos", "spec", "admitted"),
    [
        pytest.param([], "BestEffort", {}, True, id="no pressure"),
        pytest.param(["MemoryPressure"], "BestEffort", {}, False, id="memory: it would go first"),
        pytest.param(["MemoryPressure"], "Burstable", {}, True, id="memory: it asked for some"),
        pytest.param(
            ["MemoryPressure"],
            "BestEffort",
            {"tolerations": [{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}]},
            True,
            id="memory: tolerated",
        ),
        pytest.param(["DiskPressure"], "Guaranteed", {}, False, id="disk: everybody needs it"),
        pytest.param(["MemoryPressure", "DiskPressure"], "Burstable", {}, False, id="both"),
        pytest.param(["DiskPressure"], "BestEffort", {"priority": 2_000_001_000}, True, id="the system's own"),
    ],
)
def test_pressure(pod: Any, pressures: list[str], qos: str, spec: dict[str, Any], admitted: bool) -> None:
    """A node that is short of something takes nobody whom it would evict next."""
    rejection = judge_under_pressure(pod(**spec), KubernetesQoS(qos), frozenset(pressures))
    assert (rejection is None) is admitted
    assert admitted or (
        rejection and rejection.reason == "Evicted" and " ".join(sorted(pressures)) in rejection.message
    )
