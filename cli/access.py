"""Access of a command to a cluster, an agent or the scheduler: on this machine, or over TLS with a token."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, get_type_hints

import typer

from cli.embedded_cluster import read_endpoints
from model.fault import ConfigurationFault

if TYPE_CHECKING:
    from cli.diagnostics import SchedulerDiagnosticsClient

_R = TypeVar("_R")
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


class SchedulerAccess(NamedTuple):
    """Where the scheduler answers, and who asks: the options of every command that asks it (`asks_scheduler`)."""

    scheduler: SchedulerOption = ""
    ca: CaOption = None
    token_file: TokenOption = None
    server_name: ServerNameOption = ""
    directory: DirOption = DEFAULT_DIR

    def client(self) -> SchedulerDiagnosticsClient:
        """Raises ConfigurationFault for an address that is none, and where there is no scheduler to ask."""
        address = scheduler_address(self.directory, self.scheduler)
        return scheduler_at(address, self.ca, self.token_file, self.server_name)


def asks_scheduler(command: Callable[..., _R]) -> Callable[..., _R]:
    """A command with a parameter `access` as one that has the options of SchedulerAccess in its place."""
    own, hints = inspect.signature(command), get_type_hints(command, include_extras=True)
    options = get_type_hints(SchedulerAccess, include_extras=True)

    @functools.wraps(command)
    def run(**given: Any) -> _R:
        access = SchedulerAccess(**{name: given.pop(name) for name in options})
        return command(access=access, **given)

    taken = [each for each in own.parameters.values() if each.name != "access"]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=SchedulerAccess._field_defaults[name])
        for name in options
    ]
    keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in taken]
    annotated = {**{name: hint for name, hint in hints.items() if name != "access"}, **options}
    parameters = [each.replace(annotation=annotated[each.name]) for each in (*keyword, *added)]
    run.__annotations__ = annotated
    vars(run)["__signature__"] = own.replace(parameters=parameters)
    return run


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


def cluster_file(kubeconfig: Path | None, directory: Path) -> Path:
    """The kubeconfig of the cluster that a command is about: the one that is given, that of a directory that is given,
    $KUBECONFIG, that of `sublet up`, the usual one.

    Raises ConfigurationFault where there is none.
    """
    if kubeconfig is not None:
        return kubeconfig
    named = kubeconfig_of_environment() if directory == DEFAULT_DIR else None
    if named is not None:
        return named
    try:
        return Path(endpoint(directory, "kubeconfig"))
    except ConfigurationFault:
        usual = Path("~/.kube/config").expanduser()
        if directory != DEFAULT_DIR or not usual.is_file():
            raise
        return usual
