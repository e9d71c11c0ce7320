"""Samples become rates; the answers have the kubelet's form."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from embedded.cgroups.knobs import Use
from embedded.node.pods.pod_view import ContainerView, Running
from embedded.node.pods.statistics import NodeUses, RunningPod, Statistics, next_sample, use_of_machine

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MIB = 1 << 20


class Uses:
    """One pod with one container; the node uses ten times as much."""

    def __init__(self) -> None:
        self.cpu_ns = 1_000_000_000

    def use(self, pod: Any, container_id: str = "") -> Use | None:
        return Use(self.cpu_ns, 3 * MIB, 2 * MIB) if container_id in ("", "c1") else None

    def use_of_all(self) -> Use | None:
        return Use(10 * self.cpu_ns, 30 * MIB, 20 * MIB)


def test_rate() -> None:
    """From two samples; a counter that went back has none."""
    first = next_sample(None, NOW, Use(1_000, 0, 0))
    second = next_sample(first, NOW + timedelta(seconds=2), Use(1_000_001_000, 0, 0))
    assert (first.nano_cores, second.nano_cores) == (None, 500_000_000)
    assert next_sample(second, NOW + timedelta(seconds=3), Use(5, 0, 0)).nano_cores is None


def test_summary(pod: Any) -> None:
    """Node, pods and running containers, as metrics-server reads them."""
    uses, times = Uses(), iter([NOW, *[NOW + timedelta(seconds=second) for second in range(5, 25)]])
    views = (ContainerView("main", "i", Running(NOW), container_id="c1"), ContainerView("done", "i"))
    statistics = Statistics("n1", uses, lambda: [RunningPod(pod(), views)], lambda: next(times))
    statistics.sample()
    assert "usageNanoCores" not in json.loads(statistics.summary())["node"]["cpu"]
    uses.cpu_ns *= 2
    statistics.sample()
    summary = json.loads(statistics.summary())
    assert summary["node"]["nodeName"] == "n1" and summary["node"]["cpu"]["usageNanoCores"] > 0
    (found,) = summary["pods"]
    assert found["podRef"] == {"name": "web", "namespace": "shop", "uid": "u-1"}
    assert found["memory"]["workingSetBytes"] == 2 * MIB
    assert [each["name"] for each in found["containers"]] == ["main"]
    assert found["containers"][0]["cpu"]["usageCoreNanoSeconds"] == 2_000_000_000
    assert statistics.working_set_bytes(pod()) == 2 * MIB
    lines = statistics.metrics().splitlines()
    assert lines[0].startswith("node_cpu_usage_seconds_total 20 ")
    assert any(
        line.startswith('container_memory_working_set_bytes{container="main",namespace="shop",pod="web"} 2097152 ')
        for line in lines
    )


def test_machine(pod: Any) -> None:
    """A node that is the whole machine shows what the machine uses, and its pods as they are."""
    uses = NodeUses(Uses(), use_of_machine)
    whole = uses.use_of_all()
    assert whole and whole.cpu_ns > 0 and whole.working_set_bytes > 0
    assert uses.use(pod()) == Uses().use(pod())
