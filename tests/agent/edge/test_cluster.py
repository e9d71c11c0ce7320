"""What the agent knows of the cluster: objects as they change, documents that break and are mended, nothing guessed."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from agent.edge.cluster import _LIMIT_CPU, ClusterEdge
from agent.ports import ClusterFacts
from agent.settings import AgentSettings
from kube.dialects.koordinator.nodesettings import Documents
from kube.events import EventRecorder
from model.nodesettings import NodeSettings
from model.pod.pod import Pod
from model.reason import Reason
from model.resources import CPU
from model.strategy import ColocationStrategy, SuppressStrategy
from model.topology import CpuBasics, CpuInfo, NumaNode, Processor
from tests.kube.conftest import ScriptedServer, says

NODE: dict[str, Any] = {
    "metadata": {"name": "n", "uid": "node-uid", "labels": {"pool": "a"}},
    "status": {"capacity": {"cpu": "4", "memory": "8Gi"}, "allocatable": {"cpu": "3", "memory": "7Gi"}},
}
CPUS = CpuInfo(
    CpuBasics("Xeon"),
    tuple(Processor(cpu, cpu, 0, cpu // 2) for cpu in range(4)),
    (NumaNode(0, (0, 1), 4 << 30), NumaNode(1, (2, 3), 4 << 30)),
)
OWN = NodeSettings(ColocationStrategy(cpu_reclaim_threshold_pct=70), SuppressStrategy(threshold_pct=90))


class Collections:
    """An API server's collections: each is listed, then watched; events of kind Event are kept."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.changes: list[tuple[int, str, dict[str, Any]]] = []
        self.held: set[str] = set()
        self.absent: set[str] = set()
        self.events: list[dict[str, Any]] = []
        self.selectors: dict[str, str | None] = {}
        self._version = 1
        self._moved = asyncio.Event()

    def put(self, collection: str, name: str, body: dict[str, Any]) -> None:
        known = name in self.objects.setdefault(collection, {})
        self._version += 1
        stored = copy.deepcopy(body)
        metadata = {"name": name, "uid": f"uid-{name}", **stored.get("metadata", {})}
        stored["metadata"] = {**metadata, "resourceVersion": str(self._version)}
        self.objects[collection][name] = stored
        self._tell(collection, "MODIFIED" if known else "ADDED", stored)

    def delete(self, collection: str, name: str) -> None:
        self._version += 1
        gone = copy.deepcopy(self.objects[collection].pop(name))
        gone["metadata"]["resourceVersion"] = str(self._version)
        self._tell(collection, "DELETED", gone)

    def release(self, collection: str) -> None:
        self.held.discard(collection)
        self._moved.set()

    def _tell(self, collection: str, kind: str, body: dict[str, Any]) -> None:
        self.changes.append((self._version, collection, {"type": kind, "object": body}))
        self._moved.set()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        collection = request.path.rpartition("/")[2]
        if request.method != "GET":
            self.events.append(msgspec.json.decode(await request.read()))
            return await says({})(request)
        self.selectors[request.path] = request.query.get("fieldSelector")
        while collection in self.held:
            await self._wait()
        if collection in self.absent:
            return await says({"message": "the server could not find the requested resource"}, 404)(request)
        if request.query.get("watch"):
            return await self._watch(request, collection)
        items = list(self.objects.get(collection, {}).values())
        return await says({"metadata": {"resourceVersion": str(self._version)}, "items": items})(request)

    async def _watch(self, request: web.Request, collection: str) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        since = int(request.query["resourceVersion"])
        while request.transport is not None and not request.transport.is_closing():
            for version, name, event in self.changes:
                if version > since and name == collection:
                    since = version
                    await response.write(msgspec.json.encode(event) + b"\n")
            await self._wait()
        return response

    async def _wait(self) -> None:
        self._moved.clear()
        try:
            await asyncio.wait_for(self._moved.wait(), 0.05)
        except TimeoutError:
            return


