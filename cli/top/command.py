"""`sublet top`: what nodes use, what of it is lent and to whom, and how queues stand, in a table kept up to date."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from cli.access import DEFAULT_DIR, DirOption, SchedulerOption, kubeconfig_of_environment, scheduler_address
from cli.embedded_cluster import read_endpoints
from cli.formats import TextFormat, TextOption
from model.fault import ConfigurationFault, Fault
from view.top import Facts, Sort, node_rows, pod_rows, sorted_nodes, sorted_pods, total

if TYPE_CHECKING:
    from cli.diagnostics import SchedulerDiagnosticsClient
    from cli.top.watched import Source, WatchedFacts
    from local.rundir import Endpoints


class View(StrEnum):
    """What the rows are."""

    NODES = "nodes"
    PODS = "pods"
    GANGS = "gangs"
    QUEUES = "queues"


class TopScreen(msgspec.Struct, frozen=True):
    """Rows in their order, and as text of at most so many lines."""

    rows: Any
    text: Callable[[int | None], str]


def top(
    view: Annotated[
        View, typer.Argument(help="nodes, pods that live on lent resources, or gangs or queues the scheduler knows.")
    ] = View.NODES,
    queues: Annotated[bool, typer.Option("--queues", help="The same as `sublet top queues`.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Print one table and end.")] = False,
    sort: Annotated[
        Sort | None, typer.Option(help="What is most comes first; default: name for nodes, cpu for pods.")
    ] = None,
    selector: Annotated[
        str, typer.Option("--selector", "-l", metavar="LABELS", help="Only nodes with these labels, and their pods.")
    ] = "",
    interval: Annotated[float, typer.Option(min=0.5, max=3600.0, help="Seconds from table to table.")] = 2.0,
    output: TextOption = TextFormat.TEXT,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The cluster; else $KUBECONFIG, else the one of `sublet up`, else ~/.kube/config."
        ),
    ] = None,
    directory: DirOption = DEFAULT_DIR,
    scheduler: SchedulerOption = "",
) -> int:
    """Watch nodes: allocatable, requested, used, and what of it is lent. Ctrl-C ends it.

    Without a terminal it prints a table every interval. JSON is printed once, CPU in milli-CPU and memory in bytes.
    """
    import structlog

    # A watch that waits says so in its log; the table says it too, and nothing may come between its lines.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    shape = _Shape(once or output is TextFormat.JSON, interval, output)
    if queues and view not in (View.NODES, View.QUEUES):
        raise ConfigurationFault(f"{view.value} and --queues", "are two tables", "ask for one of them")
    view = View.QUEUES if queues else view
    if view in (View.GANGS, View.QUEUES):
        run = _scheduler(directory, scheduler, shape, _queues if view is View.QUEUES else _gangs)
    else:
        run = _cluster(_source(kubeconfig, directory, selector), view, sort, shape)
    try:
        asyncio.run(run)
    except KeyboardInterrupt:
        if shape.once:
            raise
    return 0


class _Shape(msgspec.Struct, frozen=True):
    once: bool
    interval: float
    output: TextFormat


async def _scheduler(
    directory: Path, scheduler: str, shape: _Shape, screen: Callable[[SchedulerDiagnosticsClient], TopScreen]
) -> None:
    from cli.diagnostics import SchedulerDiagnosticsClient

    diagnostics = SchedulerDiagnosticsClient(scheduler_address(directory, scheduler))

    async def show() -> TopScreen:
        return await asyncio.to_thread(screen, diagnostics)

    await _repeat(show, shape)


def _gangs(diagnostics: SchedulerDiagnosticsClient) -> TopScreen:
    from cli.top.text import gangs_text

    rows = sorted(diagnostics.gangs(), key=lambda row: (row.namespace, row.name))
    return TopScreen(rows, lambda height: gangs_text(rows, height))


def _queues(diagnostics: SchedulerDiagnosticsClient) -> TopScreen:
    from cli.top.queue_text import queues_text
    from view.queue_rows import queue_rows

    rows = queue_rows(diagnostics.queues())
    return TopScreen(rows, lambda height: queues_text(rows, height))


async def _cluster(source: Source, view: View, sort: Sort | None, shape: _Shape) -> None:
    from cli.top.watched import watched

    async with watched(source) as found:
        await _repeat(lambda: _show(found, view, sort), shape)


async def _show(found: WatchedFacts, view: View, sort: Sort | None) -> TopScreen:
    facts = await found.facts()
    return _pods(facts, sort or Sort.CPU) if view is View.PODS else _nodes(facts, sort or Sort.NAME)


def _nodes(facts: Facts, sort: Sort) -> TopScreen:
    from cli.top.text import nodes_text

    rows = sorted_nodes(node_rows(facts), sort)
    return TopScreen({"total": total(rows), "nodes": rows}, lambda height: nodes_text(rows, height))


def _pods(facts: Facts, sort: Sort) -> TopScreen:
    from cli.top.text import pods_text

    rows = sorted_pods(pod_rows(facts), sort)
    return TopScreen(rows, lambda height: pods_text(rows, height))


async def _repeat(show: Callable[[], Awaitable[TopScreen]], shape: _Shape) -> None:
    if shape.output is TextFormat.JSON:
        print(msgspec.json.format(msgspec.json.encode((await show()).rows), indent=2).decode())
    elif shape.once:
        print((await show()).text(None))
    elif sys.stdout.isatty():
        await _live(show, shape.interval)
    else:
        while True:
            print((await show()).text(None), end="\n\n", flush=True)
            await asyncio.sleep(shape.interval)


async def _live(show: Callable[[], Awaitable[TopScreen]], interval: float) -> None:
    """One screen, drawn again; what went before comes back afterwards. A fault stays below the last table."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console()
    shown = await show()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            text, fault = shown.text(console.height - 2), ""
            try:
                shown = await show()
                text = shown.text(console.height - 2)
            except Fault as trouble:
                fault = f"\nnot up to date: {trouble}"
            live.update(Text(text + fault, no_wrap=True, overflow="crop"), refresh=True)
            await asyncio.sleep(interval)


def _source(kubeconfig: Path | None, directory: Path, selector: str) -> Source:
    """Raises ConfigurationFault where no cluster is named and none is in the usual places."""
    from cli.top.watched import Source

    named = kubeconfig or (kubeconfig_of_environment() if directory == DEFAULT_DIR else None)
    endpoints = _embedded(directory, named)
    if endpoints is not None and (named is None or named.resolve() == Path(endpoints.kubeconfig).resolve()):
        agents = {node.name: node.agent_grpc for node in endpoints.nodes if node.agent_grpc}
        return Source(Path(endpoints.kubeconfig), selector, agents)
    usual = Path("~/.kube/config").expanduser()
    if named is None and not usual.is_file():
        fix = "start one with `sublet up`, or give --kubeconfig FILE, --dir, or $KUBECONFIG"
        raise ConfigurationFault("no cluster", f"none runs in {directory}, and {usual} does not exist", fix)
    return Source(named or usual, selector)


def _embedded(directory: Path, named: Path | None) -> Endpoints | None:
    """Of a cluster that `sublet up` runs there; one that is asked for, by its directory or kubeconfig, must be."""
    try:
        return read_endpoints(directory)
    except ConfigurationFault:
        own = directory.expanduser() / "kubeconfig"
        if directory != DEFAULT_DIR or (named is not None and named.resolve() == own.resolve()):
            raise
        return None
