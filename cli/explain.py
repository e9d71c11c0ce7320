"""`sublet explain node|pod|gang|limit|evictions`: the record behind a number, from the program that decided it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from cli.access import CaOption, ServerNameOption, TokenOption, scheduler_at
from cli.embedded_cluster import read_endpoints
from model import explain
from model.decision import Decision
from model.fault import ConfigurationFault, Fault, PeerFault
from model.lending import Lending
from model.lending import lending as lending_of
from model.quantity import format_bytes, format_millis
from model.report import Usage
from model.resources import MID_CPU, MID_MEMORY

if TYPE_CHECKING:
    from cli.diagnostics import EvictionsAnswer, GangExplained, LimitAnswer, NodeAnswer, PendingAnswer, PodAnswer
    from model.placement import Scored

app = typer.Typer(no_args_is_help=True, help="Ask a running cluster why a number is what it is.")


class Output(StrEnum):
    """How an answer is printed."""

    TEXT = "text"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="For people, or for programs.")]
DirOption = Annotated[Path, typer.Option("--dir", help="The directory that `sublet up` runs in.")]
AgentOption = Annotated[str, typer.Option("--agent", metavar="ADDR", help="The agent, as HOST:PORT or unix:PATH.")]
NodeOption = Annotated[str, typer.Option("--node", metavar="NAME", help="Of several process nodes, the one to ask.")]
SchedulerOption = Annotated[str, typer.Option("--scheduler", metavar="ADDR", help="The scheduler, as HOST:PORT.")]
DEFAULT_DIR = Path("~/.sublet")
_ZONE = "/zone/"


@app.command()
def node(
    name: Annotated[str, typer.Argument(help="The node; the agent's own where left out.")] = "",
    agent: AgentOption = "",
    directory: DirOption = DEFAULT_DIR,
    kubeconfig: Annotated[
        Path | None, typer.Option("--kubeconfig", metavar="FILE", help="Ask the cluster; without --agent nobody else.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also zones, predictions, and what equals another number.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """What a node uses, and what of it may be lent, term by term."""
    from cli.diagnostics import AgentDiagnostics

    if kubeconfig is not None and not agent:
        told = _lending(kubeconfig, name)
        return _print(told, output, told.text)
    address = _given("agent", agent) or _agent(directory, name)
    cluster = kubeconfig or (None if agent else _kubeconfig(directory))
    try:
        answer = AgentDiagnostics(address).node()
    except PeerFault as fault:
        if cluster is None:
            raise
        told = _lending(cluster, name or _first_node(directory), answers=False)
        return _print(told, output, f"{told.text}\n  {fault}")
    if name and name != answer.node:
        fix = f"give --agent with the address of the agent on {name}"
        raise ConfigurationFault(f"node {name}", f"the agent at {address} runs on {answer.node}", fix)
    first = "" if cluster is None or output is Output.JSON else _lending_line(cluster, answer.node)
    text = first + node_text(answer, time.time(), everything=everything)
    return _print(answer, output, text + _also(directory, agent or name))


@app.command()
def pod(
    name: Annotated[str, typer.Argument(metavar="[NAMESPACE/]NAME", help="The pod.")],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Its namespace.")] = "default",
    scheduler: SchedulerOption = "",
    ca: CaOption = None,
    token_file: TokenOption = None,
    server_name: ServerNameOption = "",
    directory: DirOption = DEFAULT_DIR,
    output: OutputOption = Output.TEXT,
) -> None:
    """Where a pod was placed and why, or what it waits for."""
    namespace, name = _name("pod", namespace, name)
    address = scheduler_address(directory, scheduler)
    answer = scheduler_at(address, ca, token_file, server_name).pod(namespace, name)
    _print(answer, output, pod_text(answer, time.time()))


@app.command()
def gang(
    name: Annotated[str, typer.Argument(metavar="[NAMESPACE/]NAME", help="The gang, as its PodGroup is named.")],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Its namespace.")] = "default",
    scheduler: SchedulerOption = "",
    ca: CaOption = None,
    token_file: TokenOption = None,
    server_name: ServerNameOption = "",
    directory: DirOption = DEFAULT_DIR,
    output: OutputOption = Output.TEXT,
) -> None:
    """How many members of a gang have a node, and why the others have not."""
    namespace, name = _name("gang", namespace, name)
    address = scheduler_address(directory, scheduler)
    answer = scheduler_at(address, ca, token_file, server_name).gang(namespace, name)
    _print(answer, output, gang_text(answer, time.time()))


@app.command()
def limit(
    knob: Annotated[str, typer.Argument(help="A control file such as cpu.cfs_quota_us; all where left out.")] = "",
    pods: Annotated[bool, typer.Option("--pods", help="Also the limits of single pods and containers.")] = False,
    of: NodeOption = "",
    agent: AgentOption = "",
    directory: DirOption = DEFAULT_DIR,
    output: OutputOption = Output.TEXT,
) -> None:
    """The limits on best-effort work: the terms, their sum, and what the kernel holds at this moment."""
    from cli.diagnostics import AgentDiagnostics

    address = _given("agent", agent) or _agent(directory, of)
    answers = AgentDiagnostics(address).limits(knob, pods=pods)
    if knob and not answers:
        raise ConfigurationFault(f"limit {knob}", "the agent keeps no such limit", "leave it out to see all")
    _print(answers, output, limits_text(answers) + _also(directory, agent or of, "--node "))


@app.command()
def evictions(
    of: NodeOption = "",
    agent: AgentOption = "",
    directory: DirOption = DEFAULT_DIR,
    output: OutputOption = Output.TEXT,
) -> None:
    """What is missing by each rule that evicts, which pods are on the way out, and which went and why."""
    from cli.diagnostics import AgentDiagnostics

    address = _given("agent", agent) or _agent(directory, of)
    answer = AgentDiagnostics(address).evictions()
    _print(answer, output, evictions_text(answer, time.time()) + _also(directory, agent or of, "--node "))


def evictions_text(answer: EvictionsAnswer, now: float) -> str:
    """Each rule's need with its terms, then the pods."""
    pending = [f"pod {one.pod_uid} is on its way out, {_when(one, now)}" for one in answer.pending]
    parts = [
        explain.text(answer.needs) or "no rule that evicts is on, or nothing was measured yet",
        "\n".join(pending) or "no pod is on its way out",
        explain.text(answer.past) or "no pod was evicted since the agent started",
    ]
    return "\n\n".join(parts)


