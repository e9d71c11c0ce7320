"""`sublet up`: the embedded cluster in the foreground, until Ctrl-C."""

from __future__ import annotations

import asyncio
import ipaddress
import shutil
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.observe.layout import CgroupDriver
from cli.interrupts import ending_at_once

if TYPE_CHECKING:
    from embedded.node.machine.share import Share
    from local.choices import Choices
    from local.rundir import Endpoints


class KernelChoice(StrEnum):
    """The kernel that accounts for and limits pods; `auto` is the real kernel where this user may use it."""

    AUTO = "auto"
    REAL = "real"
    SIMULATED = "simulated"


_NODES = "The machine as nodes"
_SERVER = "API server"
_AGENT = "Agent"
_DEPLOYING = "Deploying Sublet yourself"


@ending_at_once()
def up(
    directory: Annotated[
        Path,
        typer.Option(
            "--dir",
            help="Where keys, logs and endpoints.json go, a new or empty directory; logs (of the last four runs) "
            "and learned peaks stay.",
        ),
    ] = Path("~/.sublet"),
    node_name: Annotated[
        str,
        typer.Option(
            help="The node's name, or the first part of several nodes' names; this machine's host name if left out.",
            rich_help_panel=_NODES,
        ),
    ] = "",
    process_nodes: Annotated[
        int,
        typer.Option(
            min=1,
            max=4,
            metavar="N",
            help="Divide this machine into N nodes NAME-1, NAME-2, ...: each has its part of CPUs and memory, its own "
            "cgroups and its own agent.",
            rich_help_panel=_NODES,
        ),
    ] = 1,
    no_process_node: Annotated[
        bool,
        typer.Option("--no-process-node", help="No node that runs pods; for simulated ones.", rich_help_panel=_NODES),
    ] = False,
    node_cpu: Annotated[
        str,
        typer.Option(
            metavar="QUANTITY",
            help="CPU that each node says it has, such as 4, for a walk-through on a small machine. What the machine "
            "does not have counts as in use and is never lent; since the safety margin is a part of the claim, a node "
            "that claims much more than the machine has lends nothing.",
            rich_help_panel=_NODES,
        ),
    ] = "",
    node_memory: Annotated[
        str,
        typer.Option(
            metavar="QUANTITY",
            help="Memory that each node says it has, such as 16Gi; pods get and are lent what is there.",
            rich_help_panel=_NODES,
        ),
    ] = "",
    kernel: Annotated[
        KernelChoice,
        typer.Option(
            help="Who accounts for and limits pods: this machine's kernel (needs root and writable cgroups), or a "
            "simulated one, where pods are real processes of yours and limits are imitated; auto takes the real one "
            "where it can.",
            rich_help_panel=_NODES,
        ),
    ] = KernelChoice.AUTO,
    cgroup_driver: Annotated[
        CgroupDriver,
        typer.Option(help="How cgroups are named: plainly, or as systemd does.", rich_help_panel=_NODES),
    ] = CgroupDriver.CGROUPFS,
    simulated_nodes: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Also N nodes that exist in the API only; pods on them live as a model says.",
            rich_help_panel=_NODES,
        ),
    ] = 0,
    resources: Annotated[
        list[str] | None,
        typer.Option(
            "--resource",
            metavar="NAME=QUANTITY",
            help="What each simulated node has, such as nvidia.com/gpu=8, cpu=96 (32 without) or memory=1Ti (128Gi); "
            "repeat.",
            rich_help_panel=_NODES,
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="K=V[,V…]",
            help="A label of each simulated node, such as pool=a100; several values are given to the nodes in turn, so "
            "that they form pools; repeat.",
            rich_help_panel=_NODES,
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What runs on simulated nodes: CSV of machine,t_s,cpu_pct,mem_pct, plain or gzip.",
            rich_help_panel=_NODES,
        ),
    ] = None,
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="The API server's address; port 0 is any free one. Beyond loopback, whoever has the token runs "
            "commands here.",
            rich_help_panel=_SERVER,
        ),
    ] = "127.0.0.1:0",
    apiserver: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Start a real kube-apiserver and etcd in place of the embedded server (needs root): the folder with "
            "them, and kube-controller-manager, or the program kube-apiserver. They and their state end with `up`.",
            rich_help_panel=_SERVER,
        ),
    ] = None,
    join: Annotated[
        Path | None,
        typer.Option(
            metavar="KUBECONFIG",
            help="Start no API server and join the one of this kubeconfig, as its administrator: nodes, and without "
            "--bare Sublet, for a test cluster's control plane without other nodes. Needs root.",
            rich_help_panel=_SERVER,
        ),
    ] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep all objects there; without it they end with this command.",
            rich_help_panel=_SERVER,
        ),
    ] = None,
    agent_settings: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The agent's settings.", rich_help_panel=_AGENT)
    ] = None,
    agent_journal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the agent writes each tick, for `sublet replay`; FILE-1, FILE-2, ... of several agents.",
            rich_help_panel=_AGENT,
        ),
    ] = None,
    scheduler_settings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The scheduler's settings, beside those of this command.", rich_help_panel=_SERVER
        ),
    ] = None,
    bare: Annotated[
        bool,
        typer.Option(
            "--bare",
            help="A cluster without Sublet: API server, nodes and a scheduler for everybody's pods; for `kubectl apply "
            "-k deploy/`.",
            rich_help_panel=_DEPLOYING,
        ),
    ] = False,
    images: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Root file systems for pods, as `make images` leaves them (needs root); all other images stay names.",
            rich_help_panel=_DEPLOYING,
        ),
    ] = None,
    audit_log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Every request and who allowed it, a JSON line each.", rich_help_panel=_DEPLOYING
        ),
    ] = None,
) -> int:
    """Start a whole cluster here: API server, node, scheduler and agent, for kubectl to talk to.

    Ctrl-C stops everything and leaves no cgroup and no process in one. As root pods are limited by this machine's
    kernel; as an ordinary user a simulated kernel takes its place, which a pod's process can escape that means to.
    """
    # Imported here: an agent's image has no cryptography, and needs none.
    from embedded.node.machine.facts import share_of_machine
    from embedded.node.machine.share import Claim
    from embedded.node.settings import Kernel
    from local.choices import Choices, usable_kernel

    wanted = None if kernel is KernelChoice.AUTO else Kernel(kernel.value)
    found, why = usable_kernel(wanted, "sublet up") if not no_process_node else (Kernel.SIMULATED, "")
    if why:
        typer.echo(simulated_text(why))
    more = {"node_name": node_name} if node_name else {}
    choices = Choices(
        **more,
        agent_settings=agent_settings,
        agent_journal=agent_journal,
        scheduler_settings=scheduler_settings,
        process_nodes=0 if no_process_node else process_nodes,
        claim=Claim(node_cpu, node_memory),
        kernel=found,
        cgroup_driver=cgroup_driver,
        listen=listen,
        state_dir=state_dir,
        simulated_nodes=simulated_nodes,
        simulated_resources=tuple(resources or ()),
        simulated_labels=tuple(labels or ()),
        trace=trace,
        bare=bare,
        images=images,
        audit_log=audit_log,
        join=join,
        apiserver=apiserver,
    )
    if open_to := open_text(listen):
        typer.echo(open_to)
    lends = choices.process_nodes and not (bare or agent_settings)
    if lends and (claimed := claim_text(share_of_machine(1, process_nodes, choices.claim))):
        typer.echo(claimed)
    return asyncio.run(_up(directory, choices))


