"""What the agent tells its Node over a network that keeps a request back and delivers it later, on the real server."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agent.report.node_patches import NodePatches, Superseded
from embedded.tests.apiserver.conftest import Live, start_live
from kube.client import KubeClient, path_of
from model.resources import BATCH_CPU

__all__ = ["start_live"]
_HANDSHAKE = 0x16
"""The type of a TLS record."""
_REQUEST_BYTES = 300
"""A patch has more, the end of a TLS handshake less."""


class Proxy:
    """Passes bytes on. A connection opened while `keeping` is set keeps what its client sends until `deliver`, also once
    the client has gone.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._delivered = asyncio.Event()
        self._keeping: list[asyncio.Task[None]] = []
        self.keeping = False
        self.kept = bytearray()

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def deliver(self) -> None:
        """All that was kept."""
        self._delivered.set()
        await asyncio.wait_for(asyncio.gather(*self._keeping), 20)

    async def stop(self) -> None:
        self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._port)
        back = asyncio.create_task(_pass(up_reader, writer))
        if self.keeping:
            self._keeping.append(asyncio.create_task(self._keep(reader, up_writer)))
            return
        await _pass(reader, up_writer)
        back.cancel()

    async def _keep(self, reader: asyncio.StreamReader, up_writer: asyncio.StreamWriter) -> None:
        """The client's first word in TLS 1.3 passes, so that it comes to send its request; what follows is kept."""
        reading = asyncio.create_task(self._collect(reader, up_writer))
        await self._delivered.wait()
        reading.cancel()
        up_writer.write(bytes(self.kept))
        await up_writer.drain()

    async def _collect(self, reader: asyncio.StreamReader, up_writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                if not self.kept and data[0] == _HANDSHAKE:
                    up_writer.write(data)
                else:
                    self.kept += data


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            # Whoever left is told nothing, but what comes is read to its end.
            with contextlib.suppress(OSError):
                writer.write(data)
        writer.close()


async def offer(node: NodePatches, millis: int) -> bool:
    """Whether it was answered; False where it was overtaken."""
    amounts = {BATCH_CPU: str(millis)}
    try:
        await node.offer({"status": {"capacity": amounts, "allocatable": amounts}}, {BATCH_CPU: millis}, {})
    except Superseded:
        return False
    return True


async def play(live: Live, folder: Path, *, versions: bool) -> tuple[int, str]:
    """A growth to 700 is kept back, 300 decided and told, the growth delivered.

    Returns how the server answered the growth, and what the Node offers in the end.
    """
    proxy = Proxy(urlsplit(live.address).port or 0)
    kubeconfig = json.loads(live.kubeconfig.read_text())
    kubeconfig["clusters"][0]["cluster"]["server"] = await proxy.start()
    through = folder / "through"
    through.write_text(json.dumps(kubeconfig))
    kept, direct = await KubeClient.connect(through, "kept/1"), await KubeClient.connect(live.kubeconfig, "direct/1")
    async with kept, direct, asyncio.timeout(60):
        node = json.loads(await direct.create(path_of("v1/nodes"), {"metadata": {"name": "n"}}))
        version = node["metadata"]["resourceVersion"] if versions else ""
        # One of its own for each, since the answer to the second tells a version, too.
        first, second = (NodePatches(kept, "n", lambda: version, 50) for _ in range(2))
        proxy.keeping = True
        growth = asyncio.create_task(offer(first, 700))
        while len(proxy.kept) < _REQUEST_BYTES:
            await asyncio.sleep(0.01)
        proxy.keeping = False
        first.decided({BATCH_CPU: 300})
        assert not await growth
        assert await offer(second, 300)
        before = len(answers(folder))
        await proxy.deliver()
        while len(codes := answers(folder)) == before:
            await asyncio.sleep(0.01)
        node = await direct.get(path_of("v1/nodes", name="n"), dict)
    await proxy.stop()
    return codes[-1], node["status"]["allocatable"][BATCH_CPU]


def answers(folder: Path) -> list[int]:
    """The codes of patches that came through the proxy, in the order in which the server answered."""
    lines = [json.loads(line) for line in (folder / "audit").read_text().splitlines(keepends=True) if line[-1] == "\n"]
    mine = (line for line in lines if line["verb"] == "patch" and line["userAgent"] == "kept/1")
    return [line["responseStatus"]["code"] for line in mine]


@pytest.mark.parametrize(
    ("versions", "expected"), [(True, (409, "300")), (False, (200, "700"))], ids=["named", "not named"]
)
def test_an_offer_that_was_kept_back(
    start_live: Any, tmp_path: Path, versions: bool, expected: tuple[int, str]
) -> None:
    """It is refused, since it names the version it was made for; without that it would land."""
    live = start_live("--audit-log", str(tmp_path / "audit"))
    assert asyncio.run(play(live, tmp_path, versions=versions)) == expected
