"""What of the cluster is known, and what is when something of it is not there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from admission.core.evictions import StoredPod
from admission.edge.cluster import ClusterView
from kube.client import KubeClient
from model.fault import KubernetesFault
from model.profile import ColocationProfile
from model.selector import Selector

PROFILES = "/apis/config.koordinator.sh/v1alpha1/clustercolocationprofiles"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


class Api:
    """Collections by path; a collection that is not there is 404. Watches say what is put into `events`, for ever."""

    def __init__(self) -> None:
        self.collections: dict[str, list[dict[str, Any]]] = {"/api/v1/namespaces": [], "/api/v1/nodes": [], CLASSES: []}
        self.events: dict[str, asyncio.Queue[dict[str, Any]]] = {}
        self.asked: list[str] = []
        self.queries: list[tuple[str, dict[str, str]]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        self.queries.append((request.path, dict(request.query)))
        if request.path not in self.collections:
            folder, _, name = request.path.rpartition("/")
            found = [each for each in self.collections.get(folder, ()) if each["metadata"]["name"] == name]
            return web.json_response(found[0]) if found else web.json_response({"message": "none"}, status=404)
        if "watch" not in request.query:
            shown = [each for each in self.collections[request.path] if not each.get("hidden")]
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": shown})
        response = web.StreamResponse()
        await response.prepare(request)
        queue = self.events.setdefault(request.path, asyncio.Queue())
        while True:
            await response.write(msgspec.json.encode(await queue.get()) + b"\n")


def named(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "1", **more.pop("metadata", {})}, **more}


def play(folder: Path, api: Api, scene: Callable[[ClusterView], Awaitable[None]]) -> None:
    async def run() -> None:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", api.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        path = folder / "kubeconfig"
        path.write_text(
            f"{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], "
            f"clusters: [{{name: c, cluster: {{server: '{url}'}}}}], users: [{{name: u, user: {{token: t}}}}]}}"
        )
        async with asyncio.timeout(30), await KubeClient.connect(path, "test") as client:
            view = ClusterView(client)
            assert not view.synced
            tasks = [asyncio.create_task(work) for work in view.work()]
            await until(lambda: view.synced)
            await scene(view)
            for task in tasks:
                task.cancel()
        await runner.cleanup()

    asyncio.run(run())


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def test_without_the_definition_there_are_no_profiles(tmp_path: Path) -> None:
    """A cluster without Koordinator's types is no error."""

    async def scene(view: ClusterView) -> None:
        assert view.profiles() == () and view.classes() == {} and view.silent_seconds < 30

    play(tmp_path, Api(), scene)


def test_what_is_there_and_what_changes(tmp_path: Path) -> None:
    """Profiles by name, classes with their values, labels of namespaces and nodes; changes and deletions follow."""
    api = Api()
    api.collections[PROFILES] = [named("b", spec={"schedulerName": "s"}), named("a", spec={"probability": "x"})]
    api.collections[CLASSES].append(named("koord-batch", value=5000))
    api.collections["/api/v1/nodes"].append(named("n1", metadata={"labels": {"x": "1"}}))
    api.collections["/api/v1/namespaces"].append(named("batch", metadata={"labels": {"y": "1"}}))

    async def scene(view: ClusterView) -> None:
        assert [each.name for each in view.profiles()] == ["a", "b"]
        assert view.profiles()[0].fault and view.profiles()[1] == ColocationProfile("b", Selector(), scheduler_name="s")
        assert view.classes()["koord-batch"].value == 5000
        assert (view.node_labels(), view.namespace_labels("batch")) == ({"n1": {"x": "1"}}, {"y": "1"})
        await until(lambda: PROFILES in api.events and CLASSES in api.events)
        mended = named("a", spec={}, metadata={"resourceVersion": "2"})
        api.events[PROFILES].put_nowait({"type": "MODIFIED", "object": mended})
        api.events[PROFILES].put_nowait({"type": "DELETED", "object": named("b")})
        api.events[CLASSES].put_nowait({"type": "DELETED", "object": named("koord-batch", value=5000)})
        await until(lambda: view.profiles() == (ColocationProfile("a"),) and not view.classes())

    play(tmp_path, api, scene)


