"""Somebody's kubeconfig becomes one that holds all it needs; what cannot be used is said by file and reason."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.kubeconfig import certified, flattened
from model.fault import ConfigurationFault
from tests.kube.test_yamldocuments import INVALID

CLUSTER = {"server": "https://10.0.0.1:6443", "certificate-authority": "ca.crt"}
USER: dict[str, Any] = {"client-certificate": "me.crt", "client-key": "me.key"}


def written(folder: Path, cluster: dict[str, Any], user: dict[str, Any], current: str = "one") -> Path:
    for name in ("ca.crt", "me.crt", "me.key"):
        (folder / name).write_text(f"content of {name}")
    document = {
        "current-context": current,
        "clusters": [{"name": "a", "cluster": cluster}, {"name": "b", "cluster": {"server": "https://other"}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "one", "context": {"cluster": "a", "user": "u", "namespace": "mine"}}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(document))
    return path


def test_files_are_taken_in(tmp_path: Path) -> None:
    """Relative to the kubeconfig, as kubectl reads them; of several clusters the current one alone is left."""
    content, address, authority = flattened(written(tmp_path, CLUSTER, USER))
    found = yaml.safe_load(content)
    (cluster,), (user,), (context,) = found["clusters"], found["users"], found["contexts"]
    assert (address, authority) == ("10.0.0.1:6443", b"content of ca.crt")
    assert base64.b64decode(user["user"]["client-key-data"]) == b"content of me.key"
    assert set(cluster["cluster"]) == {"server", "certificate-authority-data"}
    assert context["context"]["namespace"] == "mine" and context["name"] == found["current-context"]


@pytest.mark.parametrize(
    ("server", "address"),
    [("https://api.example", "api.example:443"), ("https://[fd00::1]:6443", "[fd00::1]:6443"), ("https://h/", "h:443")],
)
def test_where_the_server_is(tmp_path: Path, server: str, address: str) -> None:
    assert flattened(written(tmp_path, CLUSTER | {"server": server}, {"token": "t"}))[1] == address


@pytest.mark.parametrize(
    ("cluster", "user", "current"),
    [
        (CLUSTER, USER, "another"),
        (CLUSTER | {"server": "http://10.0.0.1"}, USER, "one"),
        (CLUSTER | {"server": "https://h/prefix"}, USER, "one"),
        (CLUSTER | {"server": "https://h:port"}, USER, "one"),
        ({"server": "https://h"}, USER, "one"),
        (CLUSTER, USER | {"client-key": "gone.key"}, "one"),
        (CLUSTER | {"certificate-authority": "gone.crt"}, USER, "one"),
    ],
)
def test_what_cannot_be_used(tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], current: str) -> None:
    path = written(tmp_path, cluster, user, current)
    with pytest.raises(ConfigurationFault, match=str(path)):
        flattened(path)


def test_the_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The kubeconfig itself, or one that it names."""
    with pytest.raises(ConfigurationFault, match=f"^{tmp_path}/config: cannot be read: No such file"):
        flattened(tmp_path / "config")
    path = written(tmp_path, CLUSTER, USER | {"client-key": "gone.key"})
    with pytest.raises(ConfigurationFault, match=f"^{path}: {tmp_path}/gone.key cannot be read: No such file"):
        flattened(path)


@pytest.mark.parametrize("text", ["", "[]", "{", "contexts: {}", *(text for text, _ in INVALID.values())])
def test_what_is_no_kubeconfig(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(ConfigurationFault):
        flattened(tmp_path / "config")


def test_a_user_with_a_certificate(tmp_path: Path) -> None:
    """What is written for a node reads back as the same."""
    (tmp_path / "config").write_bytes(certified("10.0.0.1:6443", b"ca", b"cert", b"key"))
    content, address, authority = flattened(tmp_path / "config")
    assert (address, authority) == ("10.0.0.1:6443", b"ca")
    assert base64.b64decode(yaml.safe_load(content)["users"][0]["user"]["client-certificate-data"]) == b"cert"
