"""Taking Sublet off: what is asked of the API server, step by step, and what stays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cli.uninstall.plan import Unfinished
from cli.uninstall.removal import Removal
from tests.cli.uninstall.daemonset import daemon_set
from tests.kube.conftest import ScriptedServer, says

CPU = "kubernetes.io/batch-cpu"


def play(
    folder: Path, answer: Callable[[web.Request], Any], timeout: float = 5.0
) -> tuple[list[tuple[str, str]], list[str], str]:
    """Requests that change something, what was told, and why it did not finish."""
    told: list[str] = []

    async def run() -> tuple[list[tuple[str, str]], str]:
        server = ScriptedServer(folder)
        client = await server.start()

        async def answered(request: web.Request) -> web.StreamResponse:
            body, status = answer(request)
            return await says(body, status)(request)

        server.answers = [answered]
        try:
            await Removal(client, "sublet-system", told.append, timeout).run(restore=True)
            why = ""
        except Unfinished as unfinished:
            why = str(unfinished)
        finally:
            await client.close()
            await server.stop()
        return [(r[0], r[1].split("?")[0]) for r in server.requests if r[0] != "GET"], why

    changes, why = asyncio.run(run())
    return changes, told, why


def test_where_nothing_is_installed_nothing_is_done(tmp_path: Path) -> None:
    """Every step passes over what is not there, so that it may be run again."""

    def answer(request: web.Request) -> tuple[Any, int]:
        listed = request.path in ("/api/v1/nodes", "/api/v1/pods")
        return ({"items": []}, 200) if listed else ({"message": "not found"}, 404)

    changes, told, why = play(tmp_path, answer)
    assert why == "" and "no agents run: nothing to restore" in told
    assert {method for method, _ in changes} == {"PATCH", "DELETE"}


def test_a_node_that_cannot_be_restored_keeps_everything_else(tmp_path: Path) -> None:
    """Only lending has stopped and the webhooks are gone; the node is named."""
    stuck = {
        "metadata": {"name": "sublet-agent-x"},
        "spec": {"nodeName": "n9"},
        "status": {"initContainerStatuses": [{"name": "restore", "state": {"waiting": {}}}]},
    }
    status = {"desiredNumberScheduled": 1, "updatedNumberScheduled": 1, "observedGeneration": 3}

    def answer(request: web.Request) -> tuple[Any, int]:
        if request.path.endswith("/daemonsets/sublet-agent"):
            return {**daemon_set(), "status": status}, 200
        return ({"items": [stuck]}, 200) if request.path.endswith("/pods") else ({}, 200)

    changes, told, why = play(tmp_path, answer, timeout=0.01)
    assert "not restored within 0.01 s: n9" in why
    assert "original limits are back on 0 of 1 nodes" in told
    assert not any("/nodes" in path or path.endswith("/namespaces/sublet-system") for _, path in changes)


def test_all_of_it(tmp_path: Path) -> None:
    """Nodes are cleaned after their limits are back, programs go before the objects they would make again."""
    done = {
        "metadata": {"name": "sublet-agent-x"},
        "spec": {"nodeName": "n1"},
        "status": {"initContainerStatuses": [{"name": "restore", "state": {"terminated": {"exitCode": 0}}}]},
    }
    node = {"metadata": {"name": "n1"}, "status": {"allocatable": {CPU: "4000"}, "capacity": {CPU: "4000"}}}
    status = {"desiredNumberScheduled": 1, "updatedNumberScheduled": 1, "observedGeneration": 3}

    def answer(request: web.Request) -> tuple[Any, int]:
        path = request.path
        if path.endswith("/daemonsets/sublet-agent"):
            return {**daemon_set(), "status": status}, 200
        if request.method == "GET" and path.endswith("/namespaces/sublet-system"):
            return {"message": "not found"}, 404
        items = {"/api/v1/nodes": [node], "/api/v1/namespaces/sublet-system/pods": [done]}.get(path)
        if path.endswith(("nodemetrics", "nodeslos", "clusterroles")):
            items = [{"metadata": {"name": "n1", "labels": {"app.kubernetes.io/managed-by": "sublet"}}}]
        return {"items": items or []}, 200

    changes, _, why = play(tmp_path, answer)
    assert why == ""
    paths = [path for _, path in changes]
    order = (
        "/configmaps/sublet-fleet",
        "/mutatingwebhookconfigurations/sublet-admission",
        "/daemonsets/sublet-agent",
        "/nodes/n1/status",
        "/api/v1/namespaces/sublet-system",
        "/nodemetrics/n1",
        "/clusterroles/n1",
    )
    places = [next(place for place, path in enumerate(paths) if path.endswith(mark)) for mark in order]
    assert places == sorted(places)


MINE, THEIRS = {"app.kubernetes.io/managed-by": "sublet"}, {"app.kubernetes.io/managed-by": "Koordinator"}
READY = [{"type": "ColocationReady", "status": "False"}]
OFFERS: dict[str, tuple[list[dict[str, str]], dict[str, str] | None, bool]] = {
    "our condition": (READY, MINE, True),
    "our condition beside their NodeMetric": (READY, THEIRS, True),
    "what a first run left to running pods": ([], None, True),
    "what somebody else lends": ([], THEIRS, False),
}


@pytest.mark.parametrize(("conditions", "metric", "cleaned"), OFFERS.values(), ids=OFFERS)
def test_what_others_lend_is_left_alone(conditions, metric, cleaned, tmp_path):
    """Koordinator may have been there before, and may stay."""
    node = {"metadata": {"name": "n1"}, "status": {"allocatable": {CPU: "4000"}, "conditions": conditions}}

    def answer(request: web.Request) -> tuple[Any, int]:
        if request.method == "GET" and "/namespaces/" in request.path:
            return {"message": "not found"}, 404
        items = [node] if request.path == "/api/v1/nodes" else []
        if request.path.endswith("/nodemetrics") and metric is not None:
            items = [{"metadata": {"name": "n1", "labels": metric}}]
        return {"items": items}, 200

    changes, _, why = play(tmp_path, answer)
    assert why == ""
    assert (("PATCH", "/api/v1/nodes/n1/status") in changes) is cleaned
    assert (("PATCH", "/api/v1/nodes/n1") in changes) is cleaned


def test_a_namespace_that_is_not_marked_as_ours_is_kept(tmp_path: Path) -> None:
    """Other things may live there: only what carries our label goes, and what our programs made."""
    spaces = "/api/v1/namespaces/sublet-system"

    def answer(request: web.Request) -> tuple[Any, int]:
        if request.path.endswith("/daemonsets/sublet-agent"):
            return {"message": "not found"}, 404
        if request.path == spaces:
            return {"metadata": {"name": "sublet-system", "labels": {"team": "a"}}}, 200
        asked = request.query.get("labelSelector", "")
        if request.path == f"{spaces}/services":
            return {"items": [{"metadata": {"name": "ours" if asked else "theirs"}}]}, 200
        return {"items": []}, 200

    changes, told, why = play(tmp_path, answer)
    assert why == ""
    assert ("DELETE", spaces) not in changes
    assert ("DELETE", f"{spaces}/services/ours") in changes
    assert ("DELETE", f"{spaces}/secrets/sublet-ca") in changes
    assert any("namespace sublet-system is kept" in line for line in told)


def test_objects_are_found_by_a_label_of_our_own(tmp_path: Path) -> None:
    """Koordinator labels its NodeResourceTopologies as we have to label ours."""
    asked: dict[str, str] = {}

    def answer(request: web.Request) -> tuple[Any, int]:
        if "/namespaces/" in request.path:
            return {"message": "not found"}, 404
        asked.setdefault(request.path.rpartition("/")[2], request.query.get("labelSelector", ""))
        return {"items": []}, 200

    play(tmp_path, answer)
    assert asked["noderesourcetopologies"] == "app.kubernetes.io/part-of=sublet"
    assert asked["clusterroles"] == "app.kubernetes.io/part-of=sublet"
