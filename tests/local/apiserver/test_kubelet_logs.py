"""Logs fetched from a node's log server over TLS."""

import asyncio
import ssl

import pytest
from aiohttp import web

from local.apiserver.kubelet_logs import KubeletLogs
from local.apiserver.messages import Stream
from local.apiserver.status import StatusError


async def fetch(credentials, answer, token="node-token", port=None, path="/containerLogs/ns/p/c"):
    """What KubeletLogs makes of a log server that answers like this; with the request it saw."""
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
        stream = await logs.open(port or runner.addresses[0][1], path, {"follow": "true"})
        assert isinstance(stream, Stream)
        return b"".join([chunk async for chunk in stream.chunks]), stream.content_type, seen
    finally:
        await logs.close()
        await runner.cleanup()


async def two_parts(request):
    response = web.StreamResponse()
    await response.prepare(request)
    for part in (b"one\n", b"two\n"):
        await response.write(part)
    return response


async def missing(_):
    return web.Response(status=404, text="no such container")


def test_a_log_is_streamed_with_the_token_and_the_query(credentials):
    """Plain text, in pieces, as the node sends it."""
    body, content_type, (request,) = asyncio.run(fetch(credentials, two_parts))
    assert (body, content_type) == (b"one\ntwo\n", "text/plain")
    assert request.headers["Authorization"] == "Bearer node-token"
    assert (request.path, dict(request.query)) == ("/containerLogs/ns/p/c", {"follow": "true"})


def test_the_nodes_refusal_is_passed_on(credentials):
    """With the node's own code and words."""
    with pytest.raises(StatusError, match="no such container") as refused:
        asyncio.run(fetch(credentials, missing))
    assert refused.value.code == 404


def test_a_node_that_does_not_answer_is_a_bad_gateway(credentials):
    """502, not 500: it is not this server that failed."""
    with pytest.raises(StatusError) as refused:
        asyncio.run(fetch(credentials, two_parts, port=1))
    assert refused.value.code == 502