class Rig:
    """An edge on its server; `until` waits for facts that satisfy a condition."""

    def __init__(self, api: Collections, edge: ClusterEdge) -> None:
        self.api = api
        self.edge = edge

    async def until(self, condition: Callable[[ClusterFacts], object]) -> ClusterFacts:
        async with asyncio.timeout(20):
            while not condition(self.edge.facts()):
                await asyncio.sleep(0.01)
        return self.edge.facts()

    async def known(self) -> ClusterFacts:
        return await self.until(lambda facts: facts.settings_known and facts.node and facts.pods is not None)


Scene = Callable[[Rig], Awaitable[None]]


def play(folder: Path, scene: Scene, prepare: Callable[[Collections], None] = lambda api: None, **more: Any) -> None:
    """A scene on a node that exists and has no documents, unless `prepare` says otherwise."""

    async def run() -> None:
        server, api = ScriptedServer(folder), Collections()
        client = await server.start()
        server.answers = [api]
        api.put("nodes", "n", NODE)
        prepare(api)
        events = EventRecorder(client, "sublet-agent", "n")
        settings = AgentSettings(colocation=OWN.colocation, suppress=OWN.suppress)
        edge = ClusterEdge(client, "n", settings, events, **more)
        running = [asyncio.create_task(edge.run()), asyncio.create_task(events.run())]
        try:
            await scene(Rig(api, edge))
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await client.close()
            await server.stop()

    asyncio.run(run())


def config(**keys: Any) -> dict[str, Any]:
    """The ConfigMap; keys are written with _ for -."""
    data = {key.replace("_", "-"): text if isinstance(text, str) else json.dumps(text) for key, text in keys.items()}
    return {"metadata": {"namespace": "koordinator-system"}, "data": data}


def annotated(**annotations: str) -> dict[str, Any]:
    node = copy.deepcopy(NODE)
    node["metadata"]["annotations"] = {
        f"node.koordinator.sh/{key.replace('_', '-')}": t for key, t in annotations.items()
    }
    return node


def labelled(**labels: str) -> dict[str, Any]:
    node = copy.deepcopy(NODE)
    node["metadata"]["labels"] |= {f"node.koordinator.sh/{key.replace('_', '-')}": t for key, t in labels.items()}
    return node


def pod(name: str, cpu: str = "1", **metadata: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"namespace": "ns", **metadata}, "spec": {"containers": [container], "nodeName": "n"}}


def reclaim(facts: ClusterFacts) -> object:
    return facts.settings.colocation.cpu_reclaim_threshold_pct


def ceiling(facts: ClusterFacts) -> object:
    return facts.settings.suppress.threshold_pct


def reserved(facts: ClusterFacts) -> object:
    return facts.colocation.reserved[CPU]


def applications(facts: ClusterFacts) -> object:
    return [application.cgroup for application in facts.settings.host_applications]


