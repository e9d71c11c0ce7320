"""Logs fetched from a node's log server over TLS."""

import asyncio
import ssl

import pytest
from aiohttp import web

from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.http import kubelet_client
from embedded.apiserver.http.kubelet_client import KubeletLogs
from embedded.apiserver.request.messages import Stream


async def asked(credentials, answer, ask, token="node-token"):
    """What `ask` gets out of KubeletLogs and the port of a node that answers like this; with the requests it saw."""
    seen = []

    async def handle(request):
        seen.append(request)
        return await answer(request)

    server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_tls.load_cert_chain(credentials / "tls.crt", credentials / "tls.key")
    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_tls)
    await site.start()
    logs = KubeletLogs(token, ssl.create_default_context(cafile=str(credentials / "ca.crt")))
    try:
        return await ask(logs, runner.addresses[0][1]), seen
    finally:
        await logs.close()
        await runner.cleanup()


async def fetch(credentials, answer, token="node-token", port=None, path="/containerLogs/ns/p/c"):
    """A log as KubeletLogs streams it."""

    async def follow(logs, served):
        stream = await logs.open(port or served, path, {"follow": "true"})
        assert isinstance(stream, Stream)
        return b"".join([chunk async for chunk in stream.chunks]), stream.content_type

    found, seen = await asked(credentials, answer, follow, token)
    return *found, seen


async def two_parts(request):
    response = web.StreamResponse()
    await response.prepare(request)
    for part in (b"one\n", b"two\n"):
        await response.write(part)
    return response


def test_a_log_is_streamed_with_the_token_and_the_query(credentials):
    """Plain text, in pieces, as the node sends it."""
    body, content_type, (request,) = asyncio.run(fetch(credentials, two_parts))
    assert (body, content_type) == (b"one\ntwo\n", "text/plain")
    assert request.headers["Authorization"] == "Bearer node-token"
    assert (request.path, dict(request.query)) == ("/containerLogs/ns/p/c", {"follow": "true"})


@pytest.mark.parametrize(
    ("code", "reason"),
    [(404, "NotFound"), (418, "Unknown"), (500, "InternalError"), (503, "ServiceUnavailable"), (507, "InternalError")],
)
def test_the_nodes_refusal_is_passed_on(credentials, code, reason):
    """With the node's own code and words, and the reason Kubernetes gives that code."""

    async def refusing(_):
        return web.Response(status=code, text="no such container")

    with pytest.raises(StatusError, match="no such container") as refused:
        asyncio.run(fetch(credentials, refusing))
    assert (refused.value.code, refused.value.reason) == (code, reason)


def test_a_node_that_does_not_answer_is_a_bad_gateway(credentials):
    """502, not 500: it is not this server that failed."""
    with pytest.raises(StatusError) as refused:
        asyncio.run(fetch(credentials, two_parts, port=1))
    assert refused.value.code == 502


async def no_previous(_):
    return web.Response(status=400, text='previous terminated container "c" in pod "p" not found\n')


def test_a_bad_request_is_told_in_the_kubelets_words(credentials):
    """As kubectl shows it: BadRequest, the sentence, and nothing around it."""
    with pytest.raises(StatusError) as refused:
        asyncio.run(fetch(credentials, no_previous))
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")
    assert refused.value.message == 'previous terminated container "c" in pod "p" not found'


async def large(request):
    """Too much for one read from a socket."""
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(64):
        await response.write(b"x" * 65536)
    return response


def test_a_whole_answer_is_read_to_its_end(credentials):
    """However many pieces it comes in."""
    found, _ = asyncio.run(asked(credentials, large, lambda logs, port: logs.fetch(port, "/stats/summary", {})))
    assert found == b"x" * (64 * 65536)


async def followed(request):
    """A log to which nothing more is written."""
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"begun")
    await asyncio.Event().wait()


def test_an_answer_that_is_too_large_is_given_up(credentials, monkeypatch):
    """502 instead of all the memory."""
    monkeypatch.setattr(kubelet_client, "_SUMMARY_BYTES", 1 << 20)
    with pytest.raises(StatusError, match="exceeds 1048576 bytes") as refused:
        asyncio.run(asked(credentials, large, lambda logs, port: logs.fetch(port, "/stats/summary", {})))
    assert refused.value.code == 502


def test_a_stream_nobody_reads_lets_go_of_the_node(credentials):
    """Also one of more than a hundred at a time: none waits for another."""

    async def follow_many(logs, port):
        streams = [await asyncio.wait_for(logs.open(port, "/containerLogs/ns/p/c", {}), 20) for _ in range(120)]
        for stream in streams:
            stream.release()
        return len(streams)

    assert asyncio.run(asked(credentials, followed, follow_many))[0] == 120
