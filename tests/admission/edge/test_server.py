"""The HTTPS server against real TLS clients, patient and hostile."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest

from admission.edge.memoryfiles import MemoryFiles
from admission.edge.server import ReviewServer
from admission.ports import Reply, WebhookLimits
from kube.tls import ServerCertificate, TlsFiles
from kube.x509 import Authority
from model.fault import ConfigurationFault

CA = Authority.create("test", datetime.now(UTC), timedelta(days=1))
NAMES = ("localhost", "127.0.0.1")
QUICK = WebhookLimits(request_seconds=0.3, body_bytes=1 << 16, buffered_bytes=1 << 20, connections=4)

Scene = Callable[[ReviewServer, aiohttp.ClientSession], Awaitable[None]]


async def echo(path: str, body: bytes) -> Reply:
    if path == "/defect":
        raise RuntimeError("a defect")
    return Reply(404, b"no such path") if path == "/none" else Reply(200, body)


def issue(name: str = "server") -> MemoryFiles:
    return MemoryFiles(CA.issue(name, NAMES, datetime.now(UTC), timedelta(hours=1)))


def play(scene: Scene, limits: WebhookLimits = QUICK, files: TlsFiles | None = None) -> None:
    async def run() -> None:
        certificate = ServerCertificate(files or issue().files)
        trust = ssl.create_default_context(cadata=CA.certificate_pem.decode())
        async with asyncio.timeout(30), ReviewServer("127.0.0.1:0", certificate, echo, limits) as server:
            connector = aiohttp.TCPConnector(ssl=trust)
            async with aiohttp.ClientSession(f"https://{server.address}", connector=connector) as session:
                await scene(server, session)

    asyncio.run(run())


async def post(
    session: aiohttp.ClientSession, body: bytes = b"{}", path: str = "/x", **more: object
) -> tuple[int, bytes]:
    headers = {"Content-Type": "application/json", **more}
    async with session.post(path, data=body, headers=headers) as response:  # type: ignore[arg-type]
        return response.status, await response.read()


def test_a_review_is_answered_and_the_connection_kept() -> None:
    """One handshake for many reviews."""

    async def scene(server: ReviewServer, session: aiohttp.ClientSession) -> None:
        for number in range(3):
            assert await post(session, b"%d" % number) == (200, b"%d" % number)
        assert session.connector is not None and len(session.connector._conns) == 1  # type: ignore[attr-defined]

    play(scene)


def test_what_is_no_http_leaves_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """Its sender is told; an error of ours is logged."""

    async def scene(server: ReviewServer, session: aiohttp.ClientSession) -> None:
        for coding in ("deflate", "br"):
            assert (await post(session, b"x", **{"Content-Encoding": coding}))[0] == 400
        assert not caplog.records
        assert (await post(session, path="/defect"))[0] == 500
        assert [record.exc_text for record in caplog.records if "a defect" in str(record.exc_text)]

    play(scene)


def test_other_requests() -> None:
    """Each with the status that says whose mistake it is."""

    async def scene(server: ReviewServer, session: aiohttp.ClientSession) -> None:
        assert (await post(session, path="/none"))[0] == 404
        assert (await session.get("/x")).status == 405
        assert (await session.post("/x", data=b"{}", headers={"Content-Type": "text/plain"})).status == 415
        assert (await post(session, b"x" * (QUICK.body_bytes + 1)))[0] == 413
        assert (await post(session))[0] == 200

    play(scene)


def test_plain_text_and_old_tls_are_refused() -> None:
    """Nobody speaks with this server unseen."""

    async def scene(server: ReviewServer, session: aiohttp.ClientSession) -> None:
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"http://{server.address}/x")
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning):
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        host, port = server.address.split(":")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection(host, int(port), ssl=old)

    play(scene)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_both_versions_with_and_without_a_server_name(version: ssl.TLSVersion, name: str) -> None:
    """A client that calls an address names no server, and is shown the certificate all the same."""

    async def scene(server: ReviewServer, session: aiohttp.ClientSession) -> None:
        trust = ssl.create_default_context(cadata=CA.certificate_pem.decode())
        trust.minimum_version = trust.maximum_version = version
        port = int(server.address.rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname=name)
        assert writer.get_extra_info("ssl_object").version() == version.name.replace("_", ".")
        writer.close()

    play(scene)


async def opened(server: ReviewServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = server.address.split(":")
    trust = ssl.create_default_context(cadata=CA.certificate_pem.decode())
    return await asyncio.open_connection(host, int(port), ssl=trust, server_hostname="localhost")


def test_who_never_sends_a_head_is_cut_off() -> None:
    """Half a request line costs a place for a moment only."""

    async def scene(server: ReviewServer, session: aiohttp.ClientSession) -> None:
        reader, writer = await opened(server)
        writer.write(b"POST /x HT")
        assert await reader.read() == b""
        writer.close()

    play(scene)


@pytest.mark.parametrize(("lines", "size"), [(40, 3_000), (1, 5_000)], ids=["many", "long"])
def test_a_long_head_is_refused_before_it_ends(lines: int, size: int) -> None:
    """Whoever reaches the port fills no memory by heads that never end."""

    async def scene(server: ReviewServer, session: aiohttp.ClientSession) -> None:
        reader, writer = await opened(server)
        writer.write(b"POST /x HTTP/1.1\r\n" + b"".join(b"x: " + b"y" * size + b"\r\n" for _ in range(lines)))
        async with asyncio.timeout(3):
            assert (await reader.readline()).startswith(b"HTTP/1.0 400")
        writer.close()
        assert await post(session, Authorization="Bearer " + "t" * 3_000) == (200, b"{}")

    play(scene, WebhookLimits(request_seconds=20, connections=4))


def test_who_never_ends_a_body_is_told_so() -> None:
    """408, and the connection ends."""

    async def scene(server: ReviewServer, session: aiohttp.ClientSession) -> None:
        reader, writer = await opened(server)
        writer.write(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")
        await reader.read()
        writer.close()

    play(scene)


def test_two_hundred_silent_connections_keep_nobody_out() -> None:
    """Each new one takes the place of the oldest that asks for nothing; a review gets through in between."""

    async def scene(server: ReviewServer, session: aiohttp.ClientSession) -> None:
        held = [await opened(server) for _ in range(200)]
        assert (await post(session))[0] == 200
        ended = await asyncio.gather(*(reader.read() for reader, _ in held[:190]), return_exceptions=True)
        assert len(ended) == 190
        for _, writer in held:
            writer.close()

    play(scene, WebhookLimits(request_seconds=20, connections=4))


def test_what_all_send_together_is_bounded() -> None:
    """Unfinished reviews of others may fill the memory up to a limit; who comes then is told to try again."""

    async def scene(server: ReviewServer, session: aiohttp.ClientSession) -> None:
        held = []
        for _ in range(2):
            reader, writer = await opened(server)
            head = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n"
            writer.write(head + b"x" * 600_000)
            await writer.drain()
            held.append((reader, writer))
        answers = [asyncio.create_task(reader.readline()) for reader, _ in held]
        done, _ = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result()[:13] for task in done] == [b"HTTP/1.1 503 "]
        for task in answers:
            task.cancel()
        for _, writer in held:
            writer.close()

    play(scene, WebhookLimits(request_seconds=20, body_bytes=1 << 20, buffered_bytes=1 << 20))


def test_a_new_certificate_is_shown_to_the_next_client() -> None:
    """Without a restart, and without ending connections there are."""
    files = issue("before")

    def subject(writer: asyncio.StreamWriter) -> str:
        ((name,),) = writer.get_extra_info("peercert")["subject"]
        return str(name[1])

    async def scene(server: ReviewServer, session: aiohttp.ClientSession) -> None:
        _, old = await opened(server)
        files.replace(CA.issue("after", NAMES, datetime.now(UTC), timedelta(hours=1)))
        _, new = await opened(server)
        assert (subject(old), subject(new)) == ("before", "after")
        old.close()
        new.close()

    play(scene, files=files.files)


def test_the_end_waits_for_reviews_under_way_alone() -> None:
    """A connection that is merely kept ends while a review is still considered, which is answered all the same."""

    async def run() -> None:
        asked, considered = asyncio.Event(), asyncio.Event()

        async def consider(path: str, body: bytes) -> Reply:
            if path == "/held":
                asked.set()
                await considered.wait()
            return Reply(200, body)

        trust = ssl.create_default_context(cadata=CA.certificate_pem.decode())
        server = ReviewServer(
            "127.0.0.1:0", ServerCertificate(issue().files), consider, WebhookLimits(), end_seconds=3600
        )
        await server.__aenter__()
        idle, writer = await asyncio.open_connection("127.0.0.1", server.listener.port, ssl=trust)
        writer.write(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        assert (await idle.readuntil(b"{}")).startswith(b"HTTP/1.1 200")
        async with aiohttp.ClientSession(
            f"https://{server.address}", connector=aiohttp.TCPConnector(ssl=trust)
        ) as session:
            review = asyncio.create_task(post(session, path="/held"))
            await asked.wait()
            ending = asyncio.create_task(server.__aexit__())
            assert await idle.read() == b"" and not ending.done()
            considered.set()
            assert await review == (200, b"{}")
            await ending
        writer.close()

    asyncio.run(asyncio.wait_for(run(), 30))


def test_an_address_that_is_taken() -> None:
    """One line about the flag."""

    async def scene(server: ReviewServer, session: aiohttp.ClientSession) -> None:
        with pytest.raises(ConfigurationFault, match=f"--listen {server.address}: cannot listen"):
            async with ReviewServer(server.address, ServerCertificate(issue().files), echo, QUICK):
                pass

    play(scene)


def test_memory_files_leave_nothing_open(tmp_path: Path) -> None:
    """Replaced and closed, the process has as many files as before."""
    open_files = Path("/proc/self/fd")
    before = len(list(open_files.iterdir()))
    files = issue()
    files.replace(CA.issue("x", NAMES, datetime.now(UTC), timedelta(hours=1)))
    assert len(list(open_files.iterdir())) == before + 2
    files.close()
    assert len(list(open_files.iterdir())) == before
