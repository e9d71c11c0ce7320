"""Service accounts: their tokens, what those prove and when they end, and what pods get of them."""

from __future__ import annotations

import base64
import json
from typing import Any

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import PODS, SERVICE_ACCOUNTS, Object

_REQUESTS = "/apis/authentication.k8s.io/v1"
_TASK = "https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/"
_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def _account(t: Case, name: str = "robot") -> str:
    t.given(SERVICE_ACCOUNTS, SERVICE_ACCOUNTS.object(name))
    return name


def _token(t: Case, account: str, **spec: Any) -> str:
    """A token of an account, by `kubectl create token` or by a token request."""
    if t.by_kubectl:
        options = [f"--audience={each}" for each in spec.get("audiences", ())]
        if bound := spec.get("boundObjectRef"):
            options += [f"--bound-object-kind={bound['kind']}", f"--bound-object-name={bound['name']}"]
        return t.kubectl("create", "token", account, *options).out.strip()
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []} | spec}
    path = SERVICE_ACCOUNTS.path(t.ns, account, "token")
    return str(t.raw.call("POST", path, body=body)["status"]["token"])


def _claims(token: str) -> Any:
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def _review(t: Case, token: str, *audiences: str) -> Object:
    spec = {"token": token, "audiences": list(audiences)}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
    found: Object = t.raw.call("POST", f"{_REQUESTS}/tokenreviews", body=body)["status"]
    return found


@behaviour(_TASK + "#manually-create-an-api-token-for-a-serviceaccount", Via.RAW | Via.KUBECTL, Via.ALL)
def a_token_request_gives_a_token_of_the_account(t: Case) -> None:
    claims = _claims(_token(t, _account(t)))
    uid = t.now(SERVICE_ACCOUNTS, "robot")["metadata"]["uid"]
    assert claims["sub"] == f"system:serviceaccount:{t.ns}:robot"
    assert claims["kubernetes.io"] == {"namespace": t.ns, "serviceaccount": {"name": "robot", "uid": uid}}
    assert claims["exp"] - claims["iat"] == 3600 and claims["aud"] and claims["jti"]


@behaviour(pages.SERVICE_ACCOUNT + "#authenticating-in-code", Via.RAW)
def a_token_of_an_account_is_known_to_the_server(t: Case) -> None:
    headers = {"Authorization": "Bearer " + _token(t, _account(t))}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = f"{_REQUESTS}/selfsubjectreviews"
    answer = t.raw.answer("POST", path, body=body, headers=headers, anonymous=True)
    user = answer.json["status"]["userInfo"]
    assert (answer.code, user["username"]) == (201, f"system:serviceaccount:{t.ns}:robot")
    groups = {"system:serviceaccounts", f"system:serviceaccounts:{t.ns}", "system:authenticated"}
    assert set(user["groups"]) == groups


@behaviour(pages.AUTHENTICATION + "#self-subject-review", Via.KUBECTL, Via.ALL)
def kubectl_tells_who_one_is(t: Case) -> None:
    found = t.kubectl("auth", "whoami", "-o", "json").json["status"]["userInfo"]
    assert found["username"] and "system:authenticated" in found["groups"]


@behaviour(pages.SERVICE_ACCOUNT + "#token-review", Via.RAW | Via.KUBECTL)
def a_token_review_tells_whose_token_it_is(t: Case) -> None:
    status = _review(t, _token(t, _account(t)))
    assert status["authenticated"] is True and status["audiences"]
    assert status["user"]["username"] == f"system:serviceaccount:{t.ns}:robot"
    assert status["user"]["uid"] == t.now(SERVICE_ACCOUNTS, "robot")["metadata"]["uid"]


@behaviour(pages.SERVICE_ACCOUNT + "#token-review", Via.RAW)
def a_token_review_of_a_wrong_token_says_so(t: Case) -> None:
    status = _review(t, "not.a.token")
    assert not status.get("authenticated") and "invalid bearer token" in status["error"]


@behaviour(pages.SERVICE_ACCOUNT + "#authenticating-credentials", Via.RAW | Via.KUBECTL)
def a_token_is_worth_something_to_its_audiences_alone(t: Case) -> None:
    token = _token(t, _account(t), audiences=["one.example", "two.example"])
    assert _review(t, token, "two.example", "three.example")["audiences"] == ["two.example"]
    refused = _review(t, token, "three.example")
    assert not refused.get("authenticated") and "is invalid for the target audiences" in refused["error"]
    headers = {"Authorization": f"Bearer {token}"}
    assert t.raw.answer("GET", PODS.path(t.ns), headers=headers, anonymous=True).code == 401