ON = {"enable": True}
CONFIG, SLO, METRIC, NODES = "configmaps", "nodeslos", "nodemetrics", "nodes"
MAP = "slo-controller-config"
# collection, name, good, better, broken, what a fault says, what is looked at, its values: default, good, better
DOCUMENTS: dict[str, tuple[str, str, Any, Any, Any, str, Callable[[ClusterFacts], object], tuple[Any, Any, Any]]] = {
    "ConfigMap colocation": (
        *(CONFIG, MAP),
        config(colocation_config={"enable": True, "cpuReclaimThresholdPercent": 50}),
        config(colocation_config={"enable": True, "cpuReclaimThresholdPercent": 40}),
        config(colocation_config={"enable": True, "cpuReclaimThresholdPercent": "x"}),
        "colocation-config.cpuReclaimThresholdPercent: is 'x'",
        *(reclaim, (70, 50, 40)),
    ),
    "ConfigMap text": (
        *(CONFIG, MAP),
        config(
            colocation_config=ON, resource_threshold_config={"clusterStrategy": {"cpuSuppressThresholdPercent": 50}}
        ),
        config(
            colocation_config=ON, resource_threshold_config={"clusterStrategy": {"cpuSuppressThresholdPercent": 40}}
        ),
        config(colocation_config=ON, resource_threshold_config="{"),
        "resource-threshold-config: cannot be read",
        *(ceiling, (90, 50, 40)),
    ),
    "NodeSLO": (
        *(SLO, "n"),
        {"spec": {"resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressThresholdPercent": 50}}},
        {"spec": {"resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressThresholdPercent": 40}}},
        {"spec": {"resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressThresholdPercent": 500}}},
        "NodeSLO n: spec.resourceUsedThresholdWithBE.cpuSuppressThresholdPercent: is 500",
        *(ceiling, (90, 50, 40)),
    ),
    "NodeSLO host applications": (
        *(SLO, "n"),
        {"spec": {"hostApplications": [{"name": "db", "qos": "LS"}]}},
        {"spec": {"hostApplications": [{"name": "db", "qos": "BE"}]}},
        {"spec": {"hostApplications": [{"name": "db", "qos": "XL"}]}},
        "NodeSLO n: spec.hostApplications[0].qos: is 'XL'",
        *(applications, ([], ["/host-latency-sensitive/db"], ["/host-best-effort/db"])),
    ),
    "NodeMetric": (
        *(METRIC, "n"),
        {"spec": {"metricCollectPolicy": {"reportIntervalSeconds": 50}}},
        {"spec": {"metricCollectPolicy": {"reportIntervalSeconds": 40}}},
        {"spec": {"metricCollectPolicy": {"reportIntervalSeconds": "-1"}}},
        "NodeMetric n: spec.metricCollectPolicy.reportIntervalSeconds: is '-1'",
        *(lambda facts: facts.settings.colocation.report_seconds, (60, 50, 40)),
    ),
    "Node annotation colocation-strategy": (
        *(NODES, "n"),
        annotated(colocation_strategy='{"cpuReclaimThresholdPercent": 50}'),
        annotated(colocation_strategy='{"cpuReclaimThresholdPercent": 40}'),
        annotated(colocation_strategy="40"),
        "Node n: annotation node.koordinator.sh/colocation-strategy",
        *(reclaim, (70, 50, 40)),
    ),
    "Node label": (
        *(NODES, "n"),
        labelled(cpu_reclaim_ratio="0.5"),
        labelled(cpu_reclaim_ratio="0.4"),
        labelled(cpu_reclaim_ratio="much"),
        "Node n: label node.koordinator.sh/cpu-reclaim-ratio: is 'much'",
        *(reclaim, (70, 50, 40)),
    ),
    "Node annotation reservation": (
        *(NODES, "n"),
        annotated(reservation='{"reservedCPUs": "0-1"}'),
        annotated(reservation='{"reservedCPUs": "0"}'),
        annotated(reservation='{"reservedCPUs": "0-"}'),
        "Node n: annotation node.koordinator.sh/reservation.reservedCPUs",
        *(reserved, (0, 2000, 1000)),
    ),
}


@pytest.mark.parametrize(
    ("collection", "name", "good", "better", "broken", "told", "look", "values"),
    DOCUMENTS.values(),
    ids=DOCUMENTS.keys(),
)
def test_a_document_that_breaks_and_is_mended(
    tmp_path: Path,
    collection: str,
    name: str,
    good: Any,
    better: Any,
    broken: Any,
    told: str,
    look: Callable[[ClusterFacts], object],
    values: tuple[Any, Any, Any],
) -> None:
    """Broken, it keeps what it said before, names the field and is an Event; mended it counts; deleted it is over."""

    async def scene(rig: Rig) -> None:
        default, first, second = values
        facts = await rig.known()
        assert (look(facts), facts.problem) == (default, "")
        rig.api.put(collection, name, good)
        await rig.until(lambda facts: look(facts) == first)
        rig.api.put(collection, name, broken)
        facts = await rig.until(lambda facts: facts.problem)
        assert told in facts.problem and look(facts) == first and facts.settings.colocation.enable
        assert not facts.for_limits().unsettled
        await rig.until(lambda _: rig.api.events)
        (event,) = rig.api.events
        assert (event["reason"], event["type"]) == ("ConfigurationInvalid", "Warning") and told in event["message"]
        assert event["involvedObject"]["uid"] == "node-uid"
        rig.api.put(collection, name, better)
        facts = await rig.until(lambda facts: not facts.problem)
        assert look(facts) == second
        if collection == NODES:
            rig.api.put(NODES, "n", NODE)
        else:
            rig.api.delete(collection, name)
        facts = await rig.until(lambda facts: look(facts) == default)
        if collection != CONFIG:
            assert facts.settings == NodeSettings(OWN.colocation, OWN.suppress) and len(rig.api.events) == 1

    play(tmp_path, scene)


