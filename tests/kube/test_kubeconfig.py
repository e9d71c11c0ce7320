"""Kubeconfigs with one token are read here; all others are left to the official reader."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kube.kubeconfig import TokenAccess, token_access
from tests.kube.test_yamldocuments import INVALID

PEM = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
DATA = base64.b64encode(PEM.encode()).decode()


def config(cluster: Any = None, user: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": cluster or {"server": "https://a:6443"}}],
        "users": [{"name": "u", "user": user or {"token": "t0ken"}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "n"}}],
        **more,
    }


def written(folder: Path, document: Any) -> Path:
    path = folder / "config"
    path.write_bytes(document if isinstance(document, bytes) else msgspec.yaml.encode(document))
    return path


READ = {
    "a server and a token": (config(), TokenAccess("https://a:6443", None, "t0ken")),
    "data": (
        config({"server": "https://a:6443/", "certificate-authority-data": DATA}),
        TokenAccess("https://a:6443", PEM, "t0ken"),
    ),
    "a file beside it": (
        config({"server": "https://a", "certificate-authority": "ca.crt"}),
        TokenAccess("https://a", "of the file", "t0ken"),
    ),
    "a token with a line end": (config(user={"token": "t0ken\n"}), TokenAccess("https://a:6443", None, "t0ken")),
}


@pytest.mark.parametrize(("document", "access"), READ.values(), ids=READ)
def test_read(tmp_path: Path, document: Any, access: TokenAccess) -> None:
    """The server without a slash at its end, the authority's text, the token."""
    (tmp_path / "ca.crt").write_text("of the file")
    assert token_access(written(tmp_path, document)) == access


SERVER = "https://a:6443"
LEFT = {
    "a client certificate": config(user={"token": "t", "client-certificate": "x"}),
    "an exec plugin": config(user={"exec": {"command": "login"}}),
    "a token's file": config(user={"tokenFile": "t"}),
    "an empty token": config(user={"token": " "}),
    "a proxy": config({"server": SERVER, "proxy-url": "http://p"}),
    "a certificate not looked at": config({"server": SERVER, "insecure-skip-tls-verify": True}),
    "another server name": config({"server": SERVER, "tls-server-name": "b"}),
    "a server without a scheme": config({"server": "a:6443"}),
    "data that are no base64": config({"server": SERVER, "certificate-authority-data": "%"}),
    "no such context": config() | {"current-context": "other"},
    "no such user": config(users=[]),
    "two of one name": config(users=[{"name": "u", "user": {"token": name}} for name in "ab"]),
    "no kubeconfig": b"clusters: 5",
    "no YAML": b"{]",
    "nothing": b"",
    **{name: text.encode() for name, (text, _) in INVALID.items()},
}


@pytest.mark.parametrize("document", LEFT.values(), ids=LEFT)
def test_left_to_the_official_reader(tmp_path: Path, document: Any) -> None:
    """Whatever says more than that, and whatever is wrong."""
    assert token_access(written(tmp_path, document)) is None


def test_a_missing_authority_is_told(tmp_path: Path) -> None:
    """The file that cannot be read."""
    path = written(tmp_path, config({"server": SERVER, "certificate-authority": "none.crt"}))
    with pytest.raises(FileNotFoundError, match=r"none\.crt"):
        token_access(path)
