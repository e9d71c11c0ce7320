"""Kubeconfig documents for the embedded cluster, and those that people have."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from kube.yamldocuments import yaml_document
from model.fault import ConfigurationFault

_CLUSTER_FILES = ("certificate-authority",)
_USER_FILES = ("client-certificate", "client-key")


def kubeconfig(address: str, authority_pem: bytes, token: str) -> bytes:
    """A kubeconfig (YAML) whose one cluster, user and context are all called `sublet`."""
    return _document(address, authority_pem, {"token": token})


def certified(address: str, authority_pem: bytes, certificate_pem: bytes, key_pem: bytes) -> bytes:
    """The same for a user with a client certificate."""
    return _document(
        address, authority_pem, {"client-certificate-data": _text(certificate_pem), "client-key-data": _text(key_pem)}
    )


def _document(address: str, authority_pem: bytes, user: dict[str, str]) -> bytes:
    cluster = {"server": f"https://{address}", "certificate-authority-data": _text(authority_pem)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "sublet",
        "clusters": [{"name": "sublet", "cluster": cluster}],
        "users": [{"name": "sublet", "user": user}],
        "contexts": [{"name": "sublet", "context": {"cluster": "sublet", "user": "sublet", "namespace": "default"}}],
    }
    return yaml.safe_dump(document, sort_keys=False).encode()


def flattened(path: Path) -> tuple[bytes, str, bytes]:
    """The current context alone, its files within: (YAML, HOST:PORT of the server, its authority's PEM).

    Raises ConfigurationFault for a file that cannot be used, or that names no https server and its authority.
    """
    fix = "a kubeconfig with an https server and its certificate authority, as kubectl reads it"
    try:
        whole = yaml_document(path.read_bytes())
        (context,) = [each["context"] for each in whole["contexts"] if each["name"] == whole["current-context"]]
        (cluster,) = [dict(each["cluster"]) for each in whole["clusters"] if each["name"] == context["cluster"]]
        (user,) = [dict(each["user"]) for each in whole["users"] if each["name"] == context["user"]]
        _embed(cluster, _CLUSTER_FILES, path.parent)
        _embed(user, _USER_FILES, path.parent)
        authority = base64.b64decode(cluster["certificate-authority-data"])
        server = urlsplit(cluster["server"])
        port = server.port or 443
    except OSError as error:
        which = "" if error.filename in (None, str(path)) else f"{error.filename} "
        raise ConfigurationFault(str(path), f"{which}cannot be read: {error.strerror or error}", fix) from error
    except (LookupError, TypeError, ValueError) as error:
        raise ConfigurationFault(str(path), f"not usable: {type(error).__name__}: {error}", fix) from error
    if server.scheme != "https" or not server.hostname or server.path.strip("/"):
        raise ConfigurationFault(str(path), f"server {cluster['server']} is not https://HOST:PORT", fix)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "joined",
        "clusters": [{"name": "joined", "cluster": cluster}],
        "users": [{"name": "joined", "user": user}],
        "contexts": [{"name": "joined", "context": context | {"cluster": "joined", "user": "joined"}}],
    }
    host = f"[{server.hostname}]" if ":" in server.hostname else server.hostname
    return yaml.safe_dump(document, sort_keys=False).encode(), f"{host}:{port}", authority


def _embed(section: dict[str, Any], names: tuple[str, ...], folder: Path) -> None:
    """A file's content as data in its place; relative paths are from the kubeconfig."""
    for name in names:
        if file := section.pop(name, None):
            section[f"{name}-data"] = _text((folder / str(file)).read_bytes())


def _text(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
