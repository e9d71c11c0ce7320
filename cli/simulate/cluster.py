"""`sublet simulate cluster`: where pods would go, who would go for them, and why the others wait."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from cli.formats import TableFormat, TableOption
from cli.simulate.manifests import Manifests, read
from cli.simulate.node import unix_seconds
from cli.tables import aligned
from kube.dialects.queues import elastic_quota
from model.fault import ConfigurationFault
from view.cluster_outcome import Outcome, tables

_QUEUES = {"ElasticQuotaProfile"}


def simulate_cluster(
    files: Annotated[
        list[Path],
        typer.Option(
            "-f", "--filename", metavar="FILE", help="YAML or JSON, a folder of them, or - for standard input; repeat."
        ),
    ],
    now: Annotated[
        str, typer.Option(metavar="TIME", help="Decide at this time, RFC 3339 or Unix seconds; now if left out.")
    ] = "",
    settings: Annotated[
        Path | None, typer.Option("--settings", metavar="FILE", help="The scheduler's settings; its defaults without.")
    ] = None,
    settle: Annotated[
        bool, typer.Option("--until-settled", help="Let victims go and place who waited for them, until nothing moves.")
    ] = False,
    cycles: Annotated[
        int | None,
        typer.Option("--cycles", min=1, max=100_000, metavar="N", help="Take N turns, in each one head of a queue."),
    ] = None,
    what_if: Annotated[
        str,
        typer.Option("--what-if", metavar="nodes=N[,like=NODE]", help="What would run with N more nodes of a kind."),
    ] = "",
    output: TableOption = TableFormat.TABLE,
) -> None:
    """Where each waiting pod goes, who is evicted for it, and why the others wait.

    From Node, Pod, PodGroup, Queue, ElasticQuota, PriorityClass, PodDisruptionBudget, NodeMetric and other objects that
    a scheduler looks at; without a Node by quota alone. docs/simulate-cluster.md describes the JSON.
    """
    from cli.simulate.cluster_more import more_nodes
    from cli.simulate.cluster_objects import CLUSTER_KINDS, QUEUES, unmet
    from cli.simulate.cluster_run import Extent, scheduled_by_others
    from cli.simulate.cluster_settings import configured
    from cli.simulate.cluster_what_if import decide_with
    from cli.simulate.queue_notes import queue_notes
    from scheduler.settings import load

    at = unix_seconds(now) if now else time.time()
    chosen = load(settings)
    more = more_nodes(what_if) if what_if else None
    found = read(files, CLUSTER_KINDS)
    if not any(found.of(kind) for kind in ("Pod", *QUEUES)):
        where = ", ".join(map(str, files))
        fix = "add Pods, as kubectl get pods -A -o yaml prints them, or queues"
        raise ConfigurationFault(where, "neither a Pod nor a queue is given", fix)
    outcome = decide_with(found, at, chosen, Extent(settle, cycles), more)
    others = foreign(len(scheduled_by_others(found, chosen)))
    for note in [
        *skipped(found),
        *unheard(found),
        *unmet(found),
        *queue_notes(found),
        *others,
        *configured(chosen, found)[1],
    ]:
        print(f"note: {note}", file=sys.stderr)
    print(json.dumps(msgspec.to_builtins(outcome), indent=2) if output is TableFormat.JSON else _text(outcome))


def unheard(found: Manifests) -> list[str]:
    """What of quotas is not acted on, in words."""
    told = (elastic_quota.unheard(item.object.metadata) for item in found.of(elastic_quota.KIND))
    return [text for text in told if text]


def skipped(found: Manifests) -> list[str]:
    """What of the input counts for nothing, in words."""
    queues, others = sorted(found.skipped & _QUEUES), sorted(found.skipped - _QUEUES)
    told = [f"queues of these kinds do not count yet: {', '.join(queues)}"] if queues else []
    return told + ([f"objects of other kinds are not looked at: {', '.join(others)}"] if others else [])


def foreign(pods: int) -> list[str]:
    return [f"Pods of another spec.schedulerName, which are not placed: {pods}"] if pods else []


def _text(outcome: Outcome) -> str:
    """A block a kind of row; a kind without rows has none."""
    blocks = ([table.title, *(f"  {line}" for line in aligned([table.head, *table.rows]))] for table in tables(outcome))
    return "\n\n".join("\n".join(block) for block in blocks) or "no pod waits for a node"
