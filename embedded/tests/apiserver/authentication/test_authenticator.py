"""Whose token it is: of the file, of a service account, and for how long."""

import pytest

from embedded.apiserver.authentication.authenticator import API_AUDIENCES, Credentials
from embedded.apiserver.authentication.service_account_tokens import AccountTokens, Reference, Subject, TokenError
from embedded.apiserver.authentication.signing_key import SigningKey
from embedded.apiserver.authentication.token_file import TokenFile
from embedded.apiserver.request.user_info import ANONYMOUS, UserInfo, known_user
from embedded.tests.apiserver.conftest import Api

ADMIN = known_user("admin", groups=("system:masters",))
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"
NODES = "/api/v1/nodes"
USER = "system:serviceaccount:default:robot"
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")
PROVEN = "authentication.kubernetes.io/"


@pytest.fixture
def api():
    found = Api(credentials=Credentials(TokenFile({"known": ADMIN})))
    found.post(ACCOUNTS, {"metadata": {"name": "robot"}})
    return found


def bound_to(api, kind):
    """The reference of a new object of this kind, and the path of that object."""
    spec = {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]}
    path, obj = {
        "Pod": (PODS, {"metadata": {"name": "it"}, "spec": spec | {"nodeName": "n1"}}),
        "Secret": (SECRETS, {"metadata": {"name": "it"}}),
        "Node": (NODES, {"metadata": {"name": "it"}}),
    }[kind]
    made = api.post(path, obj)
    reference = {"apiVersion": "v1", "kind": kind, "name": "it", "uid": made["metadata"]["uid"]}
    return reference, f"{path}/it"


def token(api, **spec):
    return api.post(f"{ACCOUNTS}/robot/token", {"spec": spec})["status"]["token"].encode()


def check(api, given, *audiences):
    """The user a token proves, or why it proves none."""
    try:
        return api.core.authenticator.check(given, audiences).user
    except TokenError as error:
        return str(error)


def test_headers_have_users(api):
    """No token is nobody in particular; a wrong one is not."""
    users = [api.core.authenticator.user_of(header) for header in ("", "Basic x", "Bearer known", "Bearer unknown")]
    assert users == [ANONYMOUS, ANONYMOUS, ADMIN, None]
    header = f"Bearer {token(api).decode()}"
    found = api.core.authenticator.user_of(header)
    assert found is not None and (found.name, found.groups) == (USER, GROUPS)
    api.clock.advance(3661)
    assert api.core.authenticator.user_of(header) is None


def test_a_token_tells_what_it_is_bound_to(api):
    """The pod with its node, the node alone; a credential id of each token's own."""
    api.post(NODES, {"metadata": {"name": "n1"}})
    node_uid = api.get(f"{NODES}/n1")["metadata"]["uid"]
    pod, _ = bound_to(api, "Pod")
    node, _ = bound_to(api, "Node")
    by_pod, by_node = check(api, token(api, boundObjectRef=pod)), check(api, token(api, boundObjectRef=node))
    assert isinstance(by_pod, UserInfo) and isinstance(by_node, UserInfo)
    assert by_pod.uid == by_node.uid == api.get(f"{ACCOUNTS}/robot")["metadata"]["uid"]
    ids = [user.extra[f"{PROVEN}credential-id"][0] for user in (by_pod, by_node)]
    assert all(each.startswith("JTI=") for each in ids) and ids[0] != ids[1]
    of_pod = {"pod-name": "it", "pod-uid": pod["uid"], "node-name": "n1", "node-uid": node_uid}
    assert told(by_pod) == of_pod
    assert told(by_node) == {"node-name": "it", "node-uid": node["uid"]}


def told(user):
    found = {key.removeprefix(PROVEN): values for key, values in user.extra.items()}
    return {key: value for key, (value,) in found.items() if key != "credential-id"}


INVALIDATED = "[invalid bearer token, service account token has been invalidated]"


@pytest.mark.parametrize("kind", ["Pod", "Secret", "Node"])
def test_a_token_ends_with_what_it_is_bound_to(api, kind):
    """Its successor of the same name gives it no second life."""
    reference, path = bound_to(api, kind)
    given = token(api, boundObjectRef=reference)
    assert isinstance(check(api, given), UserInfo)
    code, _ = api.call("DELETE", f"{path}?gracePeriodSeconds=0")
    assert (code, check(api, given)) == (200, INVALIDATED)
    successor, _ = bound_to(api, kind)
    what = kind.lower()
    why = f"{what} UID ({successor['uid']}) does not match service account {what} ref claim ({reference['uid']})"
    assert check(api, given) == f"[invalid bearer token, {why}]"