async def _up(directory: Path, choices: Choices) -> int:
    from local.signals import EndingSignal
    from local.up import RunningCluster

    task = asyncio.current_task()
    assert task is not None
    ending = EndingSignal(task)
    ending.listen()
    cluster = RunningCluster(directory, choices, typer.echo)
    began = time.monotonic()
    try:
        async with cluster:
            took, command = time.monotonic() - began, called(sys.argv[0])
            typer.echo(ready_text(cluster.endpoints, took, command, choices.simulated_nodes, bare=choices.bare))
            await cluster.wait()
    except asyncio.CancelledError:
        if ending.signal is None:
            raise
    typer.echo(f"stopped; logs and learned peaks stay in {cluster.directory}")
    return 0


def simulated_text(why: str) -> str:
    """One line: what takes the kernel's place, and why."""
    return f"simulated kernel ({why}): pods are real processes of yours, their limits and counters are imitated"


def claim_text(share: Share) -> str:
    """One line where nodes say that they have more than there is, which is why they lend less; else empty."""
    if not share.overstated:
        return ""
    says = _amounts(share.claimed_cpu_millis, share.claimed_memory_bytes)
    has = _amounts(share.cpu_millis, share.memory_bytes)
    told = f"each node says {says} and has {has} here: the rest counts as in use, so that less is lent, or nothing"
    return f"{told} (for a walk-through --agent-settings examples/guides/batch/room.yaml lends all the same)"


