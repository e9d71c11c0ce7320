"""Statistics of simulated nodes as the API server asks for them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from embedded.apiserver.handlers.pod_metrics import Summary
from local.simnodes.lifecycle import USAGE
from local.simnodes.statistics import summary


def test_a_summary_reads_as_a_kubelet_s(stage: Any) -> None:
    """Node and running pods, by the very shape the server decodes."""
    stage.add_pod("p", annotations={USAGE: "cpu=0.5,memory=1"}, requests={"cpu": "4", "memory": "4Gi"})
    stage.step(3)
    stage.add_pod("new")
    stage.step(0)
    found = msgspec.json.decode(summary(stage.cluster, "sim-0", stage.clock.now), type=Summary)
    assert found.node.cpu and found.node.cpu.usage_nano_cores == 8_000_000_000
    assert [pod.pod_ref.name for pod in found.pods] == ["p"]
    container = found.pods[0].containers[0]
    assert container.cpu and container.cpu.usage_nano_cores == 2_000_000_000
    assert container.memory and container.memory.working_set_bytes == 4 << 30


def test_another_node_is_none_of_ours(stage: Any) -> None:
    """Which the server turns into 404."""
    with pytest.raises(KeyError):
        summary(stage.cluster, "elsewhere", stage.clock.now)