def test_a_pod_that_ends_keeps_its_token_for_its_grace(api):
    """And a minute more; a pod that hangs beyond that has it no longer."""
    reference, path = bound_to(api, "Pod")
    given = token(api, boundObjectRef=reference)
    api.call("DELETE", path)
    api.clock.advance(30 + 60)
    assert isinstance(check(api, given), UserInfo)
    api.clock.advance(1)
    assert check(api, given) == INVALIDATED


def test_a_token_ends_with_its_account(api):
    """Also where an account of that name is made again."""
    given = token(api)
    uid = api.get(f"{ACCOUNTS}/robot")["metadata"]["uid"]
    api.call("DELETE", f"{ACCOUNTS}/robot")
    assert check(api, given) == '[invalid bearer token, serviceaccounts "robot" not found]'
    later = api.post(ACCOUNTS, {"metadata": {"name": "robot"}})["metadata"]["uid"]
    assert check(api, given) == f"[invalid bearer token, service account UID ({later}) does not match claim ({uid})]"


TIMES = {
    "at once": (0, None),
    "at its end": (600, None),
    "with a clock that goes a minute late": (660, None),
    "after that": (661, "service account token has expired"),
    "before a minute before its issue": (-61, "service account token is not valid yet"),
}


@pytest.mark.parametrize(("seconds", "why"), TIMES.values(), ids=TIMES)
def test_a_token_holds_for_its_time(api, seconds, why):
    """Give or take the minute that go-jose allows."""
    given = token(api, expirationSeconds=600)
    api.clock.advance(seconds)
    found = check(api, given)
    assert found == f"[invalid bearer token, {why}]" if why else isinstance(found, UserInfo)


AUDIENCES = {
    "of this server": ([], [], list(API_AUDIENCES)),
    "of this server by name": ([], [*API_AUDIENCES, "x"], list(API_AUDIENCES)),
    "another's": (["a", "b"], ["b", "c"], ["b"]),
    "another's, asked by this server": (["a"], [], None),
    "this server's, asked by another": ([], ["a"], None),
}


@pytest.mark.parametrize(("meant", "asked", "found"), AUDIENCES.values(), ids=AUDIENCES)
def test_a_token_is_worth_something_where_it_is_meant_for(api, meant, asked, found):
    """What is asked and what is meant must have an audience in common."""
    given = token(api, audiences=meant)
    if found is None:
        with pytest.raises(TokenError, match="is invalid for the target audiences"):
            api.core.authenticator.check(given, asked)
        return
    assert list(api.core.authenticator.check(given, asked).audiences) == found


def test_a_token_of_the_file_is_for_this_server_alone(api):
    """To other audiences it is unknown."""
    assert check(api, b"known") == ADMIN and check(api, b"known", *API_AUDIENCES) == ADMIN
    assert check(api, b"known", "another") == "invalid bearer token"


def test_tokens_of_another_key_are_unknown(api):
    """However well formed they are."""
    stranger = Api()
    stranger.post(ACCOUNTS, {"metadata": {"name": "robot"}})
    assert check(api, token(stranger)) == "invalid bearer token"
    assert check(api, b"a.b.c") == check(api, b"x" * 20_000 + b"..") == "invalid bearer token"


class CountingKey(SigningKey):
    """Counts what it verifies."""

    verified = 0

    def payload(self, token):
        self.verified += 1
        return super().payload(token)


def test_a_token_is_verified_once_as_long_as_it_is_remembered(api):
    """Of many the earliest is forgotten, and verified again."""
    key = CountingKey.new()
    tokens = AccountTokens(api.core.store, api.clock, key, remembered=2)
    subject = Subject("default", Reference("robot", "uid"))
    first, second, third = (tokens.issue(subject, API_AUDIENCES, 600)[0].encode() for _ in range(3))
    verified = []
    for given in (first, first, second, third, second, first):
        found = tokens.claims(given)
        assert found is not None and found.subject == subject
        verified.append(key.verified)
    assert verified == [1, 1, 2, 3, 3, 4]
