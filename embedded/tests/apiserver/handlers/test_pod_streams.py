"""Ways into pods: who may, which container, what the node is asked. What it answers is for test_streams_e2e."""

import asyncio
import ssl
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from aiohttp import web

from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.handlers.pod_streams import NodeHttpsConnections, options_of
from embedded.apiserver.request.messages import Request, Response, Upgraded
from embedded.tests.apiserver.admission.test_policies import BINDINGS, POLICIES, bound, policy
from embedded.tests.apiserver.admission.test_policies import rule as admission_rule
from embedded.tests.apiserver.secured import ROOT, Secured, rule, user

PODS = "/api/v1/namespaces/default/pods"
EXEC = f"{PODS}/p/exec?command=ls&command=-l&stdout=true&container=a"
WEBSOCKET = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-protocol": "v5.channel.k8s.io"}
ANNE = user("anne")


class Door:
    """A node that agrees to everything, and remembers what it was asked."""

    def __init__(self):
        self.asked = []

    async def upgrade(self, port, target, headers):
        self.asked.append((port, target, dict(headers)))
        return Response(400, b"the node's own words", "text/plain")


class World(Secured):
    """With a pod of two containers on a node that has a door."""

    def __init__(self, clock):
        super().__init__(clock)
        self.door = Door()
        self.core._connections = self.door
        self.make("/api/v1/nodes", {"metadata": {"name": "n"}})
        self.call("PATCH", "/api/v1/nodes/n/status", {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 7}}}},
                  content_type="application/merge-patch+json")  # fmt: skip
        self.pod("p", "a", "b")

    def pod(self, name, *containers, node="n", **spec):
        listed = [{"name": each, "image": "busybox"} for each in containers]
        self.make(
            PODS,
            {"metadata": {"name": name}, "spec": {"containers": listed, **spec} | ({"nodeName": node} if node else {})},
        )

    def into(self, url, method="GET", who=ROOT, headers=WEBSOCKET):
        parts = urlsplit(url)
        request = Request(method, parts.path, dict(parse_qsl(parts.query)), headers, b"", who, query_string=parts.query)
        answer = asyncio.run(self.core.handle(request))
        assert isinstance(answer, Response)
        return answer.status, answer.body.decode()


@pytest.fixture
def world(clock):
    return World(clock)


def test_the_node_is_asked_in_the_kubelets_words(world):
    """Path, flags and every word of the command; of the headers those of the upgrade, and no credentials."""
    assert world.into(EXEC, headers=WEBSOCKET | {"authorization": "Bearer secret"}) == (400, "the node's own words")
    ((port, target, headers),) = world.door.asked
    path, _, query = target.partition("?")
    assert (port, path) == (7, "/exec/default/p/a")
    assert parse_qs(query) == {"output": ["1"], "command": ["ls", "-l"]}
    assert headers == WEBSOCKET


def test_ports_reach_the_node(world):
    world.into(f"{PODS}/p/portforward?ports=80,81&ports=82")
    assert world.door.asked[0][1] == "/portForward/default/p?port=80%2C81&port=82"


REFUSED = {
    "no upgrade": (EXEC, {}, 400, "Upgrade request required"),
    "several containers": (f"{PODS}/p/attach?stdout=1", WEBSOCKET, 400, "choose one of: [a b]"),
    "no such container": (f"{PODS}/p/exec?container=c", WEBSOCKET, 400, "container c is not valid for pod p"),
    "no such pod": (f"{PODS}/q/exec", WEBSOCKET, 404, 'pods \\"q\\" not found'),
    "no node yet": (f"{PODS}/waits/exec", WEBSOCKET, 400, "pod waits does not have a host assigned"),
    "a node without a door": (f"{PODS}/lost/exec", WEBSOCKET, 501, 'node \\"gone\\" leads nobody into its pods'),
}


