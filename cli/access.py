"""Access of a command to a cluster, an agent or the scheduler: on this machine, or over TLS with a token."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.embedded_cluster import read_endpoints
from model.fault import ConfigurationFault

if TYPE_CHECKING:
    from cli.diagnostics import SchedulerDiagnosticsClient

CaOption = Annotated[
    Path | None, typer.Option("--ca", metavar="FILE", help="Speak TLS, and trust this authority: ConfigMap sublet-ca.")
]
TokenOption = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="Who asks: `kubectl create token --audience sublet-scheduler`."),
]
ServerNameOption = Annotated[
    str, typer.Option("--tls-server-name", metavar="NAME", help="What the certificate names; default: the host.")
]

DirOption = Annotated[Path, typer.Option("--dir", help="The directory that `sublet up` runs in.")]
AgentOption = Annotated[str, typer.Option("--agent", metavar="ADDR", help="The agent, as HOST:PORT or unix:PATH.")]
NodeOption = Annotated[str, typer.Option("--node", metavar="NAME", help="Of several process nodes, the one to ask.")]
SchedulerOption = Annotated[str, typer.Option("--scheduler", metavar="ADDR", help="The scheduler, as HOST:PORT.")]
DEFAULT_DIR = Path("~/.sublet")


def scheduler_at(
    address: str, ca: Path | None, token_file: Path | None, server_name: str
) -> SchedulerDiagnosticsClient:
    """Raises ConfigurationFault where only half of what TLS needs was given."""
    from cli.diagnostics import SchedulerDiagnosticsClient, TlsAccess

    if ca is None and token_file is None and not server_name:
        return SchedulerDiagnosticsClient(address)
    if ca is None or token_file is None:
        raise ConfigurationFault("--ca, --token-file", "only one is given", "TLS needs both; loopback neither")
    return SchedulerDiagnosticsClient(address, TlsAccess(ca, token_file, server_name))


def scheduler_address(directory: Path, given: str) -> str:
    """The address that was given, else that of the cluster in `directory`. Raises ConfigurationFault."""
    return _given("scheduler", given) or endpoint(directory, "scheduler_grpc")


def _given(option: str, address: str) -> str:
    """The address where one was given, empty otherwise. Raises ConfigurationFault where it can be none."""
    host, _, port = address.rpartition(":")
    local = option == "agent" and address.startswith("unix:")
    if address and not local and not (host and port.isdecimal() and 0 < int(port) < 1 << 16):
        fix = "or unix:PATH" if option == "agent" else ""
        raise ConfigurationFault(f"--{option} {address}", "is not HOST:PORT", fix)
    return address


def agent_address(directory: Path, given: str, node: str) -> str:
    """The address that was given, else where the agent of that process node answers, default: of the first.

    Raises ConfigurationFault.
    """
    if address := _given("agent", given):
        return address
    address = read_endpoints(directory).agent_of(node)
    if not address:
        raise ConfigurationFault(str(directory), "the agent has not started yet", "try again in a moment")
    return address


def endpoint(directory: Path, field: str) -> str:
    """What the cluster in `directory` tells of itself. Raises ConfigurationFault where it does not tell it yet."""
    address = getattr(read_endpoints(directory), field)
    if not address:
        program = field.partition("_")[0]
        raise ConfigurationFault(str(directory), f"the {program} has not started yet", "try again in a moment")
    return str(address)


def kubeconfig_of_environment() -> Path | None:
    """The first file of $KUBECONFIG that exists, as kubectl does; the first where none does."""
    files = [Path(each) for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    return next((file for file in files if file.is_file()), files[0] if files else None)
