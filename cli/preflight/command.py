"""`sublet preflight`: what will work here, before anything is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agent.core.observe.layout import CgroupDriver
from cli.access import kubeconfig_of_environment
from cli.formats import TableFormat, TableOption
from cli.tables import show
from model.finding import Finding, Severity, refused

EXIT_REFUSED = 1
_PLAIN_WIDTH = 160
_STYLES = {Severity.OK: "green", Severity.LIMITED: "yellow", Severity.REFUSED: "red"}
_HOST = Path("/sys/fs/cgroup"), Path("/proc"), Path("/var/lib/sublet/agent.json")


def preflight(
    node: Annotated[bool, typer.Option("--node", help="Check this machine as a node, instead of the cluster.")] = False,
    kubeconfig: Annotated[
        Path | None, typer.Option("--kubeconfig", metavar="FILE", help="The cluster; else $KUBECONFIG, ~/.kube/config.")
    ] = None,
    cgroup_root: Annotated[Path, typer.Option(metavar="DIR", help="With --node: as of the agent.")] = _HOST[0],
    proc: Annotated[Path, typer.Option(metavar="DIR", help="With --node: as of the agent.")] = _HOST[1],
    state_file: Annotated[Path, typer.Option(metavar="FILE", help="With --node: as of the agent.")] = _HOST[2],
    kubepods: Annotated[str, typer.Option(metavar="PATH", help="With --node: as of the agent.")] = "",
    cgroup_driver: Annotated[CgroupDriver | None, typer.Option(help="With --node: as of the agent.")] = None,
    output: TableOption = TableFormat.TABLE,
) -> int:
    """What will work, what will work less well, and what forbids to install; nothing is written.

    Exit code 1 where something forbids it, 2 where it could not be asked.
    """
    if node:
        from agent.run.offline import OfflineOptions, preflight_node

        options = OfflineOptions(
            state_file, cgroup_root=cgroup_root, proc=proc, kubepods=kubepods, cgroup_driver=cgroup_driver
        )
        found = preflight_node(options)
    else:
        from cli.preflight.cluster import cluster_findings
        from kube.client import KubeClient

        file = kubeconfig or kubeconfig_of_environment() or Path("~/.kube/config").expanduser()
        found = cluster_findings(lambda: KubeClient.connect(file, "sublet-preflight"))
    if output is TableFormat.JSON:
        typer.echo(msgspec.json.encode(found))
    else:
        _print(found)
    return EXIT_REFUSED if refused(found) else 0


def _print(findings: tuple[Finding, ...]) -> None:
    """A row each; columns that say nothing for a whole table are left out."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("CHECK", "FOUND", "WHAT FOLLOWS", "VERDICT", "FIX"):
        # A fix may be a command, and a command is copied.
        table.add_column(heading, overflow="fold", no_wrap=heading == "FIX")
    for finding in findings:
        verdict = Text(finding.verdict.value, _STYLES[finding.verdict])
        # Names that others chose are no markup.
        table.add_row(*map(Text, (finding.check, finding.found, finding.effect)), verdict, Text(finding.fix))
    console = Console()
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH
    show(console, table)
    limited = sum(finding.verdict is Severity.LIMITED for finding in findings)
    ending = "Sublet would not work here" if refused(findings) else "Sublet will work here"
    typer.echo(f"\n{ending}" + (f", with {limited} limitation{'' if limited == 1 else 's'}" if limited else ""))
