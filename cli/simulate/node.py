"""`sublet simulate`: objects in, decisions out, by the very code the agent runs. Nothing is asked of a cluster."""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from agent.core.observe import assumed
from agent.core.observe.layout import Layout
from agent.ports import ClusterFacts
from cli.formats import TableFormat, TableOption
from cli.simulate.manifests import GivenObject, Manifests, placed, read
from cli.simulate.node_decisions import simulated
from cli.tables import row_lines
from kube.dialects.koordinator import cputopology, nodemetric, nodesettings, topology
from kube.dialects.koordinator.nodesettings import Sources
from kube.dialects.upstream import core_objects
from model.fault import ConfigurationFault
from model.nodemetric import NodeMetric
from model.nodesettings import NodeSettings
from model.strategy import NormalizationStrategy
from view.lending_rows import lending_rows, measured_text
from view.limit_rows import limit_rows
from view.simulated_node import NodeDecisions
from view.simulated_node_json import node_out
from view.table import TableRow

app = typer.Typer(no_args_is_help=True, help="Decide on objects from files, without a cluster.")

CONFIG_MAP = "slo-controller-config"
_DEFAULTS = NodeSettings(normalization=NormalizationStrategy(largest_annotated_ratio=5.0))
"""Whoever gives a Node in a file stands by its annotations; an agent believes no ratio there unless it is told to."""


@app.command("node")
def simulate_node(
    files: Annotated[
        list[Path],
        typer.Option(
            "-f", "--filename", metavar="FILE", help="YAML or JSON, a folder of them, or - for standard input; repeat."
        ),
    ],
    now: Annotated[
        str, typer.Option(metavar="TIME", help="Decide at this time, RFC 3339 or Unix seconds; now if left out.")
    ] = "",
    cgroup_version: Annotated[
        int, typer.Option("--cgroup-version", min=1, max=2, help="Whose control files the limits are for.")
    ] = 2,
    output: TableOption = TableFormat.TABLE,
) -> None:
    """What each Node may lend, how best effort is limited there, and which pods are evicted.

    From Node, Pod, NodeMetric, NodeSLO, ConfigMap and NodeResourceTopology objects; the ConfigMap is the one named
    slo-controller-config. docs/simulate.md describes the JSON.
    """
    at = unix_seconds(now) if now else time.time()
    found = read(files)
    if not found.of("Node"):
        where = ", ".join(map(str, files))
        raise ConfigurationFault(where, "no Node is given", "add one, as kubectl get node -o yaml prints it")
    decided = simulate(found, at, Layout(version=cgroup_version))
    for note in notes(found):
        print(f"note: {note}", file=sys.stderr)
    if output is TableFormat.JSON:
        # Not by msgspec, which has no integers beyond 64 bits.
        print(json.dumps(msgspec.to_builtins([node_out(item) for item in decided]), indent=2))
        return
    print("\n\n".join(_text(item) for item in decided))


def _text(item: NodeDecisions) -> str:
    at = datetime.fromtimestamp(item.at_seconds, UTC)
    head = f"node {item.node}, at {at:%Y-%m-%dT%H:%M:%SZ}, {measured_text(item)}"
    return "\n".join([head, "", *row_lines((*lending_rows(item), TableRow(""), *limit_rows(item)))])


def simulate(found: Manifests, now: float, layout: Layout) -> list[NodeDecisions]:
    """Each Node in the order given, with what is decided at Unix time `now`. Raises ConfigurationFault."""
    config_map = _config_map(found)
    pods: dict[str, list[GivenObject]] = defaultdict(list)
    for given in found.of("Pod"):
        pods[given.object.spec.node_name].append(given)
    known = (_known(found, given, pods[given.object.metadata.name], config_map) for given in found.of("Node"))
    return [simulated(facts, metric, layout, now) for facts, metric in known]


def notes(found: Manifests) -> list[str]:
    """What of the input counts for nothing, in words."""
    nodes = {given.object.metadata.name for given in found.of("Node")}
    stray = sum(given.object.spec.node_name not in nodes for given in found.of("Pod"))
    told = [f"objects of other kinds are not looked at: {', '.join(sorted(found.skipped))}"] if found.skipped else []
    return told + ([f"Pods without spec.nodeName of a given Node, which do not count: {stray}"] if stray else [])


def unix_seconds(text: str) -> float:
    """Raises ConfigurationFault where the text is no time that a calendar has."""
    fix = "write 2026-01-02T03:04:05Z or Unix seconds"
    try:
        found = datetime.fromtimestamp(float(text), UTC) if _is_number(text) else datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.astimezone(UTC).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise ConfigurationFault(f"--now {text}", "is no time", fix) from error
    raise ConfigurationFault(f"--now {text}", "has no time zone", "add Z for UTC")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _config_map(found: Manifests) -> GivenObject | None:
    given = [item for item in found.of("ConfigMap") if item.object.metadata.name == CONFIG_MAP]
    if len(given) > 1:
        places = " and ".join(f"{item.label} ({item.where})" for item in given)
        raise ConfigurationFault(places, "are two settings for one cluster", "give the one that Koordinator reads")
    return given[0] if given else None


def _known(
    found: Manifests, given: GivenObject, pods: list[GivenObject], config_map: GivenObject | None
) -> tuple[ClusterFacts, NodeMetric | None]:
    """What the objects say of one node."""
    name = given.object.metadata.name
    metric, slo, nrt = (found.named(kind, name) for kind in ("NodeMetric", "NodeSLO", "NodeResourceTopology"))
    try:
        node = core_objects.node(given.object)
        sources = Sources(node, *map(_object, (config_map, slo, metric)))
        documents, faults = nodesettings.read(sources)
        if faults:
            raise faults[0]
        facts = ClusterFacts(
            node=node,
            pods=assumed.identified(core_objects.pod(item.object) for item in pods),
            settings=nodesettings.node_settings(documents, _DEFAULTS),
            colocation=documents.node,
            zones=topology.zones(nrt.object) if nrt else (),
            cpu=topology.cpu_basics(nrt.object) if nrt else None,
            processors=(cputopology.processors(nrt.object) if nrt else ()) or assumed.processors(node),
        )
        measured = nodemetric.node_metric(metric.object) if metric else None
    except ConfigurationFault as fault:
        raise placed(fault, given, config_map, metric, slo, nrt, *pods) from fault
    return facts, measured


def _object(given: GivenObject | None) -> Any:
    return given.object if given else None
