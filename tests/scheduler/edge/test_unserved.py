"""On a real API server: objects of a definition of ours that nobody acts on carry an Event, others' do not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from scheduler_processes import Cluster

from kube.client import KubeClient
from kube.dialects.unserved import STORED_ONLY, UnservedKind
from kube.events import EventRecorder
from scheduler.edge.unserved import UnservedKinds

pytestmark = pytest.mark.e2e

CRDS = Path(__file__).parent.parent.parent.parent / "deploy/crds/optional"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP, _NO_KUEUE = "kueue.x-k8s.io", "where Kueue does not run itself"
FLAVORS = "/apis/kueue.x-k8s.io/v1beta1/resourceflavors"
QUEUES = "/apis/kueue.x-k8s.io/v1beta1/namespaces/default/localqueues"


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


STORED = (
    UnservedKind(GROUP, "v1beta1", "resourceflavors", "ResourceFlavor", f"{_NO_KUEUE}, nothing counts by it"),
    UnservedKind(GROUP, "v1beta1", "localqueues", "LocalQueue", f"{_NO_KUEUE}, it holds no job back"),
    UnservedKind(GROUP, "v1beta1", "cohorts", "Cohort", f"{_NO_KUEUE}, nothing is borrowed in it"),
)
"""As an older version of ours kept them, marked so."""


class Rig:
    """What a leader runs, with a short rest between two looks."""

    def __init__(self, cluster: Cluster, client: KubeClient) -> None:
        self.cluster = cluster
        self.clock = Clock()
        self.leading = True
        self.recorder = EventRecorder(client, "test", "here")
        self.kinds = UnservedKinds(client, self.recorder, lambda: self.leading, self.clock, STORED, look_seconds=0.05)

    def define(self, file: str, **annotations: str) -> None:
        definition = yaml.safe_load((CRDS / file).read_text())
        definition["metadata"]["annotations"] = annotations or {STORED_ONLY: "true"}
        self.cluster.request("POST", DEFINITIONS, definition)

    def flavor(self, name: str) -> None:
        body = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor", "metadata": {"name": name}}
        self.cluster.request("POST", FLAVORS, body)

    def events(self) -> dict[str, Any]:
        return {each["involvedObject"]["name"]: each for each in self.cluster.events("NotActedOn")}

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not await asyncio.to_thread(done):
                await asyncio.sleep(0.05)


def play(cluster: Cluster, working: Callable[[Rig], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with await KubeClient.connect(cluster.kubeconfig, "test") as client:
            rig = Rig(cluster, client)
            running = [asyncio.create_task(work) for work in (rig.recorder.run(), rig.kinds.run())]
            try:
                await working(rig)
            finally:
                for task in running:
                    task.cancel()
                await asyncio.wait(running)

    asyncio.run(whole())


def test_an_object_that_is_only_kept_says_so(cluster: Cluster) -> None:
    """Whenever definition and object come; a namespaced one in its own namespace; once, and again before it is lost."""

    async def working(rig: Rig) -> None:
        rig.define("kueue/resourceflavors.yaml")
        rig.flavor("a100")
        await rig.until(lambda: "a100" in rig.events())
        told = rig.events()["a100"]
        assert told["message"].startswith(
            "ResourceFlavor a100: nothing acts on ResourceFlavor of kueue.x-k8s.io yet: where Kueue does not run itself"
        )
        assert (told["type"], told["involvedObject"]["apiVersion"]) == ("Warning", "kueue.x-k8s.io/v1beta1")
        rig.flavor("v100")
        rig.define("kueue/localqueues.yaml")
        queue = {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "LocalQueue",
            "metadata": {"name": "train"},
            "spec": {"clusterQueue": "all"},
        }
        cluster.request("POST", QUEUES, queue)
        await rig.until(lambda: rig.events().keys() == {"a100", "v100", "train"})
        assert [each["count"] for each in rig.events().values()] == [1, 1, 1]
        rig.clock.now += 1801.0
        await rig.until(lambda: [each["count"] for each in rig.events().values()] == [2, 2, 2])

    play(cluster, working)


def test_kinds_of_others_are_left_alone(cluster: Cluster) -> None:
    """Kueue's own definition bears no mark of ours; one that loses the mark, since it is served now, is over."""

    async def working(rig: Rig) -> None:
        rig.define("kueue/resourceflavors.yaml", **{"controller-gen.kubebuilder.io/version": "v0.16"})
        rig.flavor("theirs")
        rig.define("kueue/cohorts.yaml")
        cohorts = "/apis/kueue.x-k8s.io/v1beta1/cohorts"
        cohort = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Cohort", "metadata": {"name": "ours"}, "spec": {}}
        cluster.request("POST", cohorts, cohort)
        await rig.until(lambda: rig.events().keys() == {"ours"})
        patch = {"metadata": {"annotations": {"sublet.dev/stored-only": None}}}
        kind = "application/merge-patch+json"
        cluster.request("PATCH", f"{DEFINITIONS}/cohorts.kueue.x-k8s.io", patch, kind)
        await rig.until(lambda: not any(f._task for f in rig.kinds._followed.values()))
        rig.clock.now += 1801.0
        cohort["metadata"] = {"name": "served"}
        cluster.request("POST", cohorts, cohort)
        await asyncio.sleep(0.5)
        assert rig.events().keys() == {"ours"} and rig.events()["ours"]["count"] == 1

    play(cluster, working)


def test_a_hundred_of_a_kind_are_told(cluster: Cluster) -> None:
    """A Workload a job fills no API server with Events; nor does one that does not lead."""

    async def working(rig: Rig) -> None:
        rig.leading = False
        rig.define("kueue/resourceflavors.yaml")
        for number in range(120):
            rig.flavor(f"f{number}")
        await asyncio.sleep(0.5)
        assert rig.events() == {}
        rig.leading = True
        await rig.until(lambda: len(rig.events()) == 100)
        await asyncio.sleep(0.5)
        assert len(rig.events()) == 100

    play(cluster, working)
