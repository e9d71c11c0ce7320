"""Who may talk to the server, and where it may listen."""

import pytest

from embedded.apiserver.__main__ import StartError, is_loopback, listen_address
from embedded.apiserver.authentication.token_file import (
    TokenFile,
    TokenFileError,
    bearer_token,
    certificate_names,
    is_known_host,
)
from embedded.apiserver.request.user_info import UserInfo, known_user

HEADERS = {
    "Bearer one": b"one",
    "bearer  two ": b"two",
    "Bearer \udc80": b"\x80",  # as a byte arrives that is not UTF-8
    "Basic one": b"",
    "Bearer ": b"",
    "": b"",
    "one": b"",
}


@pytest.mark.parametrize(("header", "token"), HEADERS.items())
def test_a_token_is_one_as_a_bearer_token_alone(header, token):
    """Whatever the case of the scheme, whatever the bytes of the token."""
    assert bearer_token(header) == token


@pytest.mark.parametrize(("token", "user"), {b"one": "a", b"on": None, b"one ": None, b"": None}.items())
def test_only_listed_tokens_are_known(token, user):
    """A token is worth something only whole."""
    found = TokenFile({"one": known_user("a"), "two": known_user("b")}).user_of(token)
    assert (found and found.name) == user


USERS = {
    "the least": ("t,bob", UserInfo("bob", "", ("system:authenticated",))),
    "with a uid": ("t,bob,42", UserInfo("bob", "42", ("system:authenticated",))),
    "one group": ("t,bob,42,admins", UserInfo("bob", "42", ("admins", "system:authenticated"))),
    "groups": ('t, bob,,"admins, all"', UserInfo("bob", "", ("admins", "all", "system:authenticated"))),
    "twice": ("t,bob,,system:authenticated", UserInfo("bob", "", ("system:authenticated",))),
    "a kubelet": ("t,system:node:n1", UserInfo("system:node:n1", "", ("system:nodes", "system:authenticated"))),
}


@pytest.mark.parametrize(("line", "user"), USERS.values(), ids=USERS)
def test_a_line_names_a_user_with_groups(tmp_path, line, user):
    """Everybody known is in system:authenticated, and a node in system:nodes."""
    path = tmp_path / "tokens"
    path.write_text(f"# users\n\n{line}\n")
    assert TokenFile.read(path).user_of(b"t") == user


FILES = {
    "empty": ("", "holds no token"),
    "only comments": ("# nothing\n\n", "holds no token"),
    "no user": ("token\n", "line 1"),
    "empty token": ("a,b\n,c\n", "line 2"),
}


@pytest.mark.parametrize(("text", "message"), FILES.values(), ids=FILES)
def test_a_token_file_that_is_of_no_use_is_an_error(tmp_path, text, message):
    """The error names the file and the line."""
    path = tmp_path / "tokens"
    path.write_text(text)
    with pytest.raises(TokenFileError, match=message):
        TokenFile.read(path)
    with pytest.raises(TokenFileError, match="cannot be read"):
        TokenFile.read(tmp_path / "absent")


HOSTS = {
    "127.0.0.1:6443": True,
    "localhost": True,
    "[::1]:1": True,
    "[::1]": True,
    "evil.example:6443": False,
    "": False,
}


@pytest.mark.parametrize(("host", "local"), HOSTS.items())
def test_only_hosts_of_this_machine_are_answered(host, local):
    """A page that rebinds its name to 127.0.0.1 still sends that name."""
    assert is_known_host(host) is local


LISTEN = {
    "127.0.0.1:0": ("127.0.0.1", 0),
    "localhost:5": ("127.0.0.1", 5),
    "[::1]:7": ("::1", 7),
    "127.8.0.1:9": ("127.8.0.1", 9),
    "0.0.0.0:6443": ("0.0.0.0", 6443),
    "[::]:6443": ("::", 6443),
    "192.168.1.5:80": ("192.168.1.5", 80),
}


@pytest.mark.parametrize(("text", "expected"), LISTEN.items())
def test_a_person_may_name_any_address(text, expected):
    """Host and port, the former in brackets where it has colons."""
    assert listen_address(text) == expected


@pytest.mark.parametrize("text", [":80", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", "::1:80", "", "[]:1"])
def test_what_is_not_host_and_port_is_refused(text):
    """The error shows what is expected."""
    with pytest.raises(StartError, match="expected HOST:PORT"):
        listen_address(text)


OTHERS = {
    "127.0.0.1": True,
    "127.8.0.1": True,
    "::1": True,
    "0.0.0.0": False,
    "::": False,
    "10.0.0.1": False,
    "x": False,
}


@pytest.mark.parametrize(("host", "expected"), OTHERS.items())
def test_only_loopback_is_out_of_reach_for_other_machines(host, expected):
    """What listens anywhere else deserves a warning."""
    assert is_loopback(host) is expected


def test_the_names_of_the_certificate_are_answered_too(credentials):
    """A server made reachable under a name of its own is asked under that name."""
    names = certificate_names(credentials / "tls.crt")
    assert names == {"127.0.0.1", "localhost"}
    assert is_known_host("node.example:6443", frozenset({"node.example"}))
    assert not is_known_host("other.example:6443", frozenset({"node.example"}))
