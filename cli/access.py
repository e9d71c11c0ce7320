"""How a command reaches the scheduler: on this machine, or over TLS with a token where it runs in a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from model.fault import ConfigurationFault

if TYPE_CHECKING:
    from cli.diagnostics import SchedulerDiagnostics

CaOption = Annotated[
    Path | None, typer.Option("--ca", metavar="FILE", help="Speak TLS, and trust this authority: ConfigMap sublet-ca.")
]
TokenOption = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="Who asks: `kubectl create token --audience sublet-scheduler`."),
]
ServerNameOption = Annotated[
    str, typer.Option("--tls-server-name", metavar="NAME", help="What the certificate names; the host where left out.")
]


def scheduler_at(address: str, ca: Path | None, token_file: Path | None, server_name: str) -> SchedulerDiagnostics:
    """Raises ConfigurationFault where only half of what TLS needs was given."""
    from cli.diagnostics import SchedulerDiagnostics, Secure

    if ca is None and token_file is None and not server_name:
        return SchedulerDiagnostics(address)
    if ca is None or token_file is None:
        raise ConfigurationFault("--ca, --token-file", "only one is given", "TLS needs both; loopback neither")
    return SchedulerDiagnostics(address, Secure(ca, token_file, server_name))
