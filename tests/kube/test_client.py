"""Requests carry identity, and every failure is one fault with its status."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from kube.client import KubeClient, PatchKind, decode, path_of
from kube.objects import Node, Pod
from model.fault import ConfigurationFault, KubernetesFault
from tests.kube.test_yamldocuments import INVALID


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"resource": "v1/nodes"}, "/api/v1/nodes"),
        (
            {"resource": "v1/pods", "namespace": "a", "name": "p", "subresource": "binding"},
            "/api/v1/namespaces/a/pods/p/binding",
        ),
        ({"resource": "batch/v1/jobs", "namespace": "a"}, "/apis/batch/v1/namespaces/a/jobs"),
        (
            {"resource": "slo.koordinator.sh/v1alpha1/nodemetrics", "name": "n"},
            "/apis/slo.koordinator.sh/v1alpha1/nodemetrics/n",
        ),
    ],
)
def test_paths(arguments: dict[str, str], path: str) -> None:
    """Core and named groups, namespaced and not."""
    assert path_of(**arguments) == path


def test_requests(server: Any, says_: Any) -> None:
    """Verb, path, query and body arrive; the answer is decoded into what was asked for."""

    async def scene() -> None:
        client = await server.start()
        server.answers = [says_({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": 2}}})]
        node = await client.get("/api/v1/nodes/n", Node, resourceVersion="0")
        assert node.metadata.name == "n" and node.status.capacity == {"cpu": 2}
        await client.patch("/api/v1/nodes/n/status", {"status": {}}, PatchKind.STRATEGIC)
        await client.delete("/api/v1/pods/p", uid="u", grace_seconds=0)
        await client.close()
        await server.stop()
        assert server.requests[0][:3] == ("GET", "/api/v1/nodes/n", {"resourceVersion": "0"})
        assert server.requests[1][0] == "PATCH"
        assert (
            server.requests[2][3]["preconditions"] == {"uid": "u"} and server.requests[2][3]["gracePeriodSeconds"] == 0
        )

    asyncio.run(scene())


def kept_alive(port: int) -> list[int]:
    """Of connections of this process to that port after how many seconds of silence they are tried, 0: never."""
    found = list[int]()
    for entry in tuple(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(entry.name))) as each:
            if each.family == socket.AF_INET and each.getpeername()[1] == port:
                kept = each.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                found.append(kept and each.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE))
    return found


def test_a_watch_that_is_silent_finds_out_whether_its_path_is_there(server: Any, streams_: Any) -> None:
    """A load balancer that forgot it says nothing, and the server may be silent for two minutes."""

    async def scene() -> list[int]:
        client = await server.start()
        server.answers = [streams_({"type": "BOOKMARK", "object": {}}, hold=True)]
        lines = client.stream("/api/v1/pods", {"watch": "true"}, idle_seconds=100.0)
        async with contextlib.aclosing(lines), asyncio.timeout(10):
            await anext(lines)
            found = kept_alive(int(client.host.rpartition(":")[2]))
        await client.close()
        await server.stop()
        return found

    assert asyncio.run(scene()) == [15]


def test_a_request_waits_for_no_other(server: Any, says_: Any) -> None:
    """However many are under way: pods of jobs that are made all the time kept bindings of services from being asked for."""

    async def scene() -> None:
        client, released = await server.start(), asyncio.Event()

        async def holds(request: Any) -> Any:
            await released.wait()
            return await says_({})(request)

        server.answers = [holds]
        held = [asyncio.create_task(client.create("/api/v1/pods", {})) for _ in range(150)]
        async with asyncio.timeout(10):
            while len(server.requests) < len(held):
                await asyncio.sleep(0.01)
            server.answers = [says_({})]
            await client.create("/api/v1/pods/p/binding", {})
            released.set()
            await asyncio.gather(*held)
        await client.close()
        await server.stop()

    asyncio.run(scene())


def test_refusals_and_silence(server: Any, says_: Any) -> None:
    """The server's own words and code; status 0 when nobody answers."""

    async def scene() -> None:
        client = await server.start()
        server.answers = [says_({"kind": "Status", "message": 'pods "p" not found', "reason": "NotFound"}, 404)]
        with pytest.raises(KubernetesFault) as told:
            await client.get("/api/v1/x", Node)
        assert (told.value.status, told.value.reason) == (404, "NotFound") and 'pods "p" not found' in str(told.value)
        await server.stop()
        with pytest.raises(KubernetesFault) as told:
            await client.get("/api/v1/x", Node)
        assert (told.value.status, told.value.reason) == (0, "NoAnswer")
        await client.close()

    asyncio.run(scene())


BUDGET = {"reason": "DisruptionBudget", "message": "The disruption budget b needs 2 healthy pods"}
REFUSALS = {
    "header": ({"retryAfterSeconds": 10}, {"Retry-After": "7"}, 7.0, "429 no"),
    "details": ({"retryAfterSeconds": 10}, {}, 10.0, "429 no"),
    "a date": ({}, {"Retry-After": "Fri, 31 Dec 2027 23:59:59 GMT"}, 0.0, "429 no"),
    "causes": ({"causes": [BUDGET]}, {}, 0.0, f"429 no {BUDGET['message']}"),
    "nothing": (None, {}, 0.0, "429 no"),
}