@behaviour(pages.SERVICE_ACCOUNT + "#authenticating-credentials", Via.RAW | Via.KUBECTL)
def a_bound_token_ends_with_its_pod(t: Case) -> None:
    _account(t)
    uid = t.given(PODS, r.pod("p", serviceAccountName="robot"))["metadata"]["uid"]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid}
    token = _token(t, "robot", boundObjectRef=bound)
    extra = _review(t, token)["user"]["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["p"]
    assert extra["authentication.kubernetes.io/pod-uid"] == [uid]
    t.raw.delete(PODS, t.ns, "p", grace=0)
    t.eventually(lambda: not _review(t, token).get("authenticated"), "the end of the token")


@behaviour(pages.SERVICE_ACCOUNT, Via.RAW)
def a_token_is_bound_to_a_pod_of_its_account(t: Case) -> None:
    _account(t)
    t.given(PODS, r.pod("p", serviceAccountName="robot"))
    _account(t, "another")
    with t.refused("BadRequest", 'cannot bind token for serviceaccount "another"'):
        _token(t, "another", boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "p"})


@behaviour(pages.SERVICE_ACCOUNT, Via.RAW)
def a_token_lasts_ten_minutes_at_least(t: Case) -> None:
    _account(t)
    with t.refused("Invalid", "spec.expirationSeconds", "may not specify a duration less than 10 minutes"):
        _token(t, "robot", expirationSeconds=599)


@behaviour(_TASK, Via.ALL)
def a_pod_needs_a_service_account_that_is_there(t: Case) -> None:
    with t.refused("Forbidden", 'serviceaccount "robot" not found'):
        t.create(PODS, r.pod("p", serviceAccountName="robot"))


@behaviour(_TASK + "#use-the-default-service-account-to-access-the-api-server", Via.CODE)
def every_container_of_a_pod_gets_a_token(t: Case) -> None:
    spec = t.create(PODS, r.pod("p", initContainers=[r.container("first")]))["spec"]
    name = spec["volumes"][-1]["name"]
    assert name.startswith("kube-api-access-") and spec["serviceAccountName"] == "default"
    for container in (*spec["initContainers"], *spec["containers"]):
        assert {"name": name, "readOnly": True, "mountPath": _MOUNT} in container["volumeMounts"]
    sources = spec["volumes"][-1]["projected"]["sources"]
    assert [next(iter(source)) for source in sources] == ["serviceAccountToken", "configMap", "downwardAPI"]


@behaviour(_TASK + "#opt-out-of-api-credential-automounting", Via.CODE)
def a_pod_may_do_without_a_token(t: Case) -> None:
    account = SERVICE_ACCOUNTS.object("robot", automountServiceAccountToken=False)
    t.given(SERVICE_ACCOUNTS, account)
    without = t.create(PODS, r.pod("a", serviceAccountName="robot"))
    with_token = t.create(PODS, r.pod("b", serviceAccountName="robot", automountServiceAccountToken=True))
    assert "volumes" not in without["spec"] and len(with_token["spec"]["volumes"]) == 1


@behaviour(_TASK + "#service-account-issuer-discovery", Via.RAW)
def the_issuer_describes_itself(t: Case) -> None:
    found = t.raw.call("GET", "/.well-known/openid-configuration")
    assert found["issuer"].startswith("https://") and found["jwks_uri"].endswith("/openid/v1/jwks")
    answer = t.raw.answer("GET", "/openid/v1/jwks", headers={"Accept": "application/jwk-set+json"})
    assert answer.media_type == "application/jwk-set+json"
    assert {key["alg"] for key in answer.json["keys"]} <= set(found["id_token_signing_alg_values_supported"])


@behaviour(pages.ACCESS, Via.RAW)
def a_stranger_may_ask_for_health_and_version(t: Case) -> None:
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        assert t.raw.answer("GET", path, headers={"Accept": "*/*"}, anonymous=True).code == 200, path
        wrong = {"Authorization": "Bearer not-a-token", "Accept": "*/*"}
        assert t.raw.answer("GET", path, headers=wrong, anonymous=True).code == 401, path
