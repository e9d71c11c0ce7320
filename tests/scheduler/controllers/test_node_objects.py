"""On a real API server: every Node has a NodeMetric and a NodeSLO that say what the documents say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from scheduler_processes import Cluster

from kube import objects
from kube.client import KubeClient
from kube.events import EventRecorder
from kube.informer import Informer
from scheduler.controllers.node_objects import NodeObjects

pytestmark = pytest.mark.e2e

GROUP = "/apis/slo.koordinator.sh/v1alpha1"
MAPS = "/api/v1/namespaces/koordinator-system/configmaps"
DEPLOY = Path(__file__).parents[3] / "deploy"
BOUND_SECONDS = 20.0


class Rig:
    """The controller of a leader, fed as the scheduler feeds it."""

    def __init__(self, cluster: Cluster, client: KubeClient) -> None:
        self.request = cluster.request
        self.cluster = cluster
        self.leading = True
        self.recorder = EventRecorder(client, "koord-scheduler", "test")
        self.made = NodeObjects(client, lambda: self.leading, recorder=self.recorder)
        self.informers: list[Informer[Any]] = [
            Informer(client, "v1/nodes", objects.Node, on_change=self.made.saw_node),
            Informer(
                client, "slo.koordinator.sh/v1alpha1/nodemetrics", objects.NodeMetric, on_change=self.made.saw_metric
            ),
        ]

    def events(self) -> dict[str, str]:
        """Reason → message of those on the ConfigMap."""
        listed = self.request("GET", "/api/v1/namespaces/koordinator-system/events")["items"]
        return {item["reason"]: item["message"] for item in listed if item["involvedObject"]["kind"] == "ConfigMap"}

    def found(self, plural: str, name: str) -> Any:
        listed = self.request("GET", f"{GROUP}/{plural}")["items"]
        return next((item for item in listed if item["metadata"]["name"] == name), None)

    async def until(self, condition: Callable[[], Any]) -> Any:
        async with asyncio.timeout(BOUND_SECONDS):
            while not (answer := condition()):
                await asyncio.sleep(0.02)
            return answer

    def configure(self, **keys: Any) -> None:
        data = {key.replace("_", "-"): json.dumps(value) for key, value in keys.items()}
        body = {"metadata": {"name": "slo-controller-config"}, "data": data}
        names = [item["metadata"]["name"] for item in self.request("GET", MAPS)["items"]]
        if "slo-controller-config" in names:
            self.request("PUT", f"{MAPS}/slo-controller-config", body)
        else:
            self.request("POST", MAPS, body)


def play(cluster: Cluster, working: Callable[[Rig], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with await KubeClient.connect(cluster.kubeconfig, "test") as client:
            rig = Rig(cluster, client)
            tasks = [asyncio.create_task(each.run()) for each in (*rig.informers, rig.made, rig.recorder)]
            try:
                await working(rig)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(whole())


@pytest.fixture(autouse=True)
def furnished(cluster: Cluster) -> None:
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": "koordinator-system"}})
    for file in sorted((DEPLOY / "crds").glob("node[ms]*s.yaml")):
        definition = yaml.safe_load(file.read_text())
        cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)


def test_every_node_gets_both_and_they_follow_the_documents(cluster: Cluster) -> None:
    async def working(rig: Rig) -> None:
        rig.cluster.add_node("n1", batch_cpu=0)
        metric = await rig.until(lambda: rig.found("nodemetrics", "n1"))
        slo = await rig.until(lambda: rig.found("nodeslos", "n1"))
        node = rig.request("GET", "/api/v1/nodes/n1")["metadata"]["uid"]
        for made in (metric, slo):
            assert [owner["uid"] for owner in made["metadata"]["ownerReferences"]] == [node]
            assert made.get("spec", {}) == {}
        rig.configure(
            colocation_config={"enable": True, "metricReportIntervalSeconds": 30},
            resource_threshold_config={"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 50}},
        )
        await rig.until(lambda: rig.found("nodeslos", "n1")["spec"].get("resourceUsedThresholdWithBE"))
        assert rig.found("nodeslos", "n1")["spec"] == {
            "resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressThresholdPercent": 50}
        }
        policy = await rig.until(lambda: rig.found("nodemetrics", "n1")["spec"].get("metricCollectPolicy"))
        assert policy["reportIntervalSeconds"] == 30
        rig.configure(colocation_config={"enable": True})
        await rig.until(lambda: rig.found("nodeslos", "n1")["spec"] == {})

    play(cluster, working)


def test_a_persons_own_is_left_alone_and_a_lost_one_is_made_again(cluster: Cluster) -> None:
    async def working(rig: Rig) -> None:
        mine = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeSLO", "metadata": {"name": "n1"}}
        mine["spec"] = {"cpuBurstStrategy": {"policy": "auto"}}
        rig.request("POST", f"{GROUP}/nodeslos", mine)
        rig.configure(cpu_burst_config={"clusterStrategy": {"policy": "none"}})
        for name in ("n1", "n2"):
            rig.cluster.add_node(name, batch_cpu=0)
        await rig.until(lambda: rig.found("nodeslos", "n2"))
        assert rig.found("nodeslos", "n2")["spec"] == {"cpuBurstStrategy": {"policy": "none"}}
        assert rig.found("nodeslos", "n1")["spec"] == {"cpuBurstStrategy": {"policy": "auto"}}
        before = (await rig.until(lambda: rig.found("nodemetrics", "n1")))["metadata"]["uid"]
        rig.request("DELETE", f"{GROUP}/nodemetrics/n1")
        await rig.until(
            lambda: (rig.found("nodemetrics", "n1") or {"metadata": {"uid": before}})["metadata"]["uid"] != before
        )

    play(cluster, working)


def test_the_config_map_says_what_is_wrong_and_what_nobody_acts_on(cluster: Cluster) -> None:
    """By Events on it, which its writer sees with kubectl describe."""

    async def working(rig: Rig) -> None:
        qos = {"clusterStrategy": {"beClass": {"resctrlQOS": {"enable": True}}}}
        rig.configure(resource_qos_config=qos, colocation_config={"degradeTimeMinutes": 0})
        told = await rig.until(lambda: len(found := rig.events()) == 2 and found)
        assert told["NotActedOn"].endswith("(docs/koordinator.md): resource-qos-config.*Class.resctrlQOS")
        assert "degradeTimeMinutes: is 0" in told["ConfigurationInvalid"]

    play(cluster, working)


def test_one_that_no_longer_leads_writes_nothing(cluster: Cluster) -> None:
    async def working(rig: Rig) -> None:
        rig.leading = False
        rig.cluster.add_node("n1", batch_cpu=0)
        await rig.until(lambda: all(each.synced.is_set() for each in rig.informers) and not rig.made._reconciler._due)
        assert rig.found("nodemetrics", "n1") is None and rig.found("nodeslos", "n1") is None

    play(cluster, working)
