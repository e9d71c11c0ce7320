"""Acting as somebody else: who may, and as whom the request then goes on."""

import pytest

from embedded.tests.apiserver.secured import ROOT, Secured, rule, user

ANNE = user("anne")
AUTHENTICATION = "authentication.k8s.io"
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture
def server(clock):
    return Secured(clock)


def whoami(server, who=ROOT, **headers):
    named = {f"impersonate_{name}": value for name, value in headers.items()}
    return server.call("POST", REVIEW, {}, who, **named)


AS = {
    "a user": (
        {"user": "bert"},
        {"username": "bert", "groups": ["system:authenticated"]},
    ),
    "a user of groups": (
        {"user": "bert", "group": "painters\nsinkers"},
        {"username": "bert", "groups": ["painters", "sinkers", "system:authenticated"]},
    ),
    "an account": (
        {"user": "system:serviceaccount:shop:robot"},
        {
            "username": "system:serviceaccount:shop:robot",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"],
        },
    ),
    "somebody with all there is": (
        {"user": "bert", "uid": "7", "extra-acme.com%2fproject": "apollo", "extra-scopes": "a\nb"},
        {
            "username": "bert",
            "uid": "7",
            "groups": ["system:authenticated"],
            "extra": {"acme.com/project": ["apollo"], "scopes": ["a", "b"]},
        },
    ),
}


@pytest.mark.parametrize(("headers", "info"), AS.values(), ids=AS)
def test_root_acts_as_anybody(server, headers, info):
    """With the groups that upstream gives to whoever comes without."""
    code, review = whoami(server, **headers)
    assert (code, review["status"]["userInfo"]) == (201, info)


def test_a_stranger_can_be_played_but_may_nothing(server):
    """Not even ask who it is."""
    code, answer = whoami(server, user="system:anonymous")
    assert code == 403 and 'User "system:anonymous" cannot create resource "selfsubjectreviews"' in answer["message"]


NEEDED = {
    "a user": ({"user": "bert"}, rule("impersonate", "users"), 'users "bert" is forbidden: User "anne" cannot'),
    "this user": ({"user": "bert"}, rule("impersonate", "users", names="bert"), 'resource "users" in API group ""'),
    "a group": ({"user": "bert", "group": "painters"}, rule("impersonate", "groups"), 'groups "painters" is forbidden'),
    "an account": (
        {"user": "system:serviceaccount:shop:robot"},
        rule("impersonate", "serviceaccounts"),
        'serviceaccounts "robot" is forbidden: User "anne" cannot impersonate resource "serviceaccounts" in API group '
        '"" in the namespace "shop"',
    ),
    "a uid": (
        {"user": "bert", "uid": "7"},
        rule("impersonate", "uids", AUTHENTICATION),
        'uids.authentication.k8s.io "7" is forbidden',
    ),
    "more about somebody": (
        {"user": "bert", "extra-scopes": "a"},
        rule("impersonate", "userextras/scopes", AUTHENTICATION),
        'cannot impersonate resource "userextras/scopes"',
    ),
}


@pytest.mark.parametrize(("headers", "needed", "refusal"), NEEDED.values(), ids=NEEDED)
def test_each_part_must_be_granted(server, headers, needed, refusal):
    """By the verb impersonate, on what upstream asks for."""
    if "resourceNames" not in needed and needed["resources"] != ["users"]:
        server.grant("anne", rule("impersonate", "users"), name="users")
    code, answer = whoami(server, ANNE, **headers)
    assert code == 403 and refusal in answer["message"]
    server.grant("anne", needed)
    assert whoami(server, ANNE, **headers)[0] == 201


def test_the_request_goes_on_with_the_others_rights(server):
    """Which may be fewer, or more."""
    pods = "/api/v1/namespaces/default/pods"
    server.grant("anne", rule("impersonate", "users"), name="users")
    server.grant("bert", rule("list", "pods"))
    assert server.call("GET", pods, who=ROOT, impersonate_user="carl")[0] == 403
    assert server.call("GET", pods, who=ANNE)[0] == 403
    assert server.call("GET", pods, who=ANNE, impersonate_user="bert")[0] == 200


HALVES = {"a group": {"group": "painters"}, "a uid": {"uid": "7"}, "more": {"extra-scopes": "a"}}


@pytest.mark.parametrize("headers", HALVES.values(), ids=HALVES)
def test_nobody_has_groups_alone(server, headers):
    """A 500, as upstream has it."""
    code, answer = whoami(server, **headers)
    assert code == 500 and answer["message"].endswith("without impersonating a user name")
