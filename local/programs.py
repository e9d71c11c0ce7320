"""The four programs of the embedded cluster: their command lines, in the order they start.

A first start listens on any free port. `bound` holds what each program then reported in its ready file, so that
a restart takes the same ports and nobody has to look for it again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from local.certificates import LOOPBACK_NAMES, Authority, random_token, write_private
from local.kubeconfig import kubeconfig
from local.rundir import RunDirectory

Ready = dict[str, Any]
Bound = Mapping[str, Ready]
ANY_PORT = "127.0.0.1:0"
_DEPLOY = Path(__file__).parent.parent / "deploy" / "crds"
_SERVERS = ("apiserver", "node", "scheduler")
_USERS = {
    "admin": "sublet:admin",
    "node": "system:node:{node}",
    "agent": "system:serviceaccount:sublet-system:sublet-agent",
    "scheduler": "system:serviceaccount:sublet-system:sublet-scheduler",
}


class Program(msgspec.Struct, frozen=True):
    """How one program is started and stopped.

    `argv` makes its command line from what the programs so far reported. `restart` is False where a restart could
    not bring back what the program knew: then its end is the end of the cluster.
    """

    name: str
    argv: Callable[[Bound], list[str]]
    ready_bound_seconds: float = 30.0
    stop_bound_seconds: float = 10.0
    restart: bool = True


class Choices(msgspec.Struct, frozen=True):
    """What a person may choose about a cluster; `agent_settings` and `agent_journal` are files of the agent."""

    node_name: str
    id: str
    agent_settings: Path | None = None
    agent_journal: Path | None = None


def write_secrets(run: RunDirectory, choices: Choices) -> dict[str, str]:
    """Certificates, keys and token files into `run.keys`; returns user → token for the kubeconfigs."""
    authority = Authority(f"sublet {choices.id}")
    write_private(run.keys / "ca.crt", authority.certificate_pem)
    for server in _SERVERS:
        certificate, key = authority.issue(f"sublet {server}", (*LOOPBACK_NAMES, choices.node_name))
        write_private(run.keys / f"{server}.crt", certificate)
        write_private(run.keys / f"{server}.key", key)
    tokens = {user: random_token() for user in _USERS}
    lines = [f"{tokens[user]},{name.format(node=choices.node_name)}" for user, name in _USERS.items()]
    write_private(run.keys / "users", "\n".join([*lines, ""]).encode())
    write_private(run.keys / "kubelet-token", random_token().encode())
    link = random_token()
    write_private(run.keys / "link-token", link.encode())
    write_private(run.keys / "link-tokens", f"{link},{_USERS['node'].format(node=choices.node_name)}\n".encode())
    return tokens


def write_kubeconfigs(run: RunDirectory, address: str, tokens: Mapping[str, str]) -> None:
    """One kubeconfig a user; the administrator's lies at the top of the run directory."""
    authority = (run.keys / "ca.crt").read_bytes()
    for user, token in tokens.items():
        path = run.kubeconfig if user == "admin" else kubeconfig_of(run, user)
        write_private(path, kubeconfig(address, authority, token))


def kubeconfig_of(run: RunDirectory, user: str) -> Path:
    return run.keys / f"{user}.kubeconfig"


def embedded_programs(run: RunDirectory, choices: Choices) -> tuple[Program, ...]:
    """API server, node, scheduler, agent: each needs those before it."""
    return (
        # The API server keeps everything in memory: a fresh one would know nothing of what still runs.
        Program("apiserver", lambda bound: _apiserver(run, bound), stop_bound_seconds=3.0, restart=False),
        Program("node", lambda bound: _node(run, choices), stop_bound_seconds=15.0),
        Program("scheduler", lambda bound: _scheduler(run, bound)),
        Program("agent", lambda bound: _agent(run, choices, bound)),
    )


def bootstrap_files(directory: Path = _DEPLOY) -> list[Path]:
    """The definitions and priority classes every cluster starts with."""
    return sorted(path for path in directory.glob("*.yaml") if path.name != "kustomization.yaml")


def _apiserver(run: RunDirectory, bound: Bound) -> list[str]:
    bootstrap = [argument for path in bootstrap_files() for argument in ("--bootstrap", str(path))]
    return [
        *_module("local.apiserver", run, "apiserver"),
        *("--listen", api_address(bound)),
        *_certificate(run, "apiserver"),
        *("--token-file", str(run.keys / "users")),
        *("--kubelet-token-file", str(run.keys / "kubelet-token")),
        *("--kubelet-ca", str(run.keys / "ca.crt")),
        *bootstrap,
    ]


def _node(run: RunDirectory, choices: Choices) -> list[str]:
    return [
        *_module("local.node", run, "node"),
        *("--kubeconfig", str(kubeconfig_of(run, "node"))),
        *("--node-name", choices.node_name),
        *("--id", choices.id),
        *("--run-dir", str(run.path / "node")),
        *_certificate(run, "node"),
        *("--kubelet-token-file", str(run.keys / "kubelet-token")),
    ]


def _scheduler(run: RunDirectory, bound: Bound) -> list[str]:
    return [
        *_module("scheduler", run, "scheduler"),
        # Only one runs here, so one that comes back after kill -9 need not wait for its own lease to expire.
        *("--identity", "sublet-up"),
        *("--kubeconfig", str(kubeconfig_of(run, "scheduler"))),
        *("--link-listen", _port(bound, "scheduler", "link")),
        *_certificate(run, "scheduler"),
        *("--token-file", str(run.keys / "link-tokens")),
        *("--grpc-listen", _port(bound, "scheduler", "grpc")),
        *("--http-listen", _port(bound, "scheduler", "http")),
        *("--log-format", "console"),
    ]


def _agent(run: RunDirectory, choices: Choices, bound: Bound) -> list[str]:
    files = {"--settings": choices.agent_settings, "--journal": choices.agent_journal}
    # The program runs elsewhere: what a person named is below where they are.
    chosen = [word for flag, path in files.items() if path for word in (flag, str(path.absolute()))]
    return [
        *_module("agent", run, "agent"),
        *("--kubeconfig", str(kubeconfig_of(run, "agent"))),
        *("--node-name", choices.node_name),
        *("--kubepods", f"{bound['node']['cgroup_prefix']}/kubepods"),
        *("--state-file", str(run.path / "agent.state")),
        *("--socket", str(run.agent_socket)),
        *("--grpc-listen", _port(bound, "agent", "grpc")),
        *("--http-listen", _port(bound, "agent", "http")),
        *("--scheduler", bound["scheduler"]["link"]),
        *("--scheduler-ca", str(run.keys / "ca.crt")),
        *("--token-file", str(run.keys / "link-token")),
        *("--log-format", "console"),
        *chosen,
    ]


def api_address(bound: Bound) -> str:
    """Where the API server listens, or any port while it has not reported one."""
    ready = bound.get("apiserver")
    return f"{ready['address']}:{ready['port']}" if ready else ANY_PORT


def _port(bound: Bound, program: str, key: str) -> str:
    return str(bound.get(program, {}).get(key, ANY_PORT))


def _module(module: str, run: RunDirectory, program: str) -> list[str]:
    return [sys.executable, "-m", module, "--ready-file", str(run.ready_file_of(program))]


def _certificate(run: RunDirectory, server: str) -> list[str]:
    return ["--tls-cert", str(run.keys / f"{server}.crt"), "--tls-key", str(run.keys / f"{server}.key")]
