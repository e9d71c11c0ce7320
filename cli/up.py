"""`sublet up`: the embedded cluster in the foreground, until Ctrl-C."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from local.rundir import Endpoints


def up(
    directory: Annotated[
        Path, typer.Option("--dir", help="Where keys, logs and endpoints.json go; logs and learned peaks stay.")
    ] = Path("~/.sublet"),
    node_name: Annotated[str, typer.Option(help="The node's name; this machine's host name where left out.")] = "",
    agent_settings: Annotated[Path | None, typer.Option(metavar="FILE", help="The agent's settings.")] = None,
    agent_journal: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the agent writes each tick, for `sublet replay`.")
    ] = None,
) -> int:
    """Start API server, node, scheduler and agent here; Ctrl-C stops all and leaves no process and no cgroup."""
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
    cluster = Cluster(directory, node_name, agent_settings=settings, agent_journal=journal, tell=typer.echo)
    began = time.monotonic()
    try:
        async with cluster:
            typer.echo(ready_text(cluster.endpoints, time.monotonic() - began, called(sys.argv[0])))
            await cluster.wait()
    except asyncio.CancelledError:
        if ending.signal is None:
            raise
    typer.echo(f"stopped; logs and learned peaks stay in {cluster.directory}")
    return 0


def called(program: str) -> str:
    """How to call this command again, from what `sys.argv[0]` says: by its path where its name alone finds another."""
    name = Path(program).name
    if name == "__main__.py":
        return f"{sys.executable} -m cli"
    return name if name == program or shutil.which(name) == program else program


def ready_text(endpoints: Endpoints, took_seconds: float, command: str) -> str:
    """What a person needs to know once everything runs; `command` is how they call this program."""
    return f"""\
ready after {took_seconds:.1f} s: node {endpoints.node}, API server {endpoints.api}

  export KUBECONFIG={endpoints.kubeconfig}
  kubectl get nodes,pods -A -o wide
  kubectl apply -f examples/quickstart/
  {command} explain node{_dir(endpoints)}
  {command} explain limit{_dir(endpoints)}

logs in {endpoints.directory}/logs, addresses in {endpoints.directory}/endpoints.json; Ctrl-C stops everything"""


def _dir(endpoints: Endpoints) -> str:
    default = Path("~/.sublet").expanduser().absolute()
    return "" if Path(endpoints.directory) == default else f" --dir {endpoints.directory}"
