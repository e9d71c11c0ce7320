"""The server process as its clients reach it: addresses, TLS, and bounds on what they send."""

import http.client
import json
import socket
import ssl

import pytest

from tests.local.apiserver.conftest import TOKEN, Live


def test_a_server_for_other_machines_says_so(start_live):
    """It works like any other, and warns in one line of what an open port means here."""
    server: Live = start_live("--listen", "0.0.0.0:0")
    assert server.address.startswith("https://127.0.0.1:")
    assert "default" in server.kubectl("get", "namespaces")
    log = (server.directory / "log").read_text()
    assert log.count("runs commands on this one") == 1


def exchange(server: Live, request: bytes) -> tuple[int, dict]:
    """Status and body of the answer to raw bytes."""
    context = ssl.create_default_context(cafile=str(server.directory / "ca.crt"))
    port = int(server.address.rsplit(":", 1)[1])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        secured.sendall(request)
        answer = b""
        while chunk := secured.recv(65536):
            answer += chunk
            head, found, body = answer.partition(b"\r\n\r\n")
            if found and body and len(body) >= int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]):
                break
    return int(answer.split(b" ", 2)[1]), json.loads(answer.partition(b"\r\n\r\n")[2])


def request(target=b"/api/v1/namespaces", method=b"GET", host=b"localhost", body=b"", more=b""):
    head = b"%b %b HTTP/1.1\r\nHost: %b\r\nAuthorization: Bearer %b\r\n" % (method, target, host, TOKEN.encode())
    return head + b"Content-Type: application/json\r\nContent-Length: %d\r\n%b\r\n%b" % (len(body), more, body)


BROKEN = {
    "not HTTP": (b"what is this\r\n\r\n", 400, "BadRequest"),
    "a long path": (request(b"/" + b"x" * 40_000), 431, "RequestHeaderFieldsTooLarge"),
    "a long header": (request(more=b"X: " + b"x" * 20_000 + b"\r\n"), 431, "RequestHeaderFieldsTooLarge"),
    "many headers": (request(more=b"".join(b"X-%d: y\r\n" % n for n in range(200))), 400, "BadRequest"),
    "a large body": (request(method=b"POST", body=b"x" * (4 << 20)), 413, "RequestEntityTooLarge"),
    "another host": (request(host=b"evil.example"), 403, "Forbidden"),
}


@pytest.mark.parametrize(("raw", "code", "reason"), BROKEN.values(), ids=BROKEN)
def test_what_is_too_much_or_not_http_is_answered_with_a_status(live, raw, code, reason):
    """Bounded before anything is decoded, and told in the form every client reads."""
    found, answer = exchange(live, raw)
    assert (found, answer["kind"], answer["reason"], answer["code"]) == (code, "Status", reason, code)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_current_tls_is_spoken(live, version):
    """1.2 and 1.3; plain text is not answered as HTTP."""
    context = ssl.create_default_context(cafile=str(live.directory / "ca.crt"))
    context.minimum_version = context.maximum_version = version
    port = int(live.address.rsplit(":", 1)[1])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        assert secured.version() == {"TLSv1_2": "TLSv1.2", "TLSv1_3": "TLSv1.3"}[version.name]


def test_a_large_list_comes_whole(live):
    """In several pieces, under one length."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "large"}}
    live.kubectl("create", "-f", "-", stdin=namespace)
    maps = "/api/v1/namespaces/large/configmaps"
    for number in range(4):
        made = {"metadata": {"name": f"m{number}"}, "data": {"k": str(number) * 200_000}}
        code, _ = exchange(live, request(maps.encode(), b"POST", body=json.dumps(made).encode()))
        assert code == 201
    code, found = exchange(live, request(maps.encode()))
    data = {item["metadata"]["name"]: item["data"]["k"] for item in found["items"] if "k" in item["data"]}
    assert (code, data) == (200, {f"m{number}": str(number) * 200_000 for number in range(4)})


def test_a_client_is_told_when_to_come_back(live):
    """In the header that client libraries obey, as well as in the Status."""
    context = ssl.create_default_context(cafile=str(live.directory / "ca.crt"))
    host, port = live.address.removeprefix("https://").split(":")
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=20)
    target = f"/api/v1/namespaces?resourceVersion={2**62}"
    connection.request("GET", target, headers={"Authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    details = json.loads(answer.read())["details"]
    connection.close()
    assert (answer.status, answer.headers["Retry-After"], details["retryAfterSeconds"]) == (504, "1", 1)


@pytest.mark.parametrize("root", ["healthz", "livez", "readyz"])
def test_health_in_detail(live, root):
    """As `kubectl get --raw` asks for it."""
    assert live.kubectl("get", "--raw", f"/{root}") == "ok"
    assert live.kubectl("get", "--raw", f"/{root}?verbose") == f"[+]ping ok\n{root} check passed\n"
