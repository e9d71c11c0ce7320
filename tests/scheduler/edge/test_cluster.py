"""What the scheduler writes for a placement, and Koordinator's scheduler configuration as a leader reads it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from kube import objects
from kube.client import PatchKind
from kube.dialects.sublet.preemption_notice import ANNOTATION_STANDING_NOTICE, notice_text, withdrawal
from model.fault import KubernetesFault
from model.placement import Placement
from model.pod.colocation import StandingNotice
from model.workload import GangTimes
from scheduler.core.gangs.volcano_phase import VolcanoPhase, VolcanoStatus
from scheduler.edge.cluster import (
    KubernetesBinder,
    KubernetesEvictor,
    KubernetesNoticeWriter,
    KubernetesStatusWriter,
    scheduler_config,
)
from scheduler.ports import NamedObject

PROFILE = """
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: Coscheduling
    args: {enablePreemption: false}
"""


class Server:
    """Answers in turn; one that is a status refuses with it."""

    def __init__(self, *answers: int | str) -> None:
        self.answers = list(answers)

    async def get(self, path: str, type_: Any) -> objects.ConfigMap:
        assert path == "/api/v1/namespaces/koordinator-system/configmaps/koord-scheduler-config"
        answer = self.answers.pop(0)
        if isinstance(answer, int):
            raise KubernetesFault(path, "refused", status=answer)
        return objects.ConfigMap(metadata=objects.Metadata(name="koord-scheduler-config"), data={"config": answer})


def read(server: Server) -> dict[str, str] | None:
    client: Any = server
    found = asyncio.run(scheduler_config(client, retry_seconds=0.0))
    return found.data if found else None


@pytest.mark.parametrize(
    ("answers", "content"),
    [
        ((404,), None),
        ((403,), None),
        ((PROFILE,), {"config": PROFILE}),
        ((503, 0, 429, PROFILE), {"config": PROFILE}),
        ((500, 404), None),
    ],
)
def test_a_server_that_cannot_say_yet_is_asked_again(
    answers: tuple[int | str, ...], content: dict[str, str] | None
) -> None:
    """A takeover falls into the very moment when the server has trouble; that must not end the new leader too."""
    server = Server(*answers)
    assert read(server) == content
    assert server.answers == []


class Writes:
    """Takes what is written, but for a path that `refuses` names."""

    def __init__(self, refuses: str = "", status: int = 403) -> None:
        self.refuses, self.status, self.seen = refuses, status, list[tuple[str, str, Any]]()

    async def patch(self, path: str, body: Any, kind: PatchKind) -> None:
        self._write(kind.name, path, body)

    def _write(self, verb: str, path: str, body: Any) -> None:
        self.seen.append((verb, path, body))
        if path == self.refuses:
            raise KubernetesFault(path, "refused", status=self.status)

    async def delete(self, path: str, *, uid: str) -> None:
        self._write("DELETE", path, uid)


POD = "/api/v1/namespaces/d/pods/p"
CPUSET = (("scheduling.koordinator.sh/resource-status", "{}"),)


@pytest.mark.parametrize(
    ("annotations", "metadata"),
    [((), {}), (CPUSET, {"annotations": {"scheduling.koordinator.sh/resource-status": "{}"}})],
)
def test_a_binding_brings_annotations(annotations: tuple[tuple[str, str], ...], metadata: dict[str, Any]) -> None:
    """One write, for the pod of that uid and no other."""
    made: list[tuple[str, Any]] = []

    class Creates:
        async def create(self, path: str, body: Any) -> None:
            made.append((path, body))

    client: Any = Creates()
    asyncio.run(KubernetesBinder(client).bind(Placement("d/p", "u", "n1", annotations=annotations)))
    ((path, body),) = made
    assert path == f"{POD}/binding"
    assert body["metadata"] == {"namespace": "d", "name": "p", "uid": "u", **metadata}
    assert body["target"]["name"] == "n1"


@pytest.mark.parametrize(
    ("status", "required", "deleted", "raised"),
    [
        (0, True, True, False),
        (500, True, False, True),
        (500, False, True, False),
        (404, True, False, False),
        (404, False, False, False),
        (409, False, False, False),
    ],
)
def test_a_victim_is_told_before_it_is_deleted(status: int, required: bool, deleted: bool, raised: bool) -> None:
    """Unless it takes no condition; one that is gone or another's is never deleted."""
    path = f"{POD}/status" if status else ""
    writes: Any = Writes(path, status)
    evict = KubernetesEvictor(writes).evict(
        NamedObject("d", "p", "u"), "PreemptionByScheduler", "m", require_condition=required
    )
    with pytest.raises(KubernetesFault) if raised else contextlib.nullcontext():
        asyncio.run(evict)
    assert next(seen[:2] for seen in writes.seen) == ("STRATEGIC", f"{POD}/status")
    assert (("DELETE", POD, "u") in writes.seen) == deleted


