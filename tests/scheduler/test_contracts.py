"""What Binder and StatusWriter must do, asked of the fakes and of Kubernetes (the embedded API server) alike."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest
import yaml
from scheduler_fakes import FakeBinder, FakeWriter
from scheduler_processes import Cluster

import scheduler
from kube import objects
from kube.client import KubeClient
from kube.dialects.gangs import podgroups
from model.fault import KubernetesFault
from model.placement import Placement
from model.workload import GangPhase, GangTimes
from scheduler.core.gangs.phase import GangStatus
from scheduler.edge.cluster import KubernetesBinder, KubernetesStatusWriter
from scheduler.ports import Binder, NamedObject, StatusWriter

STATUS = GangStatus(GangPhase.SCHEDULING, 1, occupied_by="default/job", start_seconds=1_700_000_000.0)
PARTIAL, WHOLE = GangTimes(1_700_000_000.0), GangTimes(0.0, 1_700_000_100.0)


class Subject(Protocol):
    """One implementation, with node n1, pod p1 and PodGroup train."""

    def run(self, body: Callable[[Binder, StatusWriter], Awaitable[None]]) -> None: ...

    def uid(self, name: str) -> str: ...

    def node_of(self, name: str) -> str: ...

    def condition(self, name: str) -> str: ...

    def gang_status(self) -> GangStatus: ...

    def gang_times(self) -> GangTimes: ...


class FakeSubject:
    def __init__(self) -> None:
        self.binder, self.writer = FakeBinder(), FakeWriter()
        self.binder.uids["p1"] = "uid-p1"
        self.binder.absent = self.writer.absent = {"absent"}

    def run(self, body: Callable[[Binder, StatusWriter], Any]) -> None:
        asyncio.run(body(self.binder, self.writer))

    def uid(self, name: str) -> str:
        return f"uid-{name}"

    def node_of(self, name: str) -> str:
        return self.binder.assigned.get(name, "")

    def condition(self, name: str) -> str:
        return self.writer.conditions.get(name, "")

    def gang_status(self) -> GangStatus:
        return self.writer.statuses["train"]

    def gang_times(self) -> GangTimes:
        return self.writer.times["train"][-1]


class KubernetesSubject:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        definition = yaml.safe_load((Path(scheduler.__file__).parent.parent / "deploy/crds/podgroups.yaml").read_text())
        cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        cluster.add_node("n1", batch_cpu=1000)
        cluster.add_pod("p1")
        cluster.add_gang("train", 2)

    def run(self, body: Callable[[Binder, StatusWriter], Any]) -> None:
        async def whole() -> None:
            async with await KubeClient.connect(self._cluster.kubeconfig, "test") as client:
                await body(KubernetesBinder(client), KubernetesStatusWriter(client, ours))

        asyncio.run(whole())

    def uid(self, name: str) -> str:
        if name == "train":
            return str(self._gang()["metadata"]["uid"])
        return str(self._cluster.pod(name)["metadata"]["uid"]) if name == "p1" else "none"

    def node_of(self, name: str) -> str:
        return self._cluster.node_of(name)

    def condition(self, name: str) -> str:
        return self._cluster.condition(name)

    def gang_status(self) -> GangStatus:
        told = self._gang()["status"]
        begun = datetime.fromisoformat(told["scheduleStartTime"]).timestamp()
        counts = (told["scheduled"], told["running"], told["succeeded"], told["failed"])
        return GangStatus(told["phase"], *counts, told["occupiedBy"], begun)

    def gang_times(self) -> GangTimes:
        return podgroups.read_times(msgspec.convert(self._gang(), objects.PodGroup))[0]

    def _gang(self) -> Any:
        return self._cluster.request("GET", "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups/train")


async def ours(definition: str) -> bool:
    """All definitions are."""
    return True


@pytest.fixture(params=["fake", pytest.param("kubernetes", marks=pytest.mark.e2e)])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    if request.param == "fake":
        yield FakeSubject()
    else:
        yield KubernetesSubject(request.getfixturevalue("cluster"))


def test_writes(subject: Subject) -> None:
    """Condition, then binding: the pod is on its node and says nothing of waiting; a PodGroup shows its status."""
    named, times = NamedObject("default", "p1", subject.uid("p1")), list[GangTimes]()

    async def tell(_: Binder, writer: StatusWriter) -> None:
        await writer.unscheduled(named, "first", first=True)
        await writer.unscheduled(named, "second", first=False)
        gang = NamedObject("default", "train", subject.uid("train"))
        await writer.gang_times(gang, PARTIAL)
        times.append(await asyncio.to_thread(subject.gang_times))
        await writer.gang_status(gang, STATUS)
        await writer.gang_times(gang, WHOLE)

    subject.run(tell)
    assert subject.condition("p1") == "second"
    assert (times, subject.gang_status(), subject.gang_times()) == ([PARTIAL], STATUS, WHOLE)

    async def bind(binder: Binder, _: StatusWriter) -> None:
        placement = Placement(named.key, named.uid, "n1")
        assert not await binder.bound(placement)
        await binder.bind(placement)
        assert await binder.bound(placement)
        for other in (Placement(named.key, named.uid, "n2"), Placement(named.key, "another", "n1")):
            assert not await binder.bound(other)
        assert not await binder.bound(Placement("default/absent", "none", "n1"))

    subject.run(bind)
    assert subject.node_of("p1") == "n1"


def test_ordinary_refusals(subject: Subject) -> None:
    """Another uid or a pod bound already is 409, a pod that is gone 404; nothing changes."""
    uid = subject.uid("p1")

    async def refused(binder: Binder, placement: Placement, status: int) -> None:
        with pytest.raises(KubernetesFault) as fault:
            await binder.bind(placement)
        assert fault.value.status == status

    async def body(binder: Binder, writer: StatusWriter) -> None:
        await refused(binder, Placement("default/absent", "none", "n1"), 404)
        await refused(binder, Placement("default/p1", "another", "n1"), 409)
        await binder.bind(Placement("default/p1", uid, "n1"))
        await refused(binder, Placement("default/p1", uid, "n1"), 409)
        with pytest.raises(KubernetesFault) as fault:
            await writer.unscheduled(NamedObject("default", "absent", "none"), "x", first=True)
        assert fault.value.status == 404

    subject.run(body)
    assert subject.node_of("p1") == "n1"
