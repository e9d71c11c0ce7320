"""Statuses of queues are written by the leader, where they differ, to objects whose status is ours to write."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube import objects
from kube.client import PatchKind
from kube.informer import Change, ChangeKind
from model import queue as model
from model.fault import KubernetesFault
from model.queue import CellStanding, QueueStanding
from scheduler.cache.queue_cache import QueueCache
from scheduler.controllers.queue_statuses import QueueStatuses

OURS = "/apis/sublet.dev/v1alpha1/queues/team/status"
VOLCANO = "/apis/scheduling.volcano.sh/v1beta1/queues/team/status"
ELASTIC = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/ml/elasticquotas/team"


class Client:
    """Takes patches, and refuses the first `failures` of them."""

    def __init__(self, fault: KubernetesFault | None = None) -> None:
        self.patches: list[tuple[str, Any]] = []
        self.fault = fault

    async def patch(self, path: str, body: Any, kind: PatchKind) -> None:
        assert kind is PatchKind.MERGE
        self.patches.append((path, body))
        if self.fault is not None:
            raise self.fault


class Rig:
    def __init__(self, source: Any, *, keeps: bool = True, fault: KubernetesFault | None = None) -> None:
        self.client, self.leading, self.used, self.asked = Client(fault), True, 1500, list[str]()
        self.queues = QueueCache(lambda *_: None, lambda _: None)
        self.see(source)

        async def kept(definition: str) -> bool:
            self.asked.append(definition)
            return keeps

        self.made = QueueStatuses(
            self.client,  # type: ignore[arg-type]
            lambda: self.leading,
            self.standings,
            self.queues,
            kept,
            lambda: 0.0,
        )

    def see(self, source: Any, kind: ChangeKind = ChangeKind.ADDED) -> None:
        self.queues.apply(Change(kind, source))

    def standings(self) -> tuple[QueueStanding, ...]:
        cells = {("", "cpu"): CellStanding(used=self.used)}
        known = (found for name in self.queues.names if (found := self.queues.source(name)) is not None)
        own = [each.queue for each in known if each.queue is not None]
        return tuple(QueueStanding(each, cells=cells) for each in (model.Queue("default"), *own))

    def settle(self) -> None:
        """One comparison, and what follows from it."""

        async def once() -> None:
            self.made.compare()
            work = asyncio.create_task(self.made._reconciler.run())
            for _ in range(20):
                await asyncio.sleep(0)
            work.cancel()

        asyncio.run(once())


def named(kind: type[Any], status: Any = None, namespace: str = "") -> Any:
    return kind(objects.Metadata(name="team", namespace=namespace, uid="u"), {}, status)


@pytest.mark.parametrize(
    ("source", "path", "asked"),
    [
        (named(objects.Queue), OURS, []),
        (named(objects.VolcanoQueue), VOLCANO, ["queues.scheduling.volcano.sh"]),
        (named(objects.ElasticQuota, namespace="ml"), ELASTIC, ["elasticquotas.scheduling.sigs.k8s.io"]),
    ],
)
def test_each_kind_where_its_status_is(source: Any, path: str, asked: list[str]) -> None:
    """A queue that nobody wrote has no object; of ours nobody is asked whose the status is."""
    rig = Rig(source)
    rig.settle()
    assert ([found for found, _ in rig.client.patches], rig.asked) == ([path], asked)


def test_only_what_differs() -> None:
    """What the object says already is not written again; what changes is."""
    rig = Rig(named(objects.VolcanoQueue))
    rig.settle()
    (_, body), *more = rig.client.patches
    assert more == []
    rig.see(named(objects.VolcanoQueue, body["status"]), ChangeKind.MODIFIED)
    rig.settle()
    assert len(rig.client.patches) == 1
    rig.used = 2000
    rig.settle()
    assert rig.client.patches[-1][1] == {"status": {"allocated": {"cpu": "2"}}}


def test_the_status_of_another_controller_is_left_alone() -> None:
    """Where the definition is Volcano's own."""
    rig = Rig(named(objects.VolcanoQueue), keeps=False)
    rig.settle()
    assert rig.client.patches == []


def test_a_standby_writes_nothing() -> None:
    """It waits at the fence."""
    rig = Rig(named(objects.Queue))
    rig.leading = False
    rig.settle()
    assert rig.client.patches == []


def test_a_refusal_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Many queues share one trouble; a queue that is gone is none."""
    rig = Rig(named(objects.Queue), fault=KubernetesFault("PATCH", "is forbidden", status=403))
    rig.settle()
    rig.settle()
    assert capsys.readouterr().out.count("status of a queue not written") == 1
    gone = Rig(named(objects.Queue), fault=KubernetesFault("PATCH", "is gone", status=404))
    gone.settle()
    assert "not written" not in capsys.readouterr().out