def test_a_deleted_config_map_lends_nothing_until_it_is_back(tmp_path: Path) -> None:
    """Nobody can tell what it would have said; it is told once, by name, also as an Event."""
    told = f"ConfigMap koordinator-system/{MAP}: was deleted; nothing more is lent until it is back or the agent is restarted"

    async def scene(rig: Rig) -> None:
        await rig.known()
        rig.api.put(CONFIG, MAP, config(colocation_config=ON))
        await rig.until(lambda facts: facts.settings.normalization.default_ratio)
        assert rig.edge.facts().settings.colocation.enable
        rig.api.delete(CONFIG, MAP)
        facts = await rig.until(lambda facts: facts.problem)
        assert facts.problem == told and not facts.settings.colocation.enable and facts.settings_deleted
        assert facts.for_limits().unsettled is Reason.SETTINGS_DELETED
        await rig.until(lambda _: rig.api.events)
        assert [(event["reason"], event["message"]) for event in rig.api.events] == [("SettingsDeleted", told)]
        rig.api.put(CONFIG, MAP, config(colocation_config=ON))
        facts = await rig.until(lambda facts: not facts.problem)
        assert facts.settings.colocation.enable and not facts.settings_deleted

    play(tmp_path, scene)


@pytest.mark.parametrize("late", ["nodes", "configmaps", "nodeslos", "nodemetrics"])
def test_settings_are_known_when_every_document_was_looked_up(tmp_path: Path, late: str) -> None:
    """Until then nothing is lent, and the missing one is named."""
    kinds = {"nodes": "Node n", "configmaps": f"ConfigMap koordinator-system/{MAP}", "nodeslos": "NodeSLO n"}

    async def scene(rig: Rig) -> None:
        named = f"{kinds.get(late, 'NodeMetric n')}: not read yet"
        facts = await rig.until(lambda facts: facts.problem == named and facts.pods is not None)
        assert not facts.settings_known and facts.for_limits().unsettled
        rig.api.release(late)
        facts = await rig.known()
        assert facts.problem == "" and facts.node is not None and not facts.unsettled

    play(tmp_path, scene, lambda api: api.held.add(late))


def test_before_anything_was_read(tmp_path: Path) -> None:
    """No node, no pods, of unknown age, and the agent's own settings."""

    async def scene(rig: Rig) -> None:
        facts = rig.edge.facts()
        assert (facts.node, facts.pods, facts.settings_known) == (None, None, False)
        assert facts.pods_age_seconds == float("inf") and facts.settings == NodeSettings(OWN.colocation, OWN.suppress)

    play(tmp_path, scene)


def test_a_cluster_without_koordinator_s_definitions(tmp_path: Path) -> None:
    """404 for NodeSLO and NodeMetric is an answer: there are none, and the agent's own settings hold."""

    async def scene(rig: Rig) -> None:
        facts = await rig.known()
        assert facts.problem == "" and facts.settings == NodeSettings(OWN.colocation, OWN.suppress)

    play(tmp_path, scene, lambda api: api.absent.update(("nodeslos", "nodemetrics")))


