"""`sublet explain`: the record behind a number, from the program that decided it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from cli.access import (
    DEFAULT_DIR,
    AgentOption,
    DirOption,
    NodeOption,
    SchedulerAccess,
    agent_address,
    asks_scheduler,
    endpoint,
)
from cli.embedded_cluster import read_endpoints
from cli.explain.queue_text import job_text, queue_text
from cli.explain.text import evictions_text, gang_text, limits_text, node_text, pod_text
from cli.formats import TextFormat, TextOption, visible
from model.fault import ConfigurationFault, Fault, PeerFault
from view.lending_cause import Lending
from view.lending_cause import lending as lending_of
from view.queue_rows import queue_report

app = typer.Typer(no_args_is_help=True, help="Ask a running cluster why a number is what it is.")


@app.command()
def node(
    name: Annotated[str, typer.Argument(help="The node; default: the agent's own.")] = "",
    agent: AgentOption = "",
    directory: DirOption = DEFAULT_DIR,
    kubeconfig: Annotated[
        Path | None, typer.Option("--kubeconfig", metavar="FILE", help="Ask the cluster; without --agent nobody else.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also zones, predictions, and what equals another number.")
    ] = False,
    output: TextOption = TextFormat.TEXT,
) -> None:
    """What a node uses, and what of it may be lent, term by term."""
    from cli.diagnostics import AgentDiagnosticsClient

    if kubeconfig is not None and not agent:
        told = _lending(kubeconfig, name)
        return _print(told, output, told.text)
    address = agent_address(directory, agent, name)
    cluster = kubeconfig or (None if agent else _kubeconfig(directory))
    try:
        answer = AgentDiagnosticsClient(address).node()
    except PeerFault as fault:
        if cluster is None:
            raise
        told = _lending(cluster, name or _first_node(directory), answers=False)
        return _print(told, output, f"{told.text}\n  {fault}")
    if name and name != answer.node:
        fix = f"give --agent with the address of the agent on {name}"
        raise ConfigurationFault(f"node {name}", f"the agent at {address} runs on {answer.node}", fix)
    first = "" if cluster is None or output is TextFormat.JSON else _lending_line(cluster, answer.node)
    text = first + node_text(answer, time.time(), everything=everything)
    return _print(answer, output, text + _also(directory, agent or name))


@app.command()
@asks_scheduler
def pod(
    name: Annotated[str, typer.Argument(metavar="[NAMESPACE/]NAME", help="The pod.")],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Its namespace.")] = "default",
    *,
    access: SchedulerAccess,
    output: TextOption = TextFormat.TEXT,
) -> None:
    """Where a pod was placed and why, or what it waits for."""
    namespace, name = _name("pod", namespace, name)
    answer = access.client().pod(namespace, name)
    _print(answer, output, pod_text(answer, time.time()))


@app.command()
@asks_scheduler
def gang(
    name: Annotated[str, typer.Argument(metavar="[NAMESPACE/]NAME", help="The gang, as its PodGroup is named.")],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Its namespace.")] = "default",
    *,
    access: SchedulerAccess,
    output: TextOption = TextFormat.TEXT,
) -> None:
    """How many members of a gang have a node, and why the others have not."""
    namespace, name = _name("gang", namespace, name)
    answer = access.client().gang(namespace, name)
    _print(answer, output, gang_text(answer, time.time()))


@app.command()
@asks_scheduler
def queue(
    name: Annotated[str, typer.Argument(help="The queue.")],
    *,
    access: SchedulerAccess,
    output: TextOption = TextFormat.TEXT,
) -> None:
    """What a queue may have and has, who lends to it and what it lends, and who waits in it and why."""
    answer = access.client().queue(name)
    _print(queue_report(answer), output, queue_text(answer))


@app.command()
@asks_scheduler
def job(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAMESPACE/]NAME", help="A gang, a controller such as a Job, or a pod; the first there is."
        ),
    ],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Its namespace.")] = "default",
    *,
    access: SchedulerAccess,
    output: TextOption = TextFormat.TEXT,
) -> None:
    """The queue and the place of a job, the stage it waits in with quantities, and who is ahead of it."""
    namespace, name = _name("job", namespace, name)
    answer = access.client().job(namespace, name)
    _print(answer, output, job_text(answer, time.time()))


@app.command()
def limit(
    knob: Annotated[str, typer.Argument(help="A control file such as cpu.cfs_quota_us; default: all.")] = "",
    pods: Annotated[bool, typer.Option("--pods", help="Also the limits of single pods and containers.")] = False,
    of: NodeOption = "",
    agent: AgentOption = "",
    directory: DirOption = DEFAULT_DIR,
    output: TextOption = TextFormat.TEXT,
) -> None:
    """The limits on best-effort work: the terms, their sum, and what the kernel holds at this moment."""
    from cli.diagnostics import AgentDiagnosticsClient

    address = agent_address(directory, agent, of)
    answers = AgentDiagnosticsClient(address).limits(knob, pods=pods)
    if knob and not answers:
        raise ConfigurationFault(f"limit {knob}", "the agent keeps no such limit", "leave it out to see all")
    _print(answers, output, limits_text(answers) + _also(directory, agent or of, "--node "))


@app.command()
def evictions(
    of: NodeOption = "",
    agent: AgentOption = "",
    directory: DirOption = DEFAULT_DIR,
    output: TextOption = TextFormat.TEXT,
) -> None:
    """What is missing by each rule that evicts, which pods terminate, and which were evicted and why."""
    from cli.diagnostics import AgentDiagnosticsClient

    address = agent_address(directory, agent, of)
    answer = AgentDiagnosticsClient(address).evictions()
    _print(answer, output, evictions_text(answer, time.time()) + _also(directory, agent or of, "--node "))


def _name(kind: str, namespace: str, name: str) -> tuple[str, str]:
    """(namespace, name) of `NAME` or `NAMESPACE/NAME`."""
    parts = name.split("/")
    if len(parts) > 2 or "" in parts:
        raise ConfigurationFault(f"{kind} {name}", f"is not the name of a {kind}", "write NAME or NAMESPACE/NAME")
    return (namespace, name) if len(parts) == 1 else (parts[0], parts[1])


def _also(directory: Path, named: str, how: str = "explain node ") -> str:
    """The process nodes that nobody asked, because none was named, and `how` to name one."""
    if named:
        return ""  # and in an agent's image there is nothing of `local` to read a run directory with
    others = read_endpoints(directory).nodes[1:]
    told = ", ".join(f"{other.name} ({how}{other.name})" for other in others)
    return f"\n\nalso: {told}" if told else ""


def _kubeconfig(directory: Path) -> Path:
    return Path(endpoint(directory, "kubeconfig"))


def _first_node(directory: Path) -> str:
    return endpoint(directory, "node")


def _lending(kubeconfig: Path, node: str, *, answers: bool | None = None) -> Lending:
    """What the cluster itself says. Raises ConfigurationFault without a node's name."""
    from cli.explain import account

    if not node:
        raise ConfigurationFault("explain node", "the cluster is asked about one node", "give its name")
    found = account.account_of(kubeconfig, node, answers=answers)
    return lending_of(found, time.time(), account.DEGRADE_SECONDS)


def _lending_line(kubeconfig: Path, node: str) -> str:
    """An agent that answers is worth hearing even where the API server is not."""
    try:
        return f"{_lending(kubeconfig, node, answers=True).text}\n\n"
    except Fault as fault:
        return f"{fault}\n\n"


def _print(answer: object, output: TextFormat, text: str) -> None:
    if output is TextFormat.JSON:
        text = msgspec.json.format(msgspec.json.encode(answer), indent=2).decode()
    typer.echo(visible(text))
