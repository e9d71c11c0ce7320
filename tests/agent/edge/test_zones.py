"""The node's NodeResourceTopology: made when missing, patched where it differs, and never in lending's way."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from agent.core.lend.reclaimable import ZoneLending
from agent.core.observe.observation import Absence, Missing
from agent.edge import zones
from agent.edge.zones import ZonePublisher
from agent.ports import TickResult
from model.pod.pod import Pod
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, ResourceVector
from model.topology import CpuBasics, CpuInfo, KubeletCpus, NumaNode, PodCpus, Processor, Zone
from tests.agent.offering import Offering
from tests.kube.conftest import ScriptedServer, says
from tests.pods import with_fields

PATH = "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies"
INFO = CpuInfo(CpuBasics("Xeon"), tuple(Processor(cpu, cpu, 0, 0) for cpu in range(2)), (NumaNode(0, (0, 1), 8 << 30),))
AMOUNTS = ResourceVector({CPU: 2000, MEMORY: 8 << 30})
ZONES = (Zone(0, "node-0", AMOUNTS, AMOUNTS),)


class Api:
    """One NodeResourceTopology; `refuse` answers a method with a status, once or always."""

    def __init__(self) -> None:
        self.document: dict[str, Any] | None = None
        self.refuse: dict[str, list[int]] = {}
        self.asked: list[str] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.method)
        told = self.refuse.get(request.method)
        if told:
            status = told.pop(0) if len(told) > 1 or told[0] > 0 else -told[0]
            if status != 200:
                return await says({"message": "refused"}, status)(request)
        if request.method == "GET":
            return await (says(self.document) if self.document else says({"message": "none"}, 404))(request)
        body = msgspec.json.decode(await request.read())
        if request.method == "POST":
            self.document = body
        else:
            assert self.document is not None
            self.document["zones"] = body.get("zones", self.document["zones"])
            self.document["metadata"].setdefault("annotations", {}).update(body["metadata"].get("annotations", {}))
        return await says(body)(request)

    @property
    def written(self) -> list[str]:
        return [method for method in self.asked if method != "GET"]

    def lent(self) -> dict[str, str]:
        assert self.document is not None
        rows = self.document["zones"][0]["resources"]
        return {row["name"]: row["allocatable"] for row in rows if row["name"] in (BATCH_CPU, BATCH_MEMORY)}

    def annotation(self, name: str) -> Any:
        assert self.document is not None
        return json.loads(self.document["metadata"]["annotations"][name])


class Fresh(asyncio.Event):
    """Tells when the publisher waits for it, done with all it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.awaited = asyncio.Event()

    async def wait(self) -> Literal[True]:
        if not self.is_set():
            self.awaited.set()
        return await super().wait()


class Rig:
    """A publisher at work; `give` hands it a tick and waits until it is done with it, or rests after a failure."""

    def __init__(self, build: Any, api: Api, make: Callable[[], ZonePublisher]) -> None:
        self.build = build
        self.api = api
        self._make = make
        self._running: asyncio.Task[None] | None = None
        self.restart()

    def restart(self) -> None:
        """A new agent on what the last one left."""
        self.stop()
        self.publisher, self.offering = self._make(), Offering()
        self.fresh = self.publisher._fresh = Fresh()
        self._running = asyncio.create_task(self.publisher.run())

    def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def result(self, at: float, lent: int, **parts: Any) -> TickResult:
        decisions = tuple(self.build.lending(lent, 5).reclaimable[:2])
        lending = msgspec.structs.replace(
            self.build.lending(lent, 5), zones=(ZoneLending(0, "node-0", decisions, decisions),)
        )
        fields = {"lending": lending, "facts": self.build.facts(zones=ZONES)}
        made: TickResult = self.build.result(at, **{**fields, **parts})
        return self.offering.decided(made, zones_on_node=self.publisher.on_node)

    async def give(self, at: float, lent: int = 700, **parts: Any) -> None:
        """Twice where the first tick only made it look what the zones say."""
        failures, unread = self.publisher.failures, self.publisher.on_node is None
        self.fresh.awaited.clear()
        self.publisher.take(self.result(at, lent, **parts))
        await self.until(lambda: self.fresh.awaited.is_set() or self.publisher.failures > failures)
        if unread and self.publisher.on_node is not None and self.publisher.written_at < at:
            await self.give(at, lent, **parts)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.01)