def test_a_document_that_was_never_good_lends_nothing(tmp_path: Path) -> None:
    """There is nothing to keep: what may limit lending is not known, so there is no lending until it is mended."""

    def prepare(api: Collections) -> None:
        api.put(CONFIG, MAP, config(colocation_config="nonsense"))

    async def scene(rig: Rig) -> None:
        facts = await rig.known()
        assert "colocation-config" in facts.problem and not facts.settings.colocation.enable
        rig.api.put(CONFIG, MAP, config(colocation_config={"enable": True}))
        facts = await rig.until(lambda facts: not facts.problem)
        assert facts.settings.colocation.enable

    play(tmp_path, scene, prepare)


NEVER_GOOD: dict[str, tuple[dict[str, Any], bool]] = {
    "the ceiling depends on it": ({"resource_threshold_config": "nonsense"}, True),
    "lending alone depends on it": ({"colocation_config": "nonsense"}, False),
}


@pytest.mark.parametrize(("keys", "unsettled"), NEVER_GOOD.values(), ids=NEVER_GOOD.keys())
def test_a_ceiling_that_was_never_told_is_not_raised(tmp_path: Path, keys: dict[str, Any], unsettled: bool) -> None:
    """It may be lower than the default; a document of something else holds nothing up."""

    async def scene(rig: Rig) -> None:
        facts = await rig.known()
        assert facts.problem and (facts.for_limits().unsettled is not None) is unsettled
        rig.api.put(CONFIG, MAP, config(colocation_config=ON))
        facts = await rig.until(lambda facts: not facts.problem)
        assert not facts.for_limits().unsettled

    play(tmp_path, scene, lambda api: api.put(CONFIG, MAP, config(**keys)))


def test_what_the_ceiling_depends_on_is_known() -> None:
    """By the names of the documents."""
    assert set(Documents.__struct_fields__) >= _LIMIT_CPU


def test_one_broken_document_does_not_hold_up_another(tmp_path: Path) -> None:
    """Switching off takes effect while a NodeSLO is broken; both faults are told."""

    async def scene(rig: Rig) -> None:
        await rig.known()
        rig.api.put(SLO, "n", {"spec": {"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": 500}}})
        rig.api.put(CONFIG, MAP, config(colocation_config={"enable": False}, cpu_normalization_config="{"))
        facts = await rig.until(lambda facts: not facts.settings.colocation.enable and "; " in facts.problem)
        assert "is 500" in facts.problem and "cpu-normalization-config" in facts.problem
        await rig.until(lambda _: len(rig.api.events) >= 2)

    play(tmp_path, scene)


def test_a_standing_fault_is_told_once(tmp_path: Path) -> None:
    """However often other objects change meanwhile, as a Node does with each of the kubelet's heartbeats."""

    async def scene(rig: Rig) -> None:
        await rig.known()
        with capture_logs() as logs:
            rig.api.put(SLO, "n", {"spec": {"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": 500}}})
            await rig.until(lambda facts: facts.problem)
            key = "node.koordinator.sh/beat"
            for beat in ("1", "2", "3"):
                rig.api.put(NODES, "n", annotated(beat=beat))
                await rig.until(lambda facts, b=beat: facts.node and facts.node.annotations.get(key) == b)
        assert [entry["log_level"] for entry in logs].count("error") == 1

    play(tmp_path, scene)


def test_what_is_asked_for(tmp_path: Path) -> None:
    """Of the whole cluster only what speaks of this node."""

    async def scene(rig: Rig) -> None:
        await rig.known()
        group = "/apis/slo.koordinator.sh/v1alpha1"
        assert rig.api.selectors == {
            "/api/v1/nodes": "metadata.name=n",
            "/api/v1/pods": "spec.nodeName=n,status.phase!=Succeeded,status.phase!=Failed",
            "/api/v1/namespaces/koordinator-system/configmaps": f"metadata.name={MAP}",
            f"{group}/nodeslos": "metadata.name=n",
            f"{group}/nodemetrics": "metadata.name=n",
        }

    play(tmp_path, scene)


