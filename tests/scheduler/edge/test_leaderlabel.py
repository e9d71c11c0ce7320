"""The leader's pod carries the label that its Service selects, and no other pod does."""

from __future__ import annotations

import asyncio

import pytest
from scheduler_processes import Cluster

from kube.client import KubeClient
from scheduler.edge.leaderlabel import LEADER_LABEL, LeaderLabel

pytestmark = pytest.mark.e2e


def test_put_and_removed(cluster: Cluster) -> None:
    """True while leading; other labels stay."""
    cluster.add_pod("p1")

    async def working() -> None:
        async with await KubeClient.connect(cluster.kubeconfig, "test") as client:
            label = LeaderLabel(client, "default/p1")
            await label.put(False)
            assert LEADER_LABEL not in cluster.pod("p1")["metadata"]["labels"]
            await label.put(True)
            assert cluster.pod("p1")["metadata"]["labels"][LEADER_LABEL] == "true"
            await label.remove()
            assert cluster.pod("p1")["metadata"]["labels"] == {"koordinator.sh/qosClass": "BE"}

    asyncio.run(working())


def test_who_is_no_pod_or_cannot_write_is_not_held_up(cluster: Cluster) -> None:
    """Nothing is asked of the server without a pod, and a stop does not wait for one that is gone."""

    async def working() -> None:
        async with await KubeClient.connect(cluster.kubeconfig, "test") as client:
            await LeaderLabel(client, "").put(True)
            await LeaderLabel(client, "").remove()
            await LeaderLabel(client, "default/absent").remove()

    asyncio.run(working())
