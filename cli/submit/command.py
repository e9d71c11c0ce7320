"""`sublet submit FILE`, `sublet submit -- COMMAND`: makes a TrainingJob, and follows it until it has ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
import typer.core

from cli.access import DEFAULT_DIR, DirOption, cluster_file
from cli.formats import visible
from cli.submit.manifest import CommandJob, environment, of_command, of_documents
from kube import objects
from model.fault import ConfigurationFault, KubernetesFault
from model.job.job import Framework

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
_COMMAND = "sublet.command"
_NOT_FOUND = 404


class SubmitCommand(typer.core.TyperCommand):
    """What follows `--` is a command of the user's, whatever its words look like."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keeps those words apart."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_COMMAND] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


def submit(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="One TrainingJob, YAML or JSON; - is standard input.")
    ] = None,
    name: Annotated[str, typer.Option(help="Of a command's job; default: one that begins with its program's.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Where the job is made.")] = "default",
    replicas: Annotated[int, typer.Option(min=1, help="How many pods run the command.")] = 1,
    gpus: Annotated[int, typer.Option(min=0, help="GPUs of each.")] = 0,
    cpu: Annotated[str, typer.Option(metavar="QUANTITY", help="CPUs of each.")] = "1",
    memory: Annotated[str, typer.Option(metavar="QUANTITY", help="Memory of each.")] = "1Gi",
    image: Annotated[str, typer.Option(help="In which it runs; a process node runs it as it is.")] = "python:3",
    framework: Annotated[
        Framework, typer.Option("--type", help="Whose environment variables the pods get.")
    ] = Framework.PYTORCH,
    queue: Annotated[str, typer.Option(help="Its queue.")] = "",
    priority_class: Annotated[str, typer.Option(metavar="NAME", help="PriorityClass of its pods.")] = "",
    max_retry: Annotated[int | None, typer.Option(min=0, help="It fails with so many failures.")] = None,
    env: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Once for each variable.")] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not follow it.")] = False,
    follow: Annotated[str, typer.Option(metavar="NAME", help="Follow one that was submitted before.")] = "",
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The cluster; else $KUBECONFIG, else the one of `sublet up`.")
    ] = None,
    directory: DirOption = DEFAULT_DIR,
) -> int:
    """Make a TrainingJob of a file, or of a command after `--`, and follow it; its first pod's log is printed.

    Ctrl-C leaves it running and says how to come back. Exit code 1 where it fails.
    """
    command: tuple[str, ...] = context.meta[_COMMAND]
    given = [bool(file), bool(command), bool(follow)]
    if sum(given) != 1:
        raise ConfigurationFault("submit", "takes one of FILE, -- COMMAND and --follow NAME", "see --help")
    access = cluster_file(kubeconfig, directory)
    if follow:
        return _followed(access, namespace, follow)
    if file is not None:
        document = _document(file)
        namespace = _namespace(document, namespace)
    else:
        terms = (framework, replicas, gpus, cpu, memory, queue, priority_class, max_retry, environment(env or ()))
        document = of_command(CommandJob(command, name, image, *terms))
    made = asyncio.run(_create(access, namespace, document))
    typer.echo(f"TrainingJob {namespace}/{made} submitted", err=True)
    if detach:
        _say(_come_back(namespace, made))
        return 0
    return _followed(access, namespace, made)


def _document(file: Path) -> dict[str, Any]:
    from cli.documents import documents

    return of_documents(documents(file), "standard input" if str(file) == "-" else str(file))


def _namespace(document: dict[str, Any], given: str) -> str:
    """Its own before the option's."""
    return str(document["metadata"].get("namespace") or given)


async def _create(access: Path, namespace: str, document: dict[str, Any]) -> str:
    """The name that it got."""
    from cli.submit.follow import RESOURCE
    from kube.client import KubeClient, path_of

    async with await KubeClient.connect(access, "sublet-submit") as client:
        try:
            answer = await client.create(path_of(RESOURCE, namespace=namespace), document)
        except KubernetesFault as fault:
            if fault.status != _NOT_FOUND:
                raise
            told = f"this cluster has no such kind, or no namespace {namespace}"
            fix = "kubectl create -k deploy/crds/optional/sublet, or name another namespace"
            raise ConfigurationFault("TrainingJob", told, fix) from fault
    return msgspec.json.decode(answer, type=objects.TrainingJob).metadata.name


def _followed(access: Path, namespace: str, name: str) -> int:
    from cli.submit.follow import Ended, Follower, end_line
    from kube.client import KubeClient

    async def whole() -> Ended:
        async with await KubeClient.connect(access, "sublet-submit") as client:
            return await Follower(client, namespace, name, _say, _print_log).follow()

    try:
        ended = asyncio.run(whole())
    except KeyboardInterrupt:
        _say(f"\nTrainingJob {namespace}/{name} goes on. {_come_back(namespace, name)}")
        return EXIT_INTERRUPTED
    _say(end_line(f"TrainingJob {namespace}/{name}", ended))
    return 0 if ended.succeeded else EXIT_FAILED


def _come_back(namespace: str, name: str) -> str:
    of = "" if namespace == "default" else f" -n {namespace}"
    return (
        f"Come back: sublet submit{of} --follow {name}\n"
        f"  why it waits: sublet explain job{of} {name}\n"
        f"  end it: kubectl{of} delete trainingjob {name}"
    )


def _say(line: str) -> None:
    """For people, beside the program's own output."""
    typer.echo(visible(line), err=True)


def _print_log(line: str) -> None:
    typer.echo(line)