Scene = Callable[[Rig], Awaitable[None]]


def play(
    folder: Path,
    build: Any,
    scene: Scene,
    info: Callable[[], CpuInfo | None] = lambda: INFO,
    kubelet: Callable[[Iterable[Pod]], KubeletCpus | Missing] = lambda pods: KubeletCpus(),
    seconds: float = 60.0,
) -> None:
    async def run() -> None:
        server, api = ScriptedServer(folder), Api()
        client = await server.start()
        server.answers = [api]
        rig = Rig(build, api, lambda: ZonePublisher(client, "n", seconds, info, kubelet))
        try:
            await scene(rig)
        finally:
            rig.stop()
            await client.close()
            await server.stop()

    asyncio.run(run())


def test_made_when_missing(tmp_path: Path, build: Any) -> None:
    """Owned by the node, with what is lent in each zone, the CPUs and the pools."""
    kubelet = KubeletCpus("static", (PodCpus("u", (1,), "ns", "p"),))

    async def scene(rig: Rig) -> None:
        await rig.give(0)
        assert rig.api.asked == ["GET", "POST"] and rig.api.document is not None
        metadata = rig.api.document["metadata"]
        assert (metadata["name"], metadata["ownerReferences"][0]["kind"]) == ("n", "Node")
        assert rig.api.lent() == {BATCH_CPU: "700", BATCH_MEMORY: "5"}
        assert rig.api.annotation("node.koordinator.sh/cpu-shared-pools") == [{"socket": 0, "node": 0, "cpuset": "0"}]
        (allocation,) = rig.api.annotation("node.koordinator.sh/pod-cpu-allocs")
        assert (allocation["name"], allocation["cpuset"]) == ("p", "1")

    play(tmp_path, build, scene, kubelet=lambda pods: kubelet)


def test_cpus_reserved_by_amount_are_no_ones(tmp_path: Path, build: Any) -> None:
    """The lowest core leaves both pools, and the copy of the annotation names it."""
    reservation = "node.koordinator.sh/reservation"
    node = msgspec.structs.replace(build.node(), annotations={reservation: '{"resources": {"cpu": "500m"}}'})

    async def scene(rig: Rig) -> None:
        await rig.give(0, facts=build.facts(node=node, zones=ZONES))
        for pools in ("cpu-shared-pools", "be-cpu-shared-pools"):
            assert rig.api.annotation(f"node.koordinator.sh/{pools}") == [{"socket": 0, "node": 0, "cpuset": "1"}]
        assert rig.api.annotation(reservation) == {"resources": {"cpu": "500m"}, "reservedCPUs": "0"}

    play(tmp_path, build, scene)


def test_a_reset_writes_zeroes(tmp_path: Path, build: Any) -> None:
    """At once, and the rows stay, as after a reset by Koordinator."""

    async def scene(rig: Rig) -> None:
        await rig.give(0)
        await rig.give(1, **withheld(build, Reason.LENDING_DISABLED))
        assert rig.api.lent() == {BATCH_CPU: "0", BATCH_MEMORY: "0"}

    play(tmp_path, build, scene)


def test_patched_only_where_it_differs(tmp_path: Path, build: Any) -> None:
    """A shrink at once, growth after a rest; else it is only looked at, each minute."""

    async def scene(rig: Rig) -> None:
        await rig.give(0)
        await rig.give(1)
        assert len(rig.api.asked) == 2
        await rig.give(2, 500)
        assert rig.api.asked[2:] == ["GET", "PATCH"] and rig.api.lent()[BATCH_CPU] == "500"
        await rig.give(3, 900)
        assert len(rig.api.asked) == 4
        await rig.give(12, 900)
        assert rig.api.asked[4:] == ["GET", "PATCH"] and rig.api.lent()[BATCH_CPU] == "900"
        await rig.give(71, 900)
        assert len(rig.api.asked) == 6
        await rig.give(72, 900)
        assert rig.api.asked[6:] == ["GET"]

    play(tmp_path, build, scene)


