"""TokenReview and SelfSubjectReview, and the documents by which others check tokens themselves."""

import json

import jwt
import pytest

from embedded.apiserver.authentication.authenticator import API_AUDIENCES, Credentials
from embedded.apiserver.authentication.token_file import TokenFile
from embedded.apiserver.request.user_info import ANONYMOUS, known_user
from embedded.tests.apiserver.conftest import Api

GROUP = "/apis/authentication.k8s.io/v1"
REVIEWS, WHO_AM_I = f"{GROUP}/tokenreviews", f"{GROUP}/selfsubjectreviews"
ADMIN = known_user("admin", "42", ("system:masters",))


@pytest.fixture
def api():
    return Api(credentials=Credentials(TokenFile({"known": ADMIN})))


def reviewed(api, token, *audiences):
    return api.post(REVIEWS, {"spec": {"token": token, "audiences": list(audiences)}})


def token(api, **spec):
    path = "/api/v1/namespaces/default/serviceaccounts"
    if api.call("GET", f"{path}/robot")[0] == 404:
        api.post(path, {"metadata": {"name": "robot"}})
    return api.post(f"{path}/robot/token", {"spec": spec})["status"]["token"]


def test_a_review_tells_whose_token_it_is(api):
    """With everything the token proves, and the audiences it is good for."""
    found = reviewed(api, "known")
    assert (found["apiVersion"], found["kind"]) == ("authentication.k8s.io/v1", "TokenReview")
    assert found["status"] == {
        "authenticated": True,
        "user": {"username": "admin", "uid": "42", "groups": ["system:masters", "system:authenticated"]},
        "audiences": list(API_AUDIENCES),
    }
    status = reviewed(api, token(api, audiences=["a", "b"]), "b", "c")["status"]
    assert (status["user"]["username"], status["audiences"]) == ("system:serviceaccount:default:robot", ["b"])
    assert list(status["user"]["extra"]) == ["authentication.kubernetes.io/credential-id"]


def test_a_wrong_token_is_an_answer_too(api):
    """Not authenticated, and why; the review itself succeeds."""
    assert reviewed(api, "nonsense")["status"] == {"user": {}, "error": "invalid bearer token"}
    why = f'[invalid bearer token, token audiences ["a"] is invalid for the target audiences ["{API_AUDIENCES[0]}"]]'
    assert reviewed(api, token(api, audiences=["a"]))["status"] == {"user": {}, "error": why}


def test_a_review_needs_a_token(api):
    """And is nothing to read or to name."""
    code, answer = api.call("POST", REVIEWS, {"spec": {}})
    assert (code, answer["message"]) == (400, "token is required for TokenReview in authentication")
    assert [api.call("GET", REVIEWS)[0], api.call("POST", f"{REVIEWS}/x", {})[0]] == [405, 404]


@pytest.mark.parametrize("user", [ADMIN, ANONYMOUS], ids=["known", "unknown"])
def test_one_may_ask_who_one_is(api, user):
    """kubectl auth whoami."""
    api.user = user
    code, found = api.call("POST", WHO_AM_I, {"kind": "SelfSubjectReview"})
    assert (code, found["status"]) == (201, {"userInfo": user.as_info()})


def test_both_are_discovered(api):
    """As things that are created only."""
    served = {entry["name"]: entry for entry in api.get(GROUP)["resources"]}
    assert {name: entry["verbs"] for name, entry in served.items()} == {
        "selfsubjectreviews": ["create"],
        "tokenreviews": ["create"],
    }
    tokens = {entry["name"]: entry for entry in api.get("/api/v1")["resources"]}["serviceaccounts/token"]
    assert (tokens["group"], tokens["kind"], tokens["verbs"]) == ("authentication.k8s.io", "TokenRequest", ["create"])
    paths = api.get("/openapi/v3/api/v1")["paths"]
    operation = paths["/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"]["post"]
    kind = {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}
    assert operation["x-kubernetes-group-version-kind"] == kind


def test_others_can_check_tokens_by_themselves(api):
    """By the documents of OpenID Connect discovery alone."""
    described = api.raw("GET", "/.well-known/openid-configuration", host="server.example:6443")
    found = json.loads(described.body)
    assert found["jwks_uri"] == "https://server.example:6443/openid/v1/jwks"
    answer = api.raw("GET", "/openid/v1/jwks")
    assert answer.content_type == "application/jwk-set+json"
    (key,) = jwt.PyJWKSet.from_dict(json.loads(answer.body)).keys
    options = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}  # the server has a clock of its own
    given = token(api, audiences=["a"])
    algorithms = found["id_token_signing_alg_values_supported"]
    said = jwt.decode(given, key, algorithms=algorithms, audience="a", issuer=found["issuer"], options=options)
    assert said["sub"] == "system:serviceaccount:default:robot"
    assert [api.call("POST", path)[0] for path in ("/openid/v1/jwks", "/.well-known/openid-configuration")] == [
        405,
        405,
    ]
