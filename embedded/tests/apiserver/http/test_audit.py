"""The audit log: a line for every request, with what was decided and why."""

import asyncio
import json

import pytest

from embedded.apiserver.authorization.bootstrap_roles import create_default_roles
from embedded.apiserver.bootstrap import create_system_objects
from embedded.apiserver.http.access import AdmittedRequest
from embedded.apiserver.http.audit import AuditLog, event_of
from embedded.apiserver.http.router import Router
from embedded.apiserver.request.attributes import Decision
from embedded.apiserver.request.messages import Request, Response, Stream
from embedded.tests.apiserver.secured import ROOT, user

ANNE = user("anne", "painters")
PODS = "/api/v1/namespaces/default/pods"
WHY = 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "anne"'

ALLOWED = Decision(True, WHY)


def event(method="GET", path=f"{PODS}/p", result=None, acts_as=None, decision=ALLOWED, **query):
    request = Request(method, path, query, {"user-agent": "kubectl/v1"}, user=ANNE)
    visit = AdmittedRequest.of(request, 1_790_000_000.25)
    visit.acts_as, visit.decision = acts_as, decision
    found = event_of(visit, result or Response(200, b"{}"), 1_790_000_000.5)
    assert found.pop("auditID")
    return found


def test_an_event_tells_all_of_a_request():
    """At level Metadata: everything but bodies."""
    assert event() == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": f"{PODS}/p",
        "verb": "get",
        "user": {"username": "anne", "groups": ["painters", "system:authenticated"]},
        "userAgent": "kubectl/v1",
        "objectRef": {"resource": "pods", "namespace": "default", "name": "p", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": "2026-09-21T14:13:20.250000Z",
        "stageTimestamp": "2026-09-21T14:13:20.500000Z",
        "annotations": {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": WHY},
    }


def test_a_refusal_tells_its_words():
    body = {"kind": "Status", "status": "Failure", "message": "no", "reason": "Forbidden", "code": 403}
    found = event(result=Response(403, json.dumps(body).encode()), decision=Decision(False))
    assert found["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "message": "no",
        "reason": "Forbidden",
        "code": 403,
    }
    assert found["annotations"] == {"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""}


async def _nothing():
    yield b""


PARTS = {
    "a watch that begins": (event(path=PODS, result=Stream(200, _nothing()), watch="1"), "stage", "ResponseStarted"),
    "its verb": (event(path=PODS, watch="1"), "verb", "watch"),
    "a query": (event(path=PODS, limit="5"), "requestURI", f"{PODS}?limit=5"),
    "a path without object": (event(path="/version"), "objectRef", None),
    "whom it acts as": (event(acts_as=user("bert")), "impersonatedUser", user("bert").as_info()),
    "a sub-resource": (event("PATCH", f"{PODS}/p/status")["objectRef"], "subresource", "status"),
    "a group": (event(path="/apis/batch/v1/jobs")["objectRef"], "apiGroup", "batch"),
    "text that is no Status": (event(result=Response(404, b"?", "text/plain")), "stage", "ResponseComplete"),
}


@pytest.mark.parametrize(("found", "key", "value"), PARTS.values(), ids=PARTS)
def test_an_event_tells_of(found, key, value):
    assert found.get(key) == value


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_request_gets_a_line(tmp_path, clock):
    """The refused and the impersonated as well; they stand there once the log is flushed or closed."""
    log = AuditLog(tmp_path / "audit.log", clock)
    core = Router(clock, audit=log)
    create_system_objects(core.resources)
    create_default_roles(core.resources)

    async def run():
        await core.handle(Request("GET", PODS, user=ROOT))
        await core.handle(Request("GET", PODS, user=user("anne")))
        await core.handle(Request("GET", PODS, headers={"impersonate-user": "bert"}, user=ROOT))
        await core.handle(Request("GET", "/api/v1/nodes/none", user=ROOT))
        log.close()

    asyncio.run(run())
    found = lines(tmp_path / "audit.log")
    assert [each["responseStatus"]["code"] for each in found] == [200, 403, 403, 404]
    decisions = [each["annotations"]["authorization.k8s.io/decision"] for each in found]
    assert decisions == ["allow", "forbid", "forbid", "allow"]
    assert found[2]["impersonatedUser"]["username"] == "bert"


def test_lines_are_added_to_what_is_there(tmp_path, clock):
    """A restart goes on in the same file, and many lines do not wait for the timer."""
    path = tmp_path / "audit.log"

    async def run(count):
        log = AuditLog(path, clock)
        for _ in range(count):
            log.record(AdmittedRequest.of(Request("GET", "/version", user=ANNE), 0.0), Response(200, b"{}"))
        written = len(lines(path))
        log.close()
        return written

    assert asyncio.run(run(1)) == 0
    assert asyncio.run(run(1024)) == 1025
    assert len(lines(path)) == 1025
