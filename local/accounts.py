"""Identities of an embedded cluster's programs: its authority, their certificates, accounts and tokens.

Nodes and the programs of the cluster itself have static tokens. Sublet's own programs are the service accounts that
`deploy/` gives rights to, and an agent's tokens are bound to its Node, as a kubelet binds them to a pod there: so the
very roles and policies that are for a real cluster hold here, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from embedded.own_files import write_private
from kube.client import KubeClient, path_of
from local.certificates import LOOPBACK_NAMES, LocalAuthority, random_token
from local.choices import Choices, NodeSlot
from local.kubeconfig import kubeconfig
from local.programkind import ProgramKind
from local.rundir import RunDirectory

NAMESPACE = "sublet-system"
LINK_AUDIENCE = "sublet-scheduler"
_SERVERS = (ProgramKind.APISERVER, ProgramKind.NODE, ProgramKind.SCHEDULER)
_AGENT = "sublet-agent"
_API_AUTHORITY = "api-ca.crt"
"""Who signs the API server's certificate: ours, unless it is somebody else's server."""
_YEAR_SECONDS = 365 * 86_400
"""These programs live as long as the cluster; nothing renews their tokens."""


class User(msgspec.Struct, frozen=True):
    """A line of the API server's token file."""

    name: str
    groups: tuple[str, ...] = ()


def users(choices: Choices) -> dict[str, User]:
    """By what their files are called."""
    own = {
        "admin": User("sublet:admin", ("system:masters",)),
        **{
            f"{ProgramKind.NODE}{slot.suffix}": User(f"system:node:{slot.name}", ("system:nodes",))
            for slot in choices.slots
        },
    }
    if choices.apiserver is not None:
        own["controller-manager"] = User("system:kube-controller-manager")
    if choices.bare:
        return own
    return own | {program: _service_account(program) for program in (ProgramKind.SCHEDULER, ProgramKind.ADMISSION)}


def _service_account(program: str) -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}")
    return User(f"system:serviceaccount:{NAMESPACE}:sublet-{program}", groups)


def write_secrets(run: RunDirectory, choices: Choices) -> dict[str, str]:
    """Certificates, keys and token files into `run.keys`; returns user → token for the kubeconfigs."""
    authority = LocalAuthority(f"sublet {choices.id}")
    for file in ("ca.crt", _API_AUTHORITY):
        write_private(run.keys / file, authority.certificate_pem)
    nodes = tuple(slot.name for slot in choices.slots)
    for server in _SERVERS:
        names = choices.server_names if server is ProgramKind.APISERVER else (*LOOPBACK_NAMES, *nodes)
        certificate, key = authority.issue(f"sublet {server}", names)
        write_private(run.keys / f"{server}.crt", certificate)
        write_private(run.keys / f"{server}.key", key)
    known = users(choices)
    tokens = {user: random_token() for user in known}
    _write_lines(run.keys / "users", [_line(tokens[name], user) for name, user in known.items()])
    write_private(run.keys / "kubelet-token", random_token().encode())
    return tokens


def _line(token: str, user: User) -> str:
    return f'{token},{user.name},,"{",".join(user.groups)}"'


def _write_lines(file: Path, lines: Sequence[str]) -> None:
    write_private(file, "\n".join([*lines, ""]).encode())


def write_kubeconfigs(run: RunDirectory, address: str, tokens: Mapping[str, str]) -> None:
    """One kubeconfig a user; the administrator's lies at the top of the run directory."""
    for user, token in tokens.items():
        path = run.kubeconfig if user == "admin" else kubeconfig_of(run, user)
        _write_kubeconfig(run, path, address, token)


def _write_kubeconfig(run: RunDirectory, path: Path, address: str, token: str) -> None:
    write_private(path, kubeconfig(address, (run.keys / _API_AUTHORITY).read_bytes(), token))


def kubeconfig_of(run: RunDirectory, user: str) -> Path:
    return run.keys / f"{user}.kubeconfig"


def link_token_of(run: RunDirectory, slot: NodeSlot) -> Path:
    return run.keys / f"link-token{slot.suffix}"


async def give_agent_tokens(run: RunDirectory, slot: NodeSlot, address: str) -> None:
    """An agent's tokens for the API server and for the scheduler, bound to its Node. Raises KubernetesFault."""
    async with await KubeClient.connect(run.kubeconfig, "sublet-up") as client:
        node = await client.get(path_of("v1/nodes", name=slot.name), dict)
        bound = {"apiVersion": "v1", "kind": "Node", "name": slot.name, "uid": node["metadata"]["uid"]}
        token = await _token(client, bound)
        link = await _token(client, bound, LINK_AUDIENCE)
    _write_kubeconfig(run, kubeconfig_of(run, f"agent{slot.suffix}"), address, token)
    write_private(link_token_of(run, slot), link.encode())


async def service_account_token(client: KubeClient, program: str) -> str:
    """Of a program of Sublet's, for as long as the cluster gives one. Raises KubernetesFault."""
    return await _token_of(client, f"sublet-{program}", {"expirationSeconds": _YEAR_SECONDS})


async def _token(client: KubeClient, bound: dict[str, str], *audiences: str) -> str:
    spec: dict[str, Any] = {"expirationSeconds": _YEAR_SECONDS, "boundObjectRef": bound, "audiences": list(audiences)}
    return await _token_of(client, _AGENT, spec)


async def _token_of(client: KubeClient, account: str, spec: dict[str, Any]) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = path_of("v1/serviceaccounts", namespace=NAMESPACE, name=account, subresource="token")
    answer = msgspec.json.decode(await client.create(path, body))
    return str(answer["status"]["token"])