def _when(one: PendingAnswer, now: float) -> str:
    if one.notified_until_seconds is not None:
        return f"told {now - one.since_seconds:.0f} s ago, evicted in {max(one.notified_until_seconds - now, 0):.0f} s"
    return f"evicted {now - one.since_seconds:.0f} s ago, counted as gone for {max(one.until_seconds - now, 0):.0f} s"


def node_text(answer: NodeAnswer, now: float, *, everything: bool = False) -> str:
    """The node's usage as a small table, then each decision with its terms."""
    age = f"{max(0.0, now - answer.observed_at_seconds):.1f} s ago" if answer.observed_at_seconds else "never"
    rows = (
        ("capacity", answer.capacity),
        ("used", answer.usage),
        ("  online", answer.online),
        ("  best effort", answer.best_effort),
        ("  system", answer.system),
        *((f"  {name}", usage) for name, usage in answer.host_applications.items()),
    )
    asked = format_millis(answer.best_effort_request_millis)
    limit = answer.best_effort_limit_millis
    held = "no known limit" if limit is None else f"{format_millis(limit)} at most"
    woken = {cause: count for cause, count in sorted(answer.wakes.items()) if count}
    state = [
        f"node {answer.node}  {answer.ready_reason or 'not judged yet'}  observed {age}",
        *([f"  {answer.ready_message}"] if answer.ready_message else []),
        *(_usage_row(name, usage) for name, usage in rows),
        f"  best-effort CPU: {held} now, its pods asked for {asked}",
        f"  agent {answer.agent_version}: {answer.ticks} ticks, {answer.late_ticks} late; "
        f"brake {answer.brake_mechanism or 'none'}, {answer.brake_cuts} cuts; "
        f"link to the scheduler {'up' if answer.link_connected else 'down'}",
        *([f"  early ticks: {', '.join(f'{n} by {what}' for what, n in woken.items())}"] if woken else []),
        f"  cgroups {answer.cgroups or 'unknown'}",
    ]
    shown = answer.reclaimable if everything else telling(answer.reclaimable)
    left = len(answer.reclaimable) - len(shown)
    more = f"\n\n{left} more decisions with --all" if left else ""
    return "\n".join(state) + "\n\n" + (explain.text(shown) or "nothing has been computed yet") + more