@pytest.mark.parametrize(("url", "headers", "code", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_before_any_node_is_asked(world, url, headers, code, why):
    world.pod("waits", "a", node="")
    world.pod("lost", "a", node="gone")
    told, text = world.into(url, headers=headers)
    assert (told, why in text) == (code, True), text
    assert world.door.asked == []


MAY = {
    "nothing": ("", "GET", "cannot get"),
    "get alone is not enough for a websocket": ("get", "GET", "cannot create"),
    "both": ("get create", "GET", ""),
    "create alone, for SPDY": ("create", "POST", ""),
    "create alone, for a websocket": ("create", "GET", "cannot get"),
}


@pytest.mark.parametrize(("verbs", "method", "why"), MAY.values(), ids=MAY)
@pytest.mark.parametrize("way", ["exec", "attach", "portforward"])
def test_who_may(world, way, verbs, method, why):
    """A command runs, by whatever method it was asked for."""
    if verbs:
        world.grant("anne", rule(verbs, f"pods/{way}"), namespace="default")
    code, text = world.into(f"{PODS}/p/{way}?container=a&stdout=1", method, ANNE)
    assert (code, bool(world.door.asked)) == ((403, False) if why else (400, True))
    assert why in text


def test_methods(world):
    assert world.into(EXEC, "PATCH")[0] == 405


def test_a_policy_may_refuse(world):
    """CONNECT, with what is asked for as its object, named as the pod."""
    connects = admission_rule(("pods/exec",), ("CONNECT",))
    expression = "object.kind != 'PodExecOptions' || !('rm' in object.command) || request.name != 'p'"
    world.make(POLICIES, policy(expression=expression, rules=[connects], failurePolicy="Fail"))
    world.make(BINDINGS, bound())
    assert world.into(EXEC)[0] == 400 and len(world.door.asked) == 1
    code, text = world.into(EXEC.replace("-l", "rm"))
    assert code == 422 and "ValidatingAdmissionPolicy 'p' with binding 'b' denied request" in text
    assert len(world.door.asked) == 1


def test_options():
    """As kube-apiserver reads them."""
    query = "command=a&command=b&stdin=true&tty=1&stdout=false&container=c"
    request = Request("GET", "/", query_string=query)
    assert options_of(request, "exec") == {
        "apiVersion": "v1", "kind": "PodExecOptions", "stdin": True, "tty": True, "container": "c", "command": ["a", "b"],
    }  # fmt: skip
    ports = Request("GET", "/", query_string="ports=80&ports=81,82")
    assert options_of(ports, "portforward")["ports"] == [80, 81, 82]
    none = Request("GET", "/", query_string=f"ports=x,{'9' * 5000}")  # more digits than Python converts
    assert "ports" not in options_of(none, "portforward")


def test_every_word_is_audited(clock, tmp_path):
    """The command that was run is in the log, and not its last word alone."""
    from embedded.apiserver.http.access import AdmittedRequest
    from embedded.apiserver.http.audit import event_of

    request = Request("GET", f"{PODS}/p/exec", {"command": "-l"}, query_string="command=ls&command=-l")
    event = event_of(AdmittedRequest.of(request, 0.0), Response(403, b"{}", "text/plain"), 0.0)
    assert event["requestURI"] == f"{PODS}/p/exec?command=ls&command=-l"


# -- the node's side of it ------------------------------------------------------------------------------------


async def upgraded(credentials, handle, port=None):
    """What a NodeDoor gets of a node that answers like this."""
    server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_tls.load_cert_chain(credentials / "tls.crt", credentials / "tls.key")
    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_tls)
    await site.start()
    door = NodeHttpsConnections("node-token", ssl.create_default_context(cafile=str(credentials / "ca.crt")))
    try:
        found = await door.upgrade(port or runner.addresses[0][1], "/exec/a/b/c?command=ls", WEBSOCKET)
        if isinstance(found, Upgraded):
            found.writer.close()
        return found
    finally:
        await runner.cleanup()


def test_a_node_that_refuses_is_quoted(credentials):
    """Code and text, as clients show them."""
    seen = []

    async def handle(request):
        seen.append(
            (request.method, request.headers["Authorization"], request.headers["Upgrade"], str(request.rel_url))
        )
        return web.Response(status=500, text='container not found ("c")')

    found = asyncio.run(upgraded(credentials, handle))
    assert (found.status, found.body) == (500, b'container not found ("c")')
    assert seen == [("GET", "Bearer node-token", "websocket", "/exec/a/b/c?command=ls")]


def test_a_node_that_is_not_there(credentials):
    with pytest.raises(StatusError) as refused:
        asyncio.run(upgraded(credentials, None, port=1))
    assert refused.value.code == 502