def _amounts(cpu_millis: int, memory_bytes: int) -> str:
    return f"{cpu_millis / 1000:g} CPU{'' if cpu_millis == 1000 else 's'}, {memory_bytes / (1 << 30):.1f} GiB"


def open_text(listen: str) -> str:
    """One line where other machines may reach the API server at `listen` (HOST:PORT); empty on loopback."""
    host = listen.rpartition(":")[0].strip("[]")
    try:
        own = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        own = False
    told = "other machines may reach the API server; whoever has a token of this cluster runs commands on this one"
    return "" if own else f"--listen {listen}: {told}"


def called(program: str) -> str:
    """How to call this command again, from what `sys.argv[0]` says: by its path where its name alone finds another."""
    name = Path(program).name
    if name == "__main__.py":
        return f"{sys.executable} -m cli"
    return name if name == program or shutil.which(name) == program else program


def ready_text(
    endpoints: Endpoints, took_seconds: float, command: str, simulated: int = 0, *, bare: bool = False
) -> str:
    """What a person needs to know once everything runs; `command` is how they call this program.

    `simulated` is how many nodes exist in the API only.
    """
    names = [each.name for each in endpoints.nodes]
    more = _of_process_nodes(endpoints, names, command) if names else _of_simulated(endpoints, command, simulated)
    more = (f"{command} preflight", "kubectl create -k deploy/crds", "kubectl apply -k deploy") if bare else more
    typed = "\n  ".join((f"export KUBECONFIG={endpoints.kubeconfig}", "kubectl get nodes,pods -A -o wide", *more))
    return f"""\
ready after {took_seconds:.1f} s: {_nodes_text(names, simulated)}, API server {endpoints.api}

  {typed}

logs in {endpoints.directory}/logs, addresses in {endpoints.directory}/endpoints.json; Ctrl-C stops everything"""


def _nodes_text(names: list[str], simulated: int) -> str:
    own = f"{'node' if len(names) == 1 else 'nodes'} {', '.join(names)}" if names else ""
    modelled = f"{simulated} simulated {'node' if simulated == 1 else 'nodes'}" if simulated else ""
    return " and ".join(part for part in (own, modelled) if part) or "no node"


def _of_process_nodes(endpoints: Endpoints, names: list[str], command: str) -> tuple[str, ...]:
    """What to type where pods run."""
    which = f" {names[-1]}" if len(names) > 1 else ""
    return (
        "kubectl apply -f examples/quickstart/",
        f"{command} explain node{which}{_dir(endpoints)}",
        f"{command} explain limit{f' --node{which}' if which else ''}{_dir(endpoints)}",
    )


def _of_simulated(endpoints: Endpoints, command: str, simulated: int) -> tuple[str, ...]:
    """What to type where nothing but a model runs: no agent can be asked there, the cluster can."""
    if not simulated:
        return ()
    return (
        f"{command} top{_dir(endpoints)}",
        f"{command} explain node sim-0 --kubeconfig {endpoints.kubeconfig}",
    )


def _dir(endpoints: Endpoints) -> str:
    default = Path("~/.sublet").expanduser().absolute()
    return "" if Path(endpoints.directory) == default else f" --dir {endpoints.directory}"
