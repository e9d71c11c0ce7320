"""Pods from a kubelet over TLS: who is trusted, and what happens when it does not answer."""

from __future__ import annotations

import asyncio
import math
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from agent.edge.kubelet import KubeletPods
from agent.settings import PodOrigin, PodSource
from local.certificates import LocalAuthority
from model.fault import ConfigurationFault

AUTHORITY = LocalAuthority("kubelet test")


def pod(name: str, cpu: str = "1") -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"}, "spec": {"containers": [container]}}


def listing(*pods: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": list(pods)}


class Kubelet:
    """A TLS server on loopback; `answer` is (status, body), `tokens` what clients showed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answer: tuple[int, Any] = (200, listing(pod("a")))
        self.tokens: list[str] = []
        self.asked = asyncio.Event()
        certificate, key = AUTHORITY.issue("kubelet")
        (folder / "crt").write_bytes(certificate)
        (folder / "key").write_bytes(key)
        (folder / "ca").write_bytes(AUTHORITY.certificate_pem)
        (folder / "token").write_text("first\n")

    async def start(self) -> str:
        app = web.Application()
        app.router.add_get("/pods", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.folder / "crt", self.folder / "key")
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()
        return f"https://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        self.tokens.append(request.headers.get("Authorization", ""))
        self.asked.set()
        status, body = self.answer
        payload = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return web.Response(status=status, body=payload, content_type="application/json")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


Scene = Callable[[Kubelet, KubeletPods, Clock], Awaitable[None]]


def play(folder: Path, scene: Scene, **fields: Any) -> None:
    """A scene with a server and an edge that trusts it."""

    async def run() -> None:
        server, clock = Kubelet(folder), Clock()
        url = await server.start()
        trust = {"ca_file": str(folder / "ca"), "token_file": str(folder / "token")}
        edge = KubeletPods(PodSource(PodOrigin.KUBELET, url, **{**trust, **fields}), "test/1", clock)
        try:
            await scene(server, edge, clock)
        finally:
            await edge.close()
            await server.stop()

    asyncio.run(asyncio.wait_for(run(), 20))


def names(edge: KubeletPods) -> list[str] | None:
    return None if edge.pods is None else [found.name for found in edge.pods]


def test_a_good_answer(tmp_path: Path) -> None:
    """The whole list by name, dated; the token of the moment; nothing before the first answer."""

    async def scene(server: Kubelet, edge: KubeletPods, clock: Clock) -> None:
        assert edge.pods is None and edge.age_seconds == math.inf
        server.answer = (200, listing(pod("b"), pod("a")))
        await edge.poll()
        clock.now += 5
        assert names(edge) == ["a", "b"] and edge.age_seconds == 5
        (tmp_path / "token").write_text("second\n")
        server.answer = (200, listing(pod("c")))
        await edge.poll()
        assert names(edge) == ["c"] and edge.age_seconds == 0
        assert server.tokens == ["Bearer first", "Bearer second"]

    play(tmp_path, scene)


BAD: dict[str, tuple[tuple[int, Any], str]] = {
    "no pod at all": ((200, listing()), "lists no pod"),
    "null": ((200, {"kind": "PodList", "items": None}), "lists no pod"),
    "refused": ((403, b"Forbidden (user=x, verb=get, resource=nodes)"), "403 Forbidden"),
    "no JSON": ((200, b"<html>"), "unreadable object"),
    "broken pod": ((200, listing({"metadata": {"name": []}})), "unreadable object"),
}


@pytest.mark.parametrize(("answer", "told"), BAD.values(), ids=BAD.keys())
def test_a_bad_answer_keeps_the_last_list(tmp_path: Path, answer: tuple[int, Any], told: str) -> None:
    """Its age grows; said once, not each time; a good answer mends it."""

    async def scene(server: Kubelet, edge: KubeletPods, clock: Clock) -> None:
        await edge.poll()
        good, server.answer = server.answer, answer
        clock.now += 10
        with capture_logs() as logs:
            await edge.poll()
            await edge.poll()
        assert names(edge) == ["a"] and edge.age_seconds == 10
        assert len(logs) == 1 and told in logs[0]["error"] and logs[0]["effect"] == "the last list stays"
        server.answer = good
        await edge.poll()
        assert edge.age_seconds == 0

    play(tmp_path, scene)


def test_one_unreadable_pod_does_not_hide_the_others(tmp_path: Path) -> None:
    """It is named with its container and amount."""

    async def scene(server: Kubelet, edge: KubeletPods, clock: Clock) -> None:
        server.answer = (200, listing(pod("bad", "much"), pod("good")))
        with capture_logs() as logs:
            await edge.poll()
            await edge.poll()
        assert names(edge) == ["good"] and len(logs) == 1 and len(edge.unread) == 1
        assert "Pod ns/bad: container c.resources.requests.cpu: 'much'" in logs[0]["error"]

    play(tmp_path, scene)


def test_an_equal_answer_changes_nothing(tmp_path: Path) -> None:
    """Whatever its order: the very same tuple, and a pod that did not change is not decoded again beside one that did."""

    async def scene(server: Kubelet, edge: KubeletPods, clock: Clock) -> None:
        server.answer = (200, listing(pod("a"), pod("b"), pod("bad", "much")))
        with capture_logs() as logs:
            await edge.poll()
            before = edge.pods
            server.answer = (200, listing(pod("bad", "much"), pod("b"), pod("a")))
            clock.now += 5
            await edge.poll()
        assert before is not None and edge.pods is before and edge.age_seconds == 0 and len(logs) == 1
        server.answer = (200, listing(pod("a"), pod("b", "2")))
        await edge.poll()
        assert edge.pods is not None and edge.pods[0] is before[0] and edge.pods[1] != before[1]

    play(tmp_path, scene)


def test_silence_and_a_missing_token_are_bad_answers(tmp_path: Path) -> None:
    """Nobody listens; the token file is gone, and no request goes out without it."""

    async def scene(server: Kubelet, edge: KubeletPods, clock: Clock) -> None:
        await edge.poll()
        (tmp_path / "token").unlink()
        with capture_logs() as logs:
            await edge.poll()
            await server.stop()
            (tmp_path / "token").write_text("x")
            await edge.poll()
        assert names(edge) == ["a"] and server.tokens == ["Bearer first"]
        assert f"pods.token_file {tmp_path}/token" in logs[0]["error"] and "no answer" in logs[1]["error"]

    play(tmp_path, scene)


@pytest.mark.parametrize("token", ["", "two words", "a\nX-Other: b"])
def test_what_is_no_token_is_not_sent(tmp_path: Path, token: str) -> None:
    """An empty file, or one that would put more than a token into the header."""

    async def scene(server: Kubelet, edge: KubeletPods, clock: Clock) -> None:
        (tmp_path / "token").write_text(token)
        with capture_logs() as logs:
            await edge.poll()
        assert server.tokens == [] and "holds no token" in logs[0]["error"]

    play(tmp_path, scene)


def test_a_stranger_is_not_asked(tmp_path: Path) -> None:
    """A certificate of another authority: no list, and no token shown."""
    (tmp_path / "other").write_bytes(LocalAuthority("somebody else").certificate_pem)

    async def scene(server: Kubelet, edge: KubeletPods, clock: Clock) -> None:
        with capture_logs() as logs:
            await edge.poll()
        assert edge.pods is None and server.tokens == [] and "certificate" in logs[0]["error"]

    play(tmp_path, scene, ca_file=str(tmp_path / "other"))


def test_no_verification_only_when_it_is_asked_for(tmp_path: Path) -> None:
    """Then any certificate will do, and the log says so once."""

    async def scene(server: Kubelet, edge: KubeletPods, clock: Clock) -> None:
        await edge.poll()
        assert names(edge) == ["a"]

    with capture_logs() as logs:
        play(tmp_path, scene, ca_file="", insecure_skip_verify=True)
    assert [entry["event"] for entry in logs] == ["kubelet certificate is not verified"]


def test_it_asks_at_once_and_when_woken(tmp_path: Path) -> None:
    """Without waiting for the ten seconds to pass, but a second after the last; not again before they have."""

    async def scene(server: Kubelet, edge: KubeletPods, clock: Clock) -> None:
        task = asyncio.create_task(edge.run())
        async with asyncio.timeout(5):
            await server.asked.wait()
            first = time.monotonic()
            server.asked.clear()
            edge.wake()
            await server.asked.wait()
            assert time.monotonic() - first >= 0.9
            server.asked.clear()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(server.asked.wait(), 0.6)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert len(server.tokens) == 2

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("source: kubelet", "ca_file must be set for source kubelet, or insecure_skip_verify"),
        ("{ca_file: /x, insecure_skip_verify: true}", "insecure_skip_verify must not be set together with ca_file"),
        ("kubelet_url: http://127.0.0.1:10255", r"kubelet_url"),
        ("kubelet_url: https://node/pods", r"kubelet_url"),
        ("source: both", r"source"),
        ("ca: /x", r"unknown field `ca`"),
    ],
)
def test_settings_that_contradict_themselves(text: str, told: str) -> None:
    """Named by field; a token never goes over plain HTTP."""
    with pytest.raises(msgspec.ValidationError, match=told):
        msgspec.yaml.decode(text, type=PodSource)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_ca_file_that_is_none_is_one_line(tmp_path: Path, content: str | None) -> None:
    """The setting and the file."""
    path = tmp_path / "ca.crt"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationFault, match=rf"^pods\.ca_file {path}: .*\(give the kubelet's CA\)$"):
        KubeletPods(PodSource(PodOrigin.KUBELET, ca_file=str(path)), "test/1")
