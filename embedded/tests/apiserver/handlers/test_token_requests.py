"""What a token request is answered with, and which are refused."""

import asyncio
import json

import jwt
import pytest

from embedded.apiserver.admission.admitted_writes import AdmittedWrites, NoAdmissionHooks
from embedded.apiserver.apimachinery.resource_types import SERVICE_ACCOUNTS
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.authentication.service_account_tokens import AccountTokens
from embedded.apiserver.authentication.signing_key import ISSUER, SigningKey
from embedded.apiserver.handlers.token_requests import TokenRequests
from embedded.apiserver.request.messages import Request
from embedded.apiserver.request.target import Target
from embedded.apiserver.request.user_info import known_user

NAMESPACE = "/api/v1/namespaces/default"
TOKEN = f"{NAMESPACE}/serviceaccounts/robot/token"
KUBELET = known_user("system:node:n1")


@pytest.fixture
def api(api):
    api.post(f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "robot"}})
    for name, account, node in (("mine", "robot", "n1"), ("far", "robot", "n2"), ("other", "default", "n1")):
        spec = {"serviceAccountName": account, "nodeName": node, "containers": [{"name": "c", "image": "i"}]}
        api.post(f"{NAMESPACE}/pods", {"metadata": {"name": name}, "spec": spec})
    api.post(f"{NAMESPACE}/secrets", {"metadata": {"name": "secret"}})
    return api


def pod(api, name="mine", **changes):
    """A reference to a pod, with its uid."""
    uid = api.get(f"{NAMESPACE}/pods/{name}")["metadata"]["uid"]
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid} | changes


def claims(answer):
    return jwt.decode(answer["status"]["token"], options={"verify_signature": False})


def test_a_token_says_whose_it_is_and_until_when(api):
    """As Kubernetes writes it; the answer repeats the request with its defaults."""
    found = api.post(TOKEN, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})
    account = api.get(f"{NAMESPACE}/serviceaccounts/robot")["metadata"]
    assert (found["apiVersion"], found["kind"]) == ("authentication.k8s.io/v1", "TokenRequest")
    assert {key: found["metadata"][key] for key in ("name", "namespace", "uid")} == {
        "name": "robot",
        "namespace": "default",
        "uid": account["uid"],
    }
    assert found["spec"] == {"audiences": [ISSUER], "expirationSeconds": 3600}
    said, now = claims(found), int(api.clock.now)
    assert found["status"]["expirationTimestamp"] == "2026-09-21T15:13:20Z"
    assert said.pop("jti")
    assert said == {
        "iss": ISSUER,
        "sub": "system:serviceaccount:default:robot",
        "aud": [ISSUER],
        "iat": now,
        "nbf": now,
        "exp": now + 3600,
        "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "robot", "uid": account["uid"]}},
    }


def test_a_pods_token_names_its_node_too(api):
    """With the uid of the node's object where there is one."""
    said = claims(api.post(TOKEN, {"spec": {"boundObjectRef": pod(api), "audiences": ["a", "b"]}}))
    assert (said["aud"], said["kubernetes.io"]["node"]) == (["a", "b"], {"name": "n1"})
    uid = api.post("/api/v1/nodes", {"metadata": {"name": "n1"}})["metadata"]["uid"]
    said = claims(api.post(TOKEN, {"spec": {"boundObjectRef": pod(api)}}))
    assert said["kubernetes.io"]["node"] == {"name": "n1", "uid": uid}


REFUSED = {
    "too short": ({"spec": {"expirationSeconds": 599}}, 422, "may not specify a duration less than 10 minutes"),
    "too long": ({"spec": {"expirationSeconds": 2**32 + 1}}, 422, "may not specify a duration larger than 2^32"),
    "another account": ({"metadata": {"name": "x"}}, 422, "must match the service account name if specified"),
    "another namespace": ({"metadata": {"namespace": "x"}}, 422, "must match the service account namespace"),
    "an earlier account": ({"metadata": {"uid": "x"}}, 409, "the UID in the token request (x) does not match"),
}


@pytest.mark.parametrize(("body", "code", "words"), REFUSED.values(), ids=REFUSED)
def test_a_request_that_contradicts_its_account_is_refused(api, body, code, words):
    """Or asks for more or less time than there is."""
    found, answer = api.call("POST", TOKEN, body)
    assert (found, words in answer["message"]) == (code, True), answer