def test_pods_as_they_come_and_go(tmp_path: Path) -> None:
    """In order, the very same tuple while nothing changes; one that cannot be read is left out or stays as it was."""

    def names(facts: ClusterFacts) -> list[str]:
        return [pod.key for pod in facts.pods or ()]

    def prepare(api: Collections) -> None:
        for name, cpu in (("b", "1"), ("a", "1"), ("bad", "4Gib")):
            api.put("pods", name, pod(name, cpu))

    async def scene(rig: Rig) -> None:
        facts = await rig.known()
        assert names(facts) == ["ns/a", "ns/b"] and facts.pods_age_seconds < 20
        assert [told.partition(":")[0] for told in facts.unread_pods] == ["Pod ns/bad"]
        assert rig.edge.facts().pods is facts.pods
        rig.api.put("pods", "c", pod("c"))
        await rig.until(lambda facts: names(facts) == ["ns/a", "ns/b", "ns/c"])
        with capture_logs() as logs:
            rig.api.put("pods", "c", pod("c", "nonsense"))
            await rig.until(lambda _: logs)
        assert "Pod ns/c: container c" in logs[0]["error"] and len(names(rig.edge.facts())) == 3
        assert len(rig.edge.facts().unread_pods) == 2
        rig.api.delete("pods", "a")
        rig.api.delete("pods", "bad")
        rig.api.delete("pods", "c")
        await rig.until(lambda facts: names(facts) == ["ns/b"] and not facts.unread_pods)

    play(tmp_path, scene, prepare)


class OtherPods:
    """Another source of pods, as the kubelet's."""

    def __init__(self, *pods: Pod) -> None:
        self.pods: tuple[Pod, ...] | None = pods or None
        self.unread: tuple[str, ...] = ()
        self.age_seconds = 77.0


def test_pods_of_another_source(tmp_path: Path, build: Any) -> None:
    """Its list and its age count, and the API server is not asked for pods."""
    source = OtherPods()

    async def scene(rig: Rig) -> None:
        facts = await rig.until(lambda facts: facts.settings_known)
        assert (facts.pods, facts.pods_age_seconds) == (None, 77.0)
        source.pods = (build.pod(),)
        assert rig.edge.facts().pods == source.pods
        assert "/api/v1/pods" not in rig.api.selectors

    play(tmp_path, scene, kubelet=source)


def test_a_node_that_is_deleted_or_unreadable(tmp_path: Path) -> None:
    """Unreadable keeps the last good state; deleted it is gone, but what its annotations said holds on."""

    async def scene(rig: Rig) -> None:
        rig.api.put(NODES, "n", annotated(reservation='{"reservedCPUs": "0-1"}'))
        facts = await rig.until(lambda facts: reserved(facts) == 2000)
        assert facts.node is not None and rig.edge.node_ref.uid == "node-uid"
        broken = copy.deepcopy(NODE)
        broken["status"]["capacity"]["cpu"] = "many"
        with capture_logs() as logs:
            rig.api.put(NODES, "n", broken)
            await rig.until(lambda _: logs)
        assert "Node n: status.capacity" in logs[0]["error"] and rig.edge.facts().node == facts.node
        rig.api.delete(NODES, "n")
        facts = await rig.until(lambda facts: facts.node is None)
        assert reserved(facts) == 2000 and rig.edge.node_ref.uid == ""
        rig.api.put(NODES, "n", NODE)
        await rig.until(lambda facts: facts.node and reserved(facts) == 0)

    play(tmp_path, scene)