def test_what_others_wrote_stays_and_what_they_took_comes_back(tmp_path: Path, build: Any) -> None:
    """Rows of other resources and zones of other kinds; our own rows are put right at the next look."""

    async def scene(rig: Rig) -> None:
        await rig.give(0)
        document = rig.api.document
        assert document is not None
        gpu = {"name": "gpu", "capacity": "1", "allocatable": "1", "available": "1"}
        document["zones"][0]["resources"] = [gpu]
        document["zones"].append({"name": "socket-0", "type": "Socket"})
        await rig.give(61)
        assert rig.api.lent() == {BATCH_CPU: "700", BATCH_MEMORY: "5"}
        assert gpu in document["zones"][0]["resources"] and document["zones"][1]["name"] == "socket-0"

    play(tmp_path, build, scene)


@pytest.mark.parametrize("missing", ["node", "machine"])
def test_nothing_is_written_of_what_is_not_known(tmp_path: Path, build: Any, missing: str) -> None:
    """No Node object, or CPUs that were not read."""

    async def scene(rig: Rig) -> None:
        await rig.give(0, **({"facts": build.facts(node=None)} if missing == "node" else {}))
        assert rig.api.asked == []

    play(tmp_path, build, scene, info=lambda: None if missing == "machine" else INFO)


def withheld(build: Any, reason: Reason) -> dict[str, Any]:
    """A tick in which nothing may be lent."""
    lending = build.lending(reason=reason)
    zone = ZoneLending(0, "node-0", lending.reclaimable[:2])
    return {"lending": msgspec.structs.replace(lending, zones=(zone,)), "usage": None}


@pytest.mark.parametrize("reason", [Reason.NODE_METRICS_MISSING, Reason.SETTINGS_UNREAD, Reason.PODS_UNKNOWN])
def test_a_blind_start_changes_nothing_and_a_lasting_blindness_withdraws(
    tmp_path: Path, build: Any, reason: Reason
) -> None:
    """As the node's own amounts: still not measured or not read after 15 s is zero."""

    async def scene(rig: Rig) -> None:
        await rig.give(0)
        rig.restart()
        for at in (100, 115):
            await rig.give(at, **withheld(build, reason))
        assert rig.api.lent()[BATCH_CPU] == "700"
        await rig.give(116, **withheld(build, reason))
        assert rig.api.lent() == {BATCH_CPU: "0", BATCH_MEMORY: "0"}

    play(tmp_path, build, scene)


def test_a_new_agent_does_not_grow_what_stands(tmp_path: Path, build: Any) -> None:
    """A quiet second after a restart is no reason to lend more in a zone than its predecessor did; a full window is."""
    young = build.usage(live_seconds=1.0)

    async def scene(rig: Rig) -> None:
        await rig.give(0, 300)
        rig.restart()
        await rig.give(100, 900, usage=young)
        assert rig.api.lent() == {BATCH_CPU: "300", BATCH_MEMORY: "5"}
        await rig.give(101, 200, usage=young)
        assert rig.api.lent()[BATCH_CPU] == "200"
        await rig.give(161, 900, usage=young)
        assert rig.api.lent()[BATCH_CPU] == "200"
        await rig.give(171, 900)
        assert rig.api.lent()[BATCH_CPU] == "900"

    play(tmp_path, build, scene)


@pytest.mark.parametrize("stands", ["nothing", "unreadable"])
def test_a_new_agent_starts_from_nothing(tmp_path: Path, build: Any, stands: str) -> None:
    """Where no zone says what may be lent, or none that can be read, zero is written until the window is full."""

    async def scene(rig: Rig) -> None:
        if stands == "unreadable":
            rows = [{"name": BATCH_CPU, "allocatable": "much"}]
            zone = {"name": "node-0", "type": "Node", "resources": rows}
            rig.api.document = {"metadata": {"name": "n"}, "zones": [zone]}
        await rig.give(0, 900, usage=build.usage(live_seconds=1.0))
        assert rig.api.lent() == {BATCH_CPU: "0", BATCH_MEMORY: "0"}
        await rig.give(10, 900)
        assert rig.api.lent() == {BATCH_CPU: "900", BATCH_MEMORY: "5"}

    play(tmp_path, build, scene)


