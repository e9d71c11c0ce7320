"""Who may talk to the server, and where it may listen."""

import pytest

from local.apiserver.__main__ import StartError, loopback_address
from local.apiserver.auth import TokenFileError, Tokens, is_local_host

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
    assert Tokens({"one": "a", "two": "b"}).user_of(header) == user


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
    assert is_local_host(host) is local


LISTEN = {
    "127.0.0.1:0": ("127.0.0.1", 0),
    "localhost:5": ("127.0.0.1", 5),
    "[::1]:7": ("::1", 7),
    "127.8.0.1:9": ("127.8.0.1", 9),
}


@pytest.mark.parametrize(("text", "expected"), LISTEN.items())
def test_loopback_addresses_are_allowed(text, expected):
    """Any address of the loopback network."""
    assert loopback_address(text) == expected


@pytest.mark.parametrize(
    "text",
    ["0.0.0.0:80", "192.168.1.5:80", ":80", "[::]:80", "example.com:80", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999"],
)
def test_other_addresses_are_refused(text):
    """An open port here would let anybody run commands on this machine."""
    with pytest.raises(StartError, match="--listen"):
        loopback_address(text)