def telling(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Without what says nothing of its own: single zones, predictions, empty mid, and published as computed."""
    decisions = tuple(decisions)
    lent = {d.name: d.value for d in decisions if d.policy != explain.OFFERED and _ZONE not in d.subject}
    single = len({d.subject for d in decisions if _ZONE in d.subject}) == 1
    return tuple(
        d
        for d in decisions
        if d.name.startswith("kubernetes.io/")
        and not (_ZONE in d.subject and single)
        and not (d.name in (MID_CPU, MID_MEMORY) and d.value == 0)
        and not (d.policy == explain.OFFERED and d.value == lent.get(d.name))
    )


def pod_text(answer: PodAnswer, now: float) -> str:
    """Where the pod is, its gang, its place in the queue, and the decision with its terms and its time."""
    head = [f"pod {answer.namespace}/{answer.name}  {f'on node {answer.node}' if answer.node else 'waiting'}"]
    if answer.gang:
        head.append(f"  member of gang {answer.gang}")
    if answer.nominated_node:
        head.append(f"  room is being made for it on node {answer.nominated_node}")
    head += [f"  {text}" for text in answer.unserved]
    scores = f"\n\n{_scores(answer.scored)}" if answer.scored else ""
    return "\n".join([*head, *_waiting(answer)]) + "\n\n" + _reasons(answer, now) + scores


def _scores(scored: Scored) -> str:
    """One row a score: weight × points on the chosen node, and on the next best where there is one."""
    found = scored.terms
    columns = [
        ["scores", *(term.name for term in found), "= total"],
        _points(scored.node, [(term.weight, term.chosen) for term in found]),
    ]
    if scored.runner_up:
        columns.append(_points(scored.runner_up, [(term.weight, term.runner_up) for term in found]))
    widths = [max(map(len, column)) for column in columns]
    told = zip(*columns, strict=True)
    return "\n".join(
        "  ".join((name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))))
        for name, *cells in told
    )


def _points(node: str, points: Sequence[tuple[int, int]]) -> list[str]:
    """A node's column: each weight with its points, and the sum."""
    total = sum(weight * number for weight, number in points)
    return [node, *(f"{weight} × {number}" for weight, number in points), str(total)]


def gang_text(answer: GangExplained, now: float) -> str:
    """How many members have a node, the gang's place in the queue, and the decision with its terms and its time."""
    gang = answer.gang
    head = [
        f"gang {gang.namespace}/{gang.name}  {gang.scheduled} of {gang.members} members have a node, "
        f"{gang.min_member} are needed at once",
        *([f"  {gang.problem}"] if gang.problem else []),
        *(f"  room is being made for {pod} on node {node}" for pod, node in sorted(answer.nominated_nodes.items())),
    ]
    return "\n".join([*head, *_waiting(answer)]) + "\n\n" + _reasons(answer, now)


def _waiting(answer: PodAnswer | GangExplained) -> list[str]:
    """What is said of one that waits, nothing of any other."""
    told = [f"  number {answer.queue_position} in the queue"] if answer.queue_position else []
    said = answer.decision.detail if answer.decision else ""
    if answer.message and answer.message not in said:  # the record below ends with its words
        told.append(f"  {answer.message}")
    return [*told, *([f"  nearest fit: {answer.nearest}"] if answer.nearest else [])]


def _reasons(answer: PodAnswer | GangExplained, now: float) -> str:
    known = [decision for decision in (answer.decision, answer.preemption) if decision is not None]
    return "\n\n".join(_dated(decision, now) for decision in known) or "no decision about it is known"


def _dated(decision: Decision, now: float) -> str:
    """What was found at the last attempt need not hold any more, so its time stands beside it."""
    told = explain.lines(decision)
    if decision.at_seconds:
        at = datetime.fromtimestamp(decision.at_seconds, UTC)
        told.append(f"  decided at {at:%Y-%m-%dT%H:%M:%SZ}, {max(now - decision.at_seconds, 0):.0f} s ago")
    return "\n".join(told)


def limits_text(answers: tuple[LimitAnswer, ...]) -> str:
    """Each limit with its terms, and whether the kernel holds it."""
    return "\n\n".join(_limit_text(answer) for answer in answers) or "the agent keeps no limit at this moment"


def _limit_text(answer: LimitAnswer) -> str:
    decided = answer.decided_value or answer.decision.value
    verdict = "as decided" if answer.matches else f"NOT as decided ({decided})"
    return "\n".join(
        [*explain.lines(answer.decision), f"  {answer.path}", f"  the kernel holds {answer.kernel_value}: {verdict}"]
    )


def _usage_row(name: str, usage: Usage) -> str:
    return f"  {name:<14} cpu {format_millis(usage.cpu_millis):>8}   memory {format_bytes(usage.memory_bytes):>12}"


def _name(kind: str, namespace: str, name: str) -> tuple[str, str]:
    """(namespace, name) of `NAME` or `NAMESPACE/NAME`."""
    parts = name.split("/")
    if len(parts) > 2 or "" in parts:
        raise ConfigurationFault(f"{kind} {name}", f"is not the name of a {kind}", "write NAME or NAMESPACE/NAME")
    return (namespace, name) if len(parts) == 1 else (parts[0], parts[1])


def scheduler_address(directory: Path, given: str) -> str:
    """The address that was given, else that of the cluster in `directory`. Raises ConfigurationFault."""
    return _given("scheduler", given) or _endpoint(directory, "scheduler_grpc")


def _given(option: str, address: str) -> str:
    """The address where one was given, empty otherwise. Raises ConfigurationFault where it can be none."""
    host, _, port = address.rpartition(":")
    local = option == "agent" and address.startswith("unix:")
    if address and not local and not (host and port.isdecimal() and 0 < int(port) < 1 << 16):
        fix = "or unix:PATH" if option == "agent" else ""
        raise ConfigurationFault(f"--{option} {address}", "is not HOST:PORT", fix)
    return address


def _agent(directory: Path, node: str) -> str:
    """Where the agent of a process node answers; of the first where none is named."""
    address = read_endpoints(directory).agent_of(node)
    if not address:
        raise ConfigurationFault(str(directory), "the agent has not started yet", "try again in a moment")
    return address


def _also(directory: Path, named: str, how: str = "explain node ") -> str:
    """The process nodes that nobody asked, because none was named, and `how` to name one."""
    if named:
        return ""  # and in an agent's image there is nothing of `local` to read a run directory with
    others = read_endpoints(directory).nodes[1:]
    told = ", ".join(f"{other.name} ({how}{other.name})" for other in others)
    return f"\n\nalso: {told}" if told else ""


def _endpoint(directory: Path, field: str) -> str:
    address = getattr(read_endpoints(directory), field)
    if not address:
        program = field.partition("_")[0]
        raise ConfigurationFault(str(directory), f"the {program} has not started yet", "try again in a moment")
    return str(address)


def _kubeconfig(directory: Path) -> Path:
    return Path(_endpoint(directory, "kubeconfig"))


def _first_node(directory: Path) -> str:
    return _endpoint(directory, "node")


def _lending(kubeconfig: Path, node: str, *, answers: bool | None = None) -> Lending:
    """What the cluster itself says. Raises ConfigurationFault without a node's name."""
    from cli import lending

    if not node:
        raise ConfigurationFault("explain node", "the cluster is asked about one node", "give its name")
    found = lending.account_of(kubeconfig, node, answers=answers)
    return lending_of(found, time.time(), lending.DEGRADE_SECONDS)


def _lending_line(kubeconfig: Path, node: str) -> str:
    """An agent that answers is worth hearing even where the API server is not."""
    try:
        return f"{_lending(kubeconfig, node, answers=True).text}\n\n"
    except Fault as fault:
        return f"{fault}\n\n"


def _print(answer: object, output: Output, text: str) -> None:
    if output is Output.JSON:
        text = msgspec.json.format(msgspec.json.encode(answer), indent=2).decode()
    typer.echo(visible(text))


def visible(text: str) -> str:
    """Without what commands a terminal: an agent's words are in it, and whoever has its token chooses them."""
    return "".join(each if each.isprintable() or each in "\n\t" else json.dumps(each)[1:-1] for each in text)