def test_a_deleted_node_loosens_nothing(tmp_path: Path) -> None:
    """Its labels chose a tighter ceiling than the cluster's and reserved CPUs of the zones: both stay as they are."""
    pool = {"name": "a", "nodeSelector": {"matchLabels": {"pool": "a"}}, "cpuSuppressThresholdPercent": 40}
    cluster = {"enable": False, "cpuSuppressThresholdPercent": 65}
    strategy = {"clusterStrategy": cluster, "nodeStrategies": [{**pool, "enable": True}]}

    def prepare(api: Collections) -> None:
        api.put(CONFIG, MAP, config(colocation_config={"enable": True}, resource_threshold_config=strategy))
        api.put(NODES, "n", labelled(enable_numa_reservation="true"))

    async def scene(rig: Rig) -> None:
        before = await rig.until(lambda facts: facts.node and ceiling(facts) == 40)
        rig.api.delete(NODES, "n")
        await rig.until(lambda facts: facts.node is None)
        rig.api.put(CONFIG, MAP, config(colocation_config={"enable": False}, resource_threshold_config=strategy))
        facts = await rig.until(lambda facts: not facts.settings.colocation.enable)
        assert (facts.settings.suppress.enable, ceiling(facts)) == (True, 40)
        assert facts.zones == before.zones and facts.zones[0].allocatable[CPU] == 1500

    play(tmp_path, scene, prepare, topology=lambda: CPUS)


def test_isolated_cpus_are_not_best_effort_s(tmp_path: Path) -> None:
    """The kernel spreads nobody over them, so no CPU list holds them."""

    async def scene(rig: Rig) -> None:
        facts = await rig.until(lambda facts: facts.processors)
        assert [processor.cpu for processor in facts.processors] == [0, 1]

    play(tmp_path, scene, topology=lambda: msgspec.structs.replace(CPUS, isolated=(2, 3)))


def test_the_node_s_own_condition(tmp_path: Path) -> None:
    """As it stands, whoever wrote it."""
    node = copy.deepcopy(NODE)
    node["status"]["conditions"] = [
        {"type": "Ready", "status": "False"},
        {"type": "ColocationReady", "status": "True", "lastTransitionTime": "2026-11-21T00:00:00Z"},
    ]

    async def scene(rig: Rig) -> None:
        assert rig.edge.condition("ColocationReady") is None
        await rig.known()
        found = rig.edge.condition("ColocationReady")
        assert found is not None and (found.status, found.last_transition_time) == ("True", "2026-11-21T00:00:00Z")
        assert rig.edge.condition("Other") is None

    play(tmp_path, scene, lambda api: api.put(NODES, "n", node))


def test_zones_follow_the_machine_and_the_node(tmp_path: Path) -> None:
    """From the CPUs there are; the kubelet's reservation counts only where the label asks for it."""
    machine: list[CpuInfo | None] = [None]

    async def scene(rig: Rig) -> None:
        facts = await rig.known()
        assert (facts.zones, facts.cpu) == ((), None)
        machine[0] = CPUS
        facts = rig.edge.facts()
        assert [(zone.name, zone.allocatable[CPU]) for zone in facts.zones] == [("node-0", 2000), ("node-1", 2000)]
        assert facts.cpu == CPUS.basics and rig.edge.facts().zones is facts.zones
        rig.api.put(NODES, "n", labelled(enable_numa_reservation="true"))
        # 1000m of 4 CPUs are reserved, half of it in each of two zones.
        await rig.until(lambda facts: [zone.allocatable[CPU] for zone in facts.zones] == [1500, 1500])

    play(tmp_path, scene, topology=lambda: machine[0])


def test_what_is_asked_in_vain_is_a_fact(tmp_path: Path) -> None:
    """For the node's condition: it comes with the document and goes with it."""

    async def scene(rig: Rig) -> None:
        assert (await rig.known()).unmet == ()
        for on in (True, False):
            strategy = {"beClass": {"networkQOS": {"enable": on}}}
            rig.api.put(
                "configmaps", "slo-controller-config", config(resource_qos_config={"clusterStrategy": strategy})
            )
            expected = ("resource-qos-config.*Class.networkQOS",) if on else ()
            await rig.until(lambda facts, unmet=expected: facts.unmet == unmet)

    play(tmp_path, scene)