TOLD = StandingNotice(1.0, 61.0, "PreemptionByScheduler", "gang/ml/big")


@pytest.mark.parametrize(
    ("hides", "status", "raised"),
    [
        (False, 0, False),
        (False, 404, False),
        (False, 409, False),
        (False, 500, True),
        (True, 0, False),
        (True, 404, False),
        (True, 422, False),
        (True, 500, True),
    ],
)
def test_a_notice_on_a_pod(hides: bool, status: int, raised: bool) -> None:
    """With its status; who is gone, or shows another notice by now, is done with."""
    writes: Any = Writes(f"{POD}/status" if status else "", status)
    writer, pod = KubernetesNoticeWriter(writes), NamedObject("d", "p", "u")
    with pytest.raises(KubernetesFault) if raised else contextlib.nullcontext():
        asyncio.run(writer.hide(pod, TOLD) if hides else writer.show(pod, TOLD))
    ((kind, path, body),) = writes.seen
    assert (kind, path) == ("JSON" if hides else "MERGE", f"{POD}/status")
    annotations = {ANNOTATION_STANDING_NOTICE: notice_text(TOLD)}
    assert body == (withdrawal(TOLD, "u") if hides else {"metadata": {"uid": "u", "annotations": annotations}})


def test_a_workload_shows_no_notice() -> None:
    """Its pods do."""
    writes: Any = Writes()
    writer, workload = KubernetesNoticeWriter(writes), NamedObject("d", "w", "u", group="kueue.x-k8s.io")
    asyncio.run(writer.show(workload, TOLD))
    asyncio.run(writer.hide(workload, TOLD))
    assert writes.seen == []


GROUP = "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/train"


def written(*, ours: bool) -> list[tuple[str, str, Any]]:
    """What is written of a PodGroup of Volcano's whose definition is ours, or is not."""

    async def keeps(definition: str) -> bool:
        assert definition == "podgroups.scheduling.volcano.sh"
        return ours

    client: Any = Writes()
    writer, gang = (
        KubernetesStatusWriter(client, keeps),
        NamedObject("ns", "train", "u1", group="scheduling.volcano.sh"),
    )
    asyncio.run(writer.gang_status(gang, VolcanoStatus(VolcanoPhase.RUNNING, 2, 1)))
    asyncio.run(writer.gang_times(gang, GangTimes(0.0, 60.0)))
    found: list[tuple[str, str, Any]] = client.seen
    return found


def test_a_group_of_volcanos() -> None:
    """Its own words at its own place; where Volcano's controllers write them, nothing."""
    told = {"phase": "Running", "running": 2, "succeeded": 1, "failed": 0}
    noted = {"sublet.dev/partially-bound-since": None, "sublet.dev/whole-since": "1970-01-01T00:01:00Z"}
    assert written(ours=True) == [
        ("MERGE", f"{GROUP}/status", {"metadata": {"uid": "u1"}, "status": told}),
        ("MERGE", GROUP, {"metadata": {"uid": "u1", "annotations": noted}}),
    ]
    assert written(ours=False) == []
