"""On a real API server: whose objects the scheduler controls is what their definition says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml
from scheduler_processes import Cluster

from kube.client import KubeClient
from model.fault import KubernetesFault
from scheduler.edge.kept_definitions import ANNOTATION, KeptDefinitions

pytestmark = pytest.mark.e2e

QUEUES = Path(__file__).parent.parent.parent.parent / "deploy/crds/optional/volcano/queues.yaml"
NAME = "queues.scheduling.volcano.sh"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"


def test_whose_they_are(cluster: Cluster) -> None:
    """Ours say so; nobody's is there, or is another's, is not ours. An answer holds for a while."""

    async def whole() -> None:
        async with await KubeClient.connect(cluster.kubeconfig, "test") as client:
            now, later = KeptDefinitions(client, again_seconds=0), KeptDefinitions(client)
            assert not await now.keeps(NAME) and not await later.keeps(NAME)
            definition = yaml.safe_load(QUEUES.read_text())
            await asyncio.to_thread(cluster.request, "POST", DEFINITIONS, definition)
            assert await now.keeps(NAME) and not await later.keeps(NAME)
            theirs = {"metadata": {"annotations": {ANNOTATION: None}}}
            await asyncio.to_thread(cluster.request, "PATCH", f"{DEFINITIONS}/{NAME}", theirs, MERGE)
            assert not await now.keeps(NAME)

    asyncio.run(whole())


def test_an_api_server_that_cannot_say(cluster: Cluster) -> None:
    """What it said before holds; before it said anything the question is open."""

    async def whole() -> None:
        async with await KubeClient.connect(cluster.kubeconfig, "test") as client:
            known = KeptDefinitions(client, again_seconds=0)
            await asyncio.to_thread(cluster.request, "POST", DEFINITIONS, yaml.safe_load(QUEUES.read_text()))
            assert await known.keeps(NAME)
            cluster.process.terminate()
            await asyncio.to_thread(cluster.process.wait)
            assert await known.keeps(NAME)
            with pytest.raises(KubernetesFault):
                await known.keeps("podgroups.scheduling.volcano.sh")

    asyncio.run(whole())