def test_without_the_definition_it_rests_long(tmp_path: Path, build: Any) -> None:
    """404 for the kind itself: one warning, and not a request each second."""

    async def scene(rig: Rig) -> None:
        rig.api.refuse["POST"] = [-404]
        with capture_logs() as logs:
            await rig.give(0)
            for at in range(1, 20):
                rig.publisher.take(rig.result(at, 700 - at * 30))
                await asyncio.sleep(0.01)
        assert rig.api.asked == ["GET", "POST"] and rig.publisher.failures == 1
        assert [entry["retry_seconds"] for entry in logs] == [300.0]

    play(tmp_path, build, scene)


@pytest.mark.parametrize(("method", "status"), [("PATCH", 409), ("PATCH", 500), ("GET", 503), ("POST", 409)])
def test_what_was_refused_is_tried_again(
    tmp_path: Path, build: Any, monkeypatch: pytest.MonkeyPatch, method: str, status: int
) -> None:
    """A conflict with another writer is read again and merged; nothing counts as written before it is."""
    monkeypatch.setattr(zones, "_FIRST_DELAY_SECONDS", 0.01)

    async def scene(rig: Rig) -> None:
        if method != "POST":
            await rig.give(0)
        rig.api.refuse[method] = [status, 200]
        await rig.give(100, 400)
        assert rig.publisher.failures == 1
        await rig.give(101, 400)
        await rig.until(lambda: rig.api.document and rig.api.lent()[BATCH_CPU] == "400")
        assert rig.publisher.failures == 1

    play(tmp_path, build, scene)


BAD: dict[str, tuple[dict[str, str], str, str]] = {
    "reservation": ({"node.koordinator.sh/reservation": '{"reservedCPUs": "0-"}'}, "", "reservation.reservedCPUs"),
    "system": ({"node.koordinator.sh/system-qos-resource": "{"}, "", "annotation node.koordinator.sh/system-qos"),
    "a pod's CPUs": ({}, "zero", "Pod default/web"),
}


@pytest.mark.parametrize(("annotations", "cpuset", "told"), BAD.values(), ids=BAD.keys())
def test_a_bad_annotation_is_one_error_line(
    tmp_path: Path, build: Any, annotations: dict[str, str], cpuset: str, told: str
) -> None:
    """It names what to mend, nothing is sent, and the next look comes as late as any; mended, it goes on."""

    async def scene(rig: Rig) -> None:
        node = msgspec.structs.replace(build.node(), annotations=annotations)
        pod = with_fields(build.pod(), cpuset=cpuset)
        bad = build.facts(pod, node=node, zones=ZONES)
        with capture_logs() as logs:
            for at in range(3):
                await rig.give(at, facts=bad) if at == 0 else rig.publisher.take(rig.result(at, 700, facts=bad))
        (line,) = logs
        assert line["log_level"] == "error" and told in line["error"]
        assert rig.api.asked == [] and rig.publisher.failures == 1
        rig.publisher.take(rig.result(9, 600))
        await rig.until(lambda: rig.api.document)
        assert rig.api.lent()[BATCH_CPU] == "600"

    play(tmp_path, build, scene, seconds=0.2)


def test_an_unreadable_cpu_manager_state(tmp_path: Path, build: Any) -> None:
    """What the kubelet gave away is not known: everything else is written."""

    async def scene(rig: Rig) -> None:
        await rig.give(0)
        assert rig.api.document is not None
        assert "node.koordinator.sh/pod-cpu-allocs" not in rig.api.document["metadata"]["annotations"]
        assert rig.api.lent()[BATCH_CPU] == "700"

    play(tmp_path, build, scene, kubelet=lambda pods: Missing("/state", Absence.UNREADABLE))


def test_a_disk_of_the_kubelet_that_does_not_answer(tmp_path: Path, build: Any) -> None:
    """Ticks go on; it is written once the disk answers."""
    asked, answers = threading.Event(), threading.Event()

    def kubelet(pods: Iterable[Pod]) -> KubeletCpus:
        asked.set()
        assert answers.wait(20), "the event loop waits with it"
        return KubeletCpus()

    async def scene(rig: Rig) -> None:
        giving = asyncio.create_task(rig.give(0))
        await rig.until(asked.is_set)
        assert rig.api.document is None
        answers.set()
        await giving
        assert rig.api.lent()[BATCH_CPU] == "700"

    play(tmp_path, build, scene, kubelet=kubelet)
