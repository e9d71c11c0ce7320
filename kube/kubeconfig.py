"""Kubeconfigs whose user is one token, read without the official package: its reader loads pydantic and 11 MiB with it.

Sublet's own programs are given such files. Everything else a kubeconfig may say (client certificates, exec plugins,
OIDC, proxies) is left to the official reader.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

import msgspec

from kube.yamldocuments import yaml_document


class TokenAccess(msgspec.Struct, frozen=True):
    """An API server, the PEM text of who signs its certificate (None: the system's authorities), and a token."""

    server: str
    authority_pem: str | None
    token: str


class _Cluster(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    server: str
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None


class _User(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    token: str


class _Context(msgspec.Struct, frozen=True):
    cluster: str
    user: str


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: dict[str, object]


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: dict[str, object]


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: _Context


class _Config(msgspec.Struct, frozen=True, rename="kebab"):
    current_context: str
    clusters: list[_NamedCluster]
    users: list[_NamedUser]
    contexts: list[_NamedContext]


def token_access(path: Path) -> TokenAccess | None:
    """What the current context names, where that is a server and a token and nothing more; else None.

    None for a wrong file, too: the official reader says what is wrong with it. Raises OSError.
    """
    try:
        config = msgspec.convert(yaml_document(path.read_bytes()), _Config)
        (context,) = [named.context for named in config.contexts if named.name == config.current_context]
        (cluster,) = [named.cluster for named in config.clusters if named.name == context.cluster]
        (user,) = [named.user for named in config.users if named.name == context.user]
        where, who = msgspec.convert(cluster, _Cluster), msgspec.convert(user, _User)
        authority = _authority(where, path.parent)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if not where.server.startswith(("https://", "http://")) or not who.token.strip():
        return None
    return TokenAccess(where.server.rstrip("/"), authority, who.token.strip())


def _authority(cluster: _Cluster, folder: Path) -> str | None:
    """Data come before a file, whose path counts from the kubeconfig's folder; as in kubectl."""
    if cluster.certificate_authority_data:
        try:
            return base64.b64decode(cluster.certificate_authority_data, validate=True).decode("ascii")
        except binascii.Error as error:
            raise ValueError(str(error)) from error
    if cluster.certificate_authority:
        return (folder / cluster.certificate_authority).read_text()
    return None