@pytest.mark.parametrize(("details", "headers", "seconds", "what"), REFUSALS.values(), ids=REFUSALS)
def test_how_long_to_wait(server: Any, details: Any, headers: dict[str, str], seconds: float, what: str) -> None:
    """As the server says, in whichever place; with what it says beside its message."""

    async def answer(request: web.Request) -> web.Response:
        body = {"kind": "Status", "message": "no", "reason": "TooManyRequests", "details": details}
        return web.json_response(body, status=429, headers=headers)

    async def scene() -> None:
        client = await server.start()
        server.answers = [answer]
        with pytest.raises(KubernetesFault) as told:
            await client.create("/api/v1/x", {})
        assert (told.value.retry_after_seconds, told.value.what) == (seconds, what)
        await client.close()
        await server.stop()

    asyncio.run(scene())


def test_what_is_there_already_stays(server: Any, says_: Any) -> None:
    """Made, there already, and refused for another reason, which is told."""

    async def scene() -> None:
        client = await server.start()
        taken = {"kind": "Status", "message": "there", "reason": "AlreadyExists"}
        refused = {"kind": "Status", "message": "not for you", "reason": "Forbidden"}
        server.answers = [says_({}, 201), says_(taken, 409), says_(refused, 403)]
        assert await client.create_missing("/api/v1/x", {})
        assert not await client.create_missing("/api/v1/x", {})
        with pytest.raises(KubernetesFault, match="not for you"):
            await client.create_missing("/api/v1/x", {})
        await client.close()
        await server.stop()

    asyncio.run(scene())


def test_a_missing_kubeconfig_is_one_line(tmp_path: Path) -> None:
    """The file, and nothing about its contents."""
    with pytest.raises(ConfigurationFault, match=r"none: no such file \(give --kubeconfig FILE\)$"):
        asyncio.run(KubeClient.connect(tmp_path / "none", "x"))


UNUSABLE = {name: text for name, (text, _) in INVALID.items() if name not in ("a list in itself", "a map in itself")}


@pytest.mark.parametrize("text", ["", "clusters: 5", "{]", "apiVersion: v1\nkind: Config\n", *UNUSABLE.values()])
def test_a_bad_kubeconfig_is_one_line(tmp_path: Path, text: str) -> None:
    """The file and the fix."""
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigurationFault, match=r"config: no usable cluster access.*--kubeconfig") as refused:
        asyncio.run(KubeClient.connect(path, "x"))
    assert "\n" not in str(refused.value)


def test_an_undecodable_object_names_object_and_field() -> None:
    """Where and what, as a Kubernetes fault."""
    with pytest.raises(KubernetesFault, match=r"pods/p: unreadable object: .*\$\.metadata\.name"):
        decode(b'{"metadata": {"name": 5}}', Pod, "pods/p")


def test_a_client_that_is_opened_later(tmp_path: Path, server: Any, says_: Any) -> None:
    """Nothing is opened before it is due, and once for however many requests; a wrong file is told by each of them."""

    async def scene() -> None:
        await (await server.start()).close()
        server.answers = [says_({"metadata": {"name": "n"}})]
        due, asked = asyncio.Event(), 0

        async def when() -> None:
            nonlocal asked
            asked += 1
            await due.wait()

        client = KubeClient.later(tmp_path / "kubeconfig", "x", when)
        waiting = [asyncio.create_task(client.get("/api/v1/nodes/n", Node)) for _ in range(3)]
        await asyncio.sleep(0)
        assert not server.requests
        due.set()
        assert [node.metadata.name for node in await asyncio.gather(*waiting)] == ["n"] * 3 and asked == 1
        await client.close()
        await server.stop()
        (tmp_path / "wrong").write_text("clusters: 5")
        wrong = KubeClient.later(tmp_path / "wrong", "x")
        for _ in range(2):
            with pytest.raises(ConfigurationFault, match="no usable cluster access"):
                await wrong.get("/api/v1/x", Node)
        await wrong.close()

    asyncio.run(scene())


def test_a_missing_kubeconfig_is_told_at_once(tmp_path: Path) -> None:
    """Before anything is opened."""
    with pytest.raises(ConfigurationFault, match="no such file"):
        KubeClient.later(tmp_path / "none", "x")


def test_what_only_the_official_reader_knows(tmp_path: Path, server: Any, says_: Any) -> None:
    """A token in a file of its own, and a certificate that is not looked at."""

    async def scene() -> None:
        await (await server.start()).close()
        config = msgspec.yaml.decode((tmp_path / "kubeconfig").read_bytes())
        (tmp_path / "token").write_text("t0ken")
        config["users"][0]["user"] = {"tokenFile": str(tmp_path / "token")}
        config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
        (tmp_path / "other").write_bytes(msgspec.yaml.encode(config))
        server.answers = [says_({"metadata": {"name": "n"}})]
        async with await KubeClient.connect(tmp_path / "other", "x") as client:
            assert (await client.get("/api/v1/nodes/n", Node)).metadata.name == "n"
        await server.stop()

    asyncio.run(scene())