BOUND = {
    "a pod of another account": (lambda api: pod(api, "other"), 400, 'cannot bind token for serviceaccount "robot"'),
    "an earlier pod": (lambda api: pod(api, uid="x"), 409, "the UID in the bound object reference (x) does not match"),
    "no such pod": (lambda api: pod(api) | {"name": "gone"}, 404, 'pods "gone" not found'),
    "no such secret": (lambda api: pod(api, kind="Secret"), 404, 'secrets "mine" not found'),
    "another kind": (
        lambda api: {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        400,
        "cannot bind token to object of type apps/v1, Kind=Deployment",
    ),
}


@pytest.mark.parametrize(("reference", "code", "words"), BOUND.values(), ids=BOUND)
def test_a_token_is_bound_to_what_is_there(api, reference, code, words):
    """To a pod of that account, a Secret of its namespace or a node."""
    found, answer = api.call("POST", TOKEN, {"spec": {"boundObjectRef": reference(api)}})
    assert (found, words in answer["message"]) == (code, True), answer


BY_KUBELETS = {
    "for its pod": (lambda api: pod(api), 201, ""),
    "for no pod": (lambda api: None, 403, "node requested token not bound to a pod"),
    "for a secret": (
        lambda api: {"apiVersion": "v1", "kind": "Secret", "name": "secret"},
        403,
        "node requested token not bound to a pod",
    ),
    "for any of that name": (lambda api: pod(api, uid=""), 403, "a pod binding without a uid"),
    "for another node's": (lambda api: pod(api, "far"), 403, "a pod scheduled on a different node"),
    "for one that is gone": (lambda api: pod(api) | {"name": "gone"}, 404, 'pods "gone" not found'),
    "for an earlier one": (lambda api: pod(api, uid="x"), 403, "does not match the UID in record"),
}


@pytest.mark.parametrize(("reference", "code", "words"), BY_KUBELETS.values(), ids=BY_KUBELETS)
def test_a_kubelet_gets_tokens_for_its_pods_alone(api, reference, code, words):
    """As the NodeRestriction plugin has it."""
    bound = reference(api)
    spec = {"boundObjectRef": bound} if bound else {}
    api.user = KUBELET
    found, answer = api.call("POST", TOKEN, {"spec": spec})
    assert found == code, answer
    assert words in answer.get("message", "")


VAULT = {"projected": {"sources": [{"serviceAccountToken": {"path": "t", "audience": "vault"}}]}}
ASKED = {
    "this server's": ([], 201, ""),
    "one of the pod's volumes": (["vault"], 201, ""),
    "another": (["other"], 403, 'audience "other" not found in pod spec volume, system:node:n1 is not authorized'),
    "several": (["vault", "other"], 403, "node may only request 0 or 1 audiences"),
}


@pytest.mark.parametrize(("audiences", "code", "words"), ASKED.values(), ids=ASKED)
def test_a_kubelet_gets_tokens_for_audiences_of_the_pod_alone(api, audiences, code, words):
    """Those of its projected volumes."""
    containers = [{"name": "c", "image": "i"}]
    spec = {"serviceAccountName": "robot", "nodeName": "n1", "containers": containers}
    spec["volumes"] = [{"name": "v"} | VAULT]
    api.post(f"{NAMESPACE}/pods", {"metadata": {"name": "v"}, "spec": spec})
    bound = pod(api, "v")
    api.user = KUBELET
    found, answer = api.call("POST", TOKEN, {"spec": {"boundObjectRef": bound, "audiences": audiences}})
    assert found == code, answer
    assert words in answer.get("message", "")


class Shortening(NoAdmissionHooks):
    """A webhook that grants less time than was asked for, and none in the namespace `closed`."""

    def concern(self, rtype, namespace, subresource):
        return (rtype.id, subresource) == ("serviceaccounts", "token")

    async def mutate(self, draft):
        draft.new["spec"] |= {"expirationSeconds": 700, "audiences": None}

    async def validate(self, draft):
        if draft.new["metadata"]["namespace"] == "closed":
            raise StatusError(403, "Forbidden", "no tokens here")


def test_admission_by_others_is_asked(api):
    """What they leave empty gets its default again."""
    tokens = AccountTokens(api.core.store, api.clock, SigningKey.new())
    requests = TokenRequests(api.resources, AdmittedWrites(api.resources, Shortening()), tokens)
    asked = {"spec": {"audiences": ["a"], "expirationSeconds": 6000}}

    async def create(namespace):
        target = Target(SERVICE_ACCOUNTS, namespace, "robot", "token")
        return await requests.create(target, Request("POST", TOKEN, body=json.dumps(asked).encode()))

    found = json.loads(asyncio.run(create("default")).body)
    assert found["spec"] == {"audiences": [ISSUER], "expirationSeconds": 700}
    api.post("/api/v1/namespaces", {"metadata": {"name": "closed"}})
    api.post("/api/v1/namespaces/closed/serviceaccounts", {"metadata": {"name": "robot"}})
    with pytest.raises(StatusError, match="no tokens here"):
        asyncio.run(create("closed"))


def test_there_is_nothing_to_read(api):
    """A token is told once; an account that is not there has none."""
    assert api.call("GET", TOKEN)[0] == 405
    assert api.call("POST", f"{NAMESPACE}/serviceaccounts/gone/token", {})[0] == 404
    assert api.call("POST", f"{TOKEN}?dryRun=No", {})[0] == 422
