"""On a real API server: the ElasticQuota of a profile is made, and kept at what its nodes have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from scheduler_processes import Cluster

from kube import objects
from kube.client import KubeClient
from kube.informer import Change, ChangeKind
from scheduler.controllers.quota_profiles import DEFINITION, QuotaProfiles

pytestmark = pytest.mark.e2e

CRDS = Path(__file__).parent.parent.parent.parent / "deploy/crds/optional/koordinator"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PROFILES = "/apis/quota.koordinator.sh/v1alpha1/namespaces/default/elasticquotaprofiles"
QUOTAS = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas"
MERGE = "application/merge-patch+json"


def node(name: str, cpu: str, pool: str = "a") -> objects.Node:
    metadata = objects.Metadata(name, labels={"pool": pool})
    return objects.Node(metadata, status=objects.NodeStatus(allocatable={"cpu": cpu, "memory": "1Gi"}))


class Rig:
    """A leader's controller, and the definitions that a person created."""

    def __init__(self, cluster: Cluster, client: KubeClient) -> None:
        self.cluster = cluster
        self.kept = True
        self.asked: list[str] = []
        self.profiles = QuotaProfiles(client, lambda: True, self._keeps, every_seconds=0.05)
        for file in ("elasticquotas.yaml", "elasticquotaprofiles.yaml"):
            cluster.request("POST", DEFINITIONS, yaml.safe_load((CRDS / file).read_text()))
        self.see(node("n1", "4"), node("n2", "2500m"), node("n3", "64", "b"))

    async def _keeps(self, definition: str) -> bool:
        self.asked.append(definition)
        return self.kept

    def see(self, *nodes: objects.Node, kind: ChangeKind = ChangeKind.MODIFIED) -> None:
        for each in nodes:
            self.profiles.saw_node(Change(kind, each))

    def profile(self, name: str = "p", **spec: Any) -> None:
        told = {"quotaName": "tree", "nodeSelector": {"matchLabels": {"pool": "a"}}, **spec}
        body = {
            "apiVersion": "quota.koordinator.sh/v1alpha1",
            "kind": "ElasticQuotaProfile",
            "metadata": {"name": name},
        }
        self.cluster.request("POST", PROFILES, body | {"spec": told})

    def quotas(self) -> dict[str, Any]:
        return {each["metadata"]["name"]: each for each in self.cluster.request("GET", QUOTAS)["items"]}

    def minimum(self) -> Any:
        return self.quotas().get("tree", {}).get("spec", {}).get("min")

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not await asyncio.to_thread(done):
                await asyncio.sleep(0.05)


def play(cluster: Cluster, working: Callable[[Rig], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with await KubeClient.connect(cluster.kubeconfig, "test") as client:
            rig = Rig(cluster, client)
            running = asyncio.create_task(rig.profiles.run())
            try:
                await working(rig)
            finally:
                running.cancel()
                await asyncio.wait([running])

    asyncio.run(whole())


def test_a_quota_is_made_and_kept(cluster: Cluster) -> None:
    """Made once the profile is there, with what its nodes have; it follows them, and what others change of it goes back."""

    async def working(rig: Rig) -> None:
        await asyncio.to_thread(rig.profile)
        await rig.until(lambda: rig.minimum() == {"cpu": "6500m", "memory": "2Gi"})
        made = rig.quotas()["tree"]
        assert made["metadata"]["labels"]["quota.scheduling.koordinator.sh/is-root"] == "true"
        rig.see(node("n1", "8"))
        await rig.until(lambda: rig.minimum() == {"cpu": "10500m", "memory": "2Gi"})
        rig.see(node("n2", "2500m"), kind=ChangeKind.DELETED)
        await rig.until(lambda: rig.minimum() == {"cpu": "8", "memory": "1Gi"})
        other = {"spec": {"min": {"cpu": "1", "pods": "5"}}, "metadata": {"labels": {"team": "x"}}}
        await asyncio.to_thread(cluster.request, "PATCH", f"{QUOTAS}/tree", other, MERGE)
        await rig.until(lambda: rig.minimum() == {"cpu": "8", "memory": "1Gi"})
        assert rig.quotas()["tree"]["metadata"]["labels"]["team"] == "x" and set(rig.asked) == {DEFINITION}

    play(cluster, working)


def test_koordinators_own_profiles_are_left_alone(cluster: Cluster) -> None:
    """Where the definition is not ours; a profile that cannot be read makes no quota, and keeps no other from its own."""

    async def working(rig: Rig) -> None:
        rig.kept = False
        await asyncio.to_thread(rig.profile)
        await rig.until(lambda: bool(rig.asked))
        assert await asyncio.to_thread(rig.quotas) == {}
        rig.kept = True
        broken = {"matchExpressions": [{"key": "pool", "operator": "Is"}]}
        await asyncio.to_thread(lambda: rig.profile("broken", quotaName="broken", nodeSelector=broken))
        await rig.until(lambda: rig.minimum() is not None)
        assert set(await asyncio.to_thread(rig.quotas)) == {"tree"}

    play(cluster, working)


async def nobody_asks(definition: str) -> bool:
    raise AssertionError(definition)


def test_what_is_switched_off_does_nothing(cluster: Cluster) -> None:
    """It ends at once, and keeps no nodes."""

    async def whole() -> None:
        async with await KubeClient.connect(cluster.kubeconfig, "test") as client:
            off = QuotaProfiles(client, lambda: True, nobody_asks, enabled=False)
            off.saw_node(Change(ChangeKind.ADDED, node("n1", "4")))
            await asyncio.wait_for(off.run(), 10)
            assert off._nodes == {}

    asyncio.run(whole())
