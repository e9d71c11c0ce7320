"""`sublet up`: the embedded cluster in the foreground, until Ctrl-C."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from local.rundir import Endpoints


def up(
    directory: Annotated[
        Path, typer.Option("--dir", help="Where keys, logs and endpoints.json go; one cluster a directory.")
    ] = Path("~/.sublet"),
    node_name: Annotated[str, typer.Option(help="The node's name; this machine's host name where left out.")] = "",
    agent_settings: Annotated[Path | None, typer.Option(metavar="FILE", help="The agent's settings.")] = None,
    agent_journal: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the agent writes each tick, for `sublet replay`.")
    ] = None,
) -> int:
    """Start API server, node, scheduler and agent on this machine; Ctrl-C stops all and leaves nothing behind."""
    return asyncio.run(_up(directory, node_name, agent_settings, agent_journal))


async def _up(directory: Path, node_name: str, settings: Path | None, journal: Path | None) -> int:
    # Imported here: an agent's image has no cryptography, and needs none.
    from local.signals import Ending
    from local.up import Cluster, require_cgroups

    require_cgroups("sublet up")
    task = asyncio.current_task()
    assert task is not None
    ending = Ending(task)
    ending.listen()
    began = time.monotonic()
    try:
        async with Cluster(
            directory, node_name, agent_settings=settings, agent_journal=journal, tell=typer.echo
        ) as cluster:
            typer.echo(ready_text(cluster.endpoints, time.monotonic() - began))
            await cluster.wait()
    except asyncio.CancelledError:
        if ending.signal is None:
            raise
    typer.echo("stopped; nothing of it is left")
    return 0


def ready_text(endpoints: Endpoints, took_seconds: float) -> str:
    """What a person needs to know once everything runs."""
    return f"""\
ready after {took_seconds:.1f} s: node {endpoints.node}, API server {endpoints.api}

  export KUBECONFIG={endpoints.kubeconfig}
  kubectl get nodes,pods -A -o wide
  kubectl apply -f examples/quickstart/
  sublet explain node{_dir(endpoints)}
  sublet explain limit{_dir(endpoints)}

logs in {endpoints.directory}/logs, addresses in {endpoints.directory}/endpoints.json; Ctrl-C stops everything"""


def _dir(endpoints: Endpoints) -> str:
    default = Path("~/.sublet").expanduser().absolute()
    return "" if Path(endpoints.directory) == default else f" --dir {endpoints.directory}"