def test_a_pod_is_read_as_it_is_stored(tmp_path: Path) -> None:
    """Each time, past every copy; what else stands in it is not looked at."""
    api = Api()
    labels, spec = {"koordinator.sh/qosClass": "LS"}, {"nodeName": "n1", "priority": 9000, "containers": "no list"}
    pods = api.collections["/api/v1/namespaces/shop/pods"] = []

    async def scene(view: ClusterView) -> None:
        with pytest.raises(KubernetesFault) as error:
            await view.find_pod("shop", "web")
        assert error.value.status == 404
        pods.append(named("web", metadata={"labels": labels}, spec=spec))
        assert await view.find_pod("shop", "web") == StoredPod("shop", "web", "web", "n1", labels, 9000)
        pods[0] = named("web", metadata={"uid": "later"}, spec={})
        assert await view.find_pod("shop", "web") == StoredPod("shop", "web", "later")
        pods[0] = named("web", metadata={"labels": 5})
        with pytest.raises(KubernetesFault) as error:
            await view.find_pod("shop", "web")
        assert error.value.reason == "Unreadable"
        asked = [query for path, query in api.queries if path.endswith("/pods/web")]
        assert asked == [{}] * 4

    play(tmp_path, api, scene)


def test_a_namespace_that_the_watch_has_not_shown_is_asked_for(tmp_path: Path) -> None:
    """Once; one that does not exist stays unknown."""
    api = Api()
    api.collections["/api/v1/namespaces"].append(named("new", metadata={"labels": {"y": "1"}}, hidden=True))

    async def scene(view: ClusterView) -> None:
        assert view.namespace_labels("new") is None
        for name in ("new", "new", "gone"):
            await view.look_for(name)
        assert view.namespace_labels("new") == {"y": "1"} and view.namespace_labels("gone") is None
        assert api.asked.count("/api/v1/namespaces/new") == 1

    play(tmp_path, api, scene)


QUEUES = "/apis/sublet.dev/v1alpha1/queues"
QUOTAS = "/apis/scheduling.sigs.k8s.io/v1alpha1/elasticquotas"


def names(view: ClusterView) -> list[str] | None:
    found = view.queues()
    return None if found is None else sorted(found)


def test_queues(tmp_path: Path) -> None:
    """Of every kind that is served; changes and deletions follow."""
    api = Api()
    api.collections[QUEUES] = [named("a", spec={"weight": 2}), named("bad", spec={"weight": 0})]
    api.collections[QUOTAS] = [named("q", metadata={"namespace": "team"})]

    async def scene(view: ClusterView) -> None:
        await until(lambda: names(view) == ["a", "q"])
        await until(lambda: QUEUES in api.events)
        api.events[QUEUES].put_nowait({"type": "DELETED", "object": named("a")})
        await until(lambda: names(view) == ["q"])

    play(tmp_path, api, scene)


def test_a_parent_that_is_asked_for(tmp_path: Path) -> None:
    """Only where a queue names one that is not known; one that is not there, or no queue at all, asks for nothing more."""
    api = Api()
    api.collections[QUEUES] = [named("org", hidden=True)]
    team = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/team/elasticquotas"
    api.collections[team] = [named("top", metadata={"namespace": "team"})]

    async def scene(view: ClusterView) -> None:
        await until(lambda: names(view) == [])
        api.asked.clear()
        await view.look_for_parent("sublet.dev", "Queue", b'{"metadata":{"name":"a"},"spec":{"parent":"org"}}')
        await view.look_for_parent("sublet.dev", "Queue", b'{"metadata":{"name":"b"},"spec":{"parent":"org"}}')
        await view.look_for_parent("sublet.dev", "Queue", b'{"metadata":{"name":"c"},"spec":{"parent":"gone"}}')
        await view.look_for_parent("sublet.dev", "Queue", b'{"metadata":{"name":"d"}}')
        await view.look_for_parent("sublet.dev", "Queue", b"null")
        await view.look_for_parent("", "ConfigMap", b"{}")
        label = "quota.scheduling.koordinator.sh/parent"
        quota = {"metadata": {"name": "q", "namespace": "team", "labels": {label: "top"}}}
        await view.look_for_parent("scheduling.sigs.k8s.io", "ElasticQuota", msgspec.json.encode(quota))
        asked = [path for path in api.asked if path.rpartition("/")[2] in ("org", "gone", "top")]
        assert asked == [f"{QUEUES}/org", f"{QUEUES}/gone", f"{team}/top"] and names(view) == ["org", "top"]

    play(tmp_path, api, scene)
