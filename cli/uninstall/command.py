"""`sublet uninstall`: everything as it was before Sublet came."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from cli.access import kubeconfig_of_environment
from model.fault import ConfigurationFault

EXIT_UNFINISHED = 1


def uninstall(
    restore: Annotated[
        bool,
        typer.Option(
            "--restore/--no-restore", help="Put the original limits back on every node first; without it they stay."
        ),
    ] = True,
    kubeconfig: Annotated[
        Path | None, typer.Option("--kubeconfig", metavar="FILE", help="The cluster; else $KUBECONFIG, ~/.kube/config.")
    ] = None,
    namespace: Annotated[str, typer.Option(help="Where Sublet is installed.")] = "sublet-system",
    timeout: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="For restoring all nodes.")] = 600.0,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Stop lending, put limits back, clean nodes, delete Sublet. Pods are left running.

    May be run again at any time: what is done already is passed over. Exit code 1 where nodes could not be restored;
    then only the webhooks are deleted.
    """
    from cli.uninstall.plan import Unfinished
    from cli.uninstall.removal import Removal
    from kube.client import KubeClient

    file = kubeconfig or kubeconfig_of_environment() or Path("~/.kube/config").expanduser()
    if not file.exists():
        raise ConfigurationFault(str(file), "no such file", "give --kubeconfig FILE")
    if not yes:
        typer.confirm(f"Remove Sublet from the cluster of {file}?", abort=True)

    async def remove() -> None:
        async with await KubeClient.connect(file, "sublet-uninstall") as client:
            await Removal(client, namespace, typer.echo, timeout).run(restore=restore)

    try:
        asyncio.run(remove())
    except Unfinished as unfinished:
        typer.echo(f"error: {unfinished}", err=True)
        return EXIT_UNFINISHED
    return 0
