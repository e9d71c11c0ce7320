"""On a real API server: what a silent agent offered goes to 0, unless it is heard of in the meantime."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scheduler_processes import Cluster

from kube import objects
from kube.client import KubeClient, path_of
from kube.events import EventRecorder
from kube.informer import Change, ChangeKind
from scheduler.controllers.withdrawal import Withdrawer
from scheduler.controllers.withdrawal_plan import WithdrawPolicy

pytestmark = pytest.mark.e2e

CPU, MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
HEARD, HEARD_SECONDS = "2026-11-21T00:00:00Z", 1_795_219_200.0


class Clock:
    now = HEARD_SECONDS + 86_400

    def __call__(self) -> float:
        return self.now


class Rig:
    """A node n1 whose agent spoke once, and the withdrawer of a leader."""

    def __init__(self, cluster: Cluster, client: KubeClient) -> None:
        self._cluster = cluster
        self._client = client
        self.clock = Clock()
        self.leading = True
        self.recorder = EventRecorder(client, "test", "here")
        self.withdrawer = Withdrawer(client, self.recorder, lambda: self.leading, self.clock, WithdrawPolicy())
        cluster.add_node("n1", batch_cpu=1000)
        self.beat(HEARD)

    def beat(self, moment: str, **amounts: str) -> None:
        condition = {"type": "ColocationReady", "status": "True", "reason": "LendingActive", "message": "lends"}
        condition |= {"lastHeartbeatTime": moment, "lastTransitionTime": HEARD}
        status = {"conditions": [condition], "allocatable": amounts, "capacity": amounts}
        kind = "application/strategic-merge-patch+json"
        self._cluster.request("PATCH", "/api/v1/nodes/n1/status", {"status": status}, kind)

    @property
    def node(self) -> Any:
        return self._cluster.request("GET", "/api/v1/nodes/n1")["status"]

    def condition(self) -> Any:
        return next(each for each in self.node["conditions"] if each["type"] == "ColocationReady")

    async def see(self) -> None:
        node = await self._client.get(path_of("v1/nodes", name="n1"), objects.Node)
        self.withdrawer.saw(Change(ChangeKind.MODIFIED, node))

    async def act(self) -> None:
        for word in self.withdrawer.overdue():
            await self.withdrawer._withdraw(word.node)


def play(cluster: Cluster, working: Callable[[Rig], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with await KubeClient.connect(cluster.kubeconfig, "test") as client:
            await working(Rig(cluster, client))

    asyncio.run(whole())


def test_silence_is_withdrawn_from_once(cluster: Cluster) -> None:
    """Both amounts go to 0 in capacity and allocatable, native ones stay; the heartbeat stays the agent's own."""

    async def working(rig: Rig) -> None:
        await rig.see()
        rig.clock.now += 179
        await rig.act()
        assert rig.node["allocatable"][CPU] == "1k"
        rig.clock.now += 1
        await rig.act()
        for amounts in (rig.node["allocatable"], rig.node["capacity"]):
            assert (amounts[CPU], amounts[MEMORY], amounts["cpu"]) == ("0", "0", "4")
        told = rig.condition()
        assert (told["status"], told["reason"], told["lastHeartbeatTime"]) == ("False", "AgentNotRunning", HEARD)
        assert told["lastTransitionTime"] != HEARD
        await rig.see()
        assert rig.withdrawer.overdue() == []

    play(cluster, working)


def test_an_agent_that_returns_wins(cluster: Cluster) -> None:
    """A write that the withdrawer has not heard of yet makes its own a conflict; then the node is alive."""

    async def working(rig: Rig) -> None:
        await rig.see()
        rig.clock.now += 1000
        rig.beat("2026-11-21T01:00:00Z")
        await rig.act()
        assert rig.node["allocatable"][CPU] == "1k" and rig.condition()["status"] == "True"
        await rig.see()
        assert rig.withdrawer.overdue() == []

    play(cluster, working)


def test_nothing_is_written_by_who_does_not_lead(cluster: Cluster) -> None:
    """The fence holds here too."""

    async def working(rig: Rig) -> None:
        await rig.see()
        rig.clock.now += 1000
        rig.leading = False
        await rig.act()
        assert rig.node["allocatable"][CPU] == "1k"

    play(cluster, working)


def test_the_time_is_koordinators(cluster: Cluster) -> None:
    """degradeTimeMinutes of the cluster, and of the first entry that matches the node's labels."""

    async def working(rig: Rig) -> None:
        text = (
            '{"enable": true, "degradeTimeMinutes": 60, "nodeConfigs": [{"nodeSelector": {"matchLabels": {"a": "b"}}, '
        )
        data = {"colocation-config": text + '"degradeTimeMinutes": 2}]}'}
        config = objects.ConfigMap(objects.Metadata("slo-controller-config", "koordinator-system"), data)
        rig.withdrawer._configured(Change(ChangeKind.ADDED, config))
        rig.clock.now = HEARD_SECONDS
        await rig.see()
        rig.clock.now += 3599
        assert rig.withdrawer.overdue() == []
        rig.clock.now += 1
        assert [word.node for word in rig.withdrawer.overdue()] == ["n1"]
        rig.withdrawer._configured(
            Change(ChangeKind.MODIFIED, objects.ConfigMap(config.metadata, {"colocation-config": "{"}))
        )
        rig.clock.now -= 1
        assert rig.withdrawer.overdue() == []
        rig.withdrawer._configured(Change(ChangeKind.DELETED, config))
        assert [word.node for word in rig.withdrawer.overdue()] == ["n1"]

    play(cluster, working)
