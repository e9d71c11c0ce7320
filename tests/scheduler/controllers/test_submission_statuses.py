"""Statuses of LocalQueues are written by the leader, where they differ, and where their definition is ours."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube import objects
from kube.client import PatchKind
from model.fault import KubernetesFault
from model.flavor.resource_flavor import SubmissionQueue, SubmissionStanding
from model.queue import FlavorGroup, Queue, QueueStanding
from scheduler.controllers.submission_statuses import SubmissionStatuses

PATH = "/apis/kueue.x-k8s.io/v1beta2/namespaces/ns/localqueues/x/status"


class Client:
    """Takes patches; with a `fault` it answers that."""

    def __init__(self, fault: KubernetesFault | None = None) -> None:
        self.patches: list[tuple[str, Any]] = []
        self.fault = fault

    async def patch(self, path: str, body: Any, kind: PatchKind) -> None:
        assert kind is PatchKind.MERGE
        self.patches.append((path, body))
        if self.fault is not None:
            raise self.fault


class Rig:
    """One LocalQueue of two jobs that wait, which leads to a queue of one flavour."""

    def __init__(self, *, keeps: bool = True, fault: KubernetesFault | None = None) -> None:
        self.client, self.leading, self.gone = Client(fault), True, False
        self.status: Any = None
        self.waiting = 2

        async def kept(definition: str) -> bool:
            assert definition == "localqueues.kueue.x-k8s.io"
            return keeps

        self.made = SubmissionStatuses(
            self.client,  # type: ignore[arg-type]
            lambda: self.leading,
            lambda: (SubmissionStanding(SubmissionQueue("ns", "x", "team"), self.waiting),),
            lambda: (QueueStanding(Queue("team", flavor_groups=(FlavorGroup(("gpu",), ("a100",)),))),),
            self,
            kept,
            lambda: 0.0,
        )

    def source(self, key: str) -> tuple[objects.Metadata, Any] | None:
        assert key == "ns/x"
        return None if self.gone else (objects.Metadata("x", "ns", generation=7), self.status)

    async def settle(self) -> None:
        """Compare, and let what follows be done."""
        task = asyncio.create_task(self.made.run())
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def written(rig: Rig) -> list[tuple[str, Any]]:
    asyncio.run(rig.settle())
    return rig.client.patches


def test_what_it_says() -> None:
    ((path, body),) = written(Rig())
    status = body["status"]
    assert path == PATH
    assert (status["pendingWorkloads"], status["admittedWorkloads"]) == (2, 0)
    assert status["flavorsUsage"] == [{"name": "a100", "resources": [{"name": "gpu", "total": "0"}]}]
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"], condition["observedGeneration"]) == ("Active", "True", 7)


def test_what_it_says_already_is_not_written_again() -> None:
    ((_, body),) = written(Rig())
    same, more = Rig(), Rig()
    same.status = more.status = body["status"]
    more.waiting = 3
    assert written(same) == []
    assert written(more) == [(PATH, {"status": {"pendingWorkloads": 3}})]


@pytest.mark.parametrize("case", ["another's definition", "no leader", "gone"])
def test_nothing_is_written(case: str) -> None:
    rig = Rig(keeps=case != "another's definition")
    rig.leading, rig.gone = case != "no leader", case == "gone"
    assert written(rig) == []


def test_one_that_went_meanwhile_is_no_fault() -> None:
    assert len(written(Rig(fault=KubernetesFault(PATH, "404", status=404)))) == 1
