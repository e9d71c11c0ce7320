"""Who may talk to the server, and where it may listen."""

import pytest

from local.apiserver.__main__ import StartError, is_loopback, listen_address
from local.apiserver.auth import TokenFileError, Tokens, certificate_names, is_known_host

HEADERS = {
    "Bearer one": "a",
    "bearer two": "b",
    "Bearer three": None,
    "Bearer \udc80": None,  # as a byte arrives that is not UTF-8
    "Basic one": None,
    "Bearer ": None,
    "": None,
    "one": None,
}


@pytest.mark.parametrize(("header", "user"), HEADERS.items())
def test_only_listed_bearer_tokens_are_known(header, user):
    """A token is worth something only whole and as a bearer token."""
    found = Tokens({"one": "a", "two": "b"}).user_of(header)
    assert (found and found.name) == user


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
        Tokens.read(path)
    with pytest.raises(TokenFileError, match="cannot be read"):
        Tokens.read(tmp_path / "absent")


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
