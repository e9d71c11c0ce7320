"""`sublet simulate`: objects in, decisions out, by the very code the agent runs. Nothing is asked of a cluster."""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from agent.core.reclaimable import Facts, lending
from cli.lendingtable import Simulated, table
from cli.manifests import Given, Manifests, placed, read
from kube.dialects import nodemetric, nodesettings, topology, upstream
from kube.dialects.nodesettings import Sources
from model.decision import Decision
from model.fault import ConfigurationFault
from model.nodesettings import NodeSettings

app = typer.Typer(no_args_is_help=True, help="Decide on objects from files, without a cluster.")

CONFIG_MAP = "slo-controller-config"


class Output(StrEnum):
    """How the decisions are printed."""

    TABLE = "table"
    JSON = "json"


class TermOut(msgspec.Struct, frozen=True):
    """One signed part of a value."""

    name: str
    value: int


class AmountOut(msgspec.Struct, frozen=True):
    """One resource: milli-CPU or bytes, and the terms that sum to it."""

    value: int
    unit: str
    terms: list[TermOut]
    policy: str


class ZoneOut(msgspec.Struct, frozen=True):
    """One NUMA zone; `prepared` is what is written to its NodeResourceTopology row."""

    name: str
    resources: dict[str, AmountOut]
    prepared: dict[str, int]


class NodeOut(msgspec.Struct, frozen=True):
    """One Node; `degraded` says why nothing is lent, `prepared` is empty when the node's keys are to be removed."""

    node: str
    degraded: str | None
    resources: dict[str, AmountOut]
    zones: list[ZoneOut]
    prepared: dict[str, int]


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
    output: Annotated[Output, typer.Option("-o", "--output", help="For people, or for programs.")] = Output.TABLE,
) -> None:
    """What each Node may lend, from Node, Pod, NodeMetric, NodeSLO, ConfigMap and NodeResourceTopology objects.

    The ConfigMap is the one named slo-controller-config. docs/simulate.md describes the JSON.
    """
    at = unix_seconds(now) if now else time.time()
    found = read(files)
    if not found.of("Node"):
        where = ", ".join(map(str, files))
        raise ConfigurationFault(where, "no Node is given", "add one, as kubectl get node -o yaml prints it")
    decided = simulate(found, at)
    for note in notes(found):
        print(f"note: {note}", file=sys.stderr)
    if output is Output.JSON:
        # Not by msgspec, which has no integers beyond 64 bits.
        print(json.dumps(msgspec.to_builtins([node_out(item) for item in decided]), indent=2))
        return
    print("\n\n".join(table(item) for item in decided))


def simulate(found: Manifests, now: float) -> list[Simulated]:
    """Each Node in the order given, with what it may lend at Unix time `now`. Raises ConfigurationFault."""
    config_map = _config_map(found)
    pods: dict[str, list[Given]] = defaultdict(list)
    for given in found.of("Pod"):
        pods[given.object.spec.node_name].append(given)
    return [_simulated(found, given, pods[given.object.metadata.name], config_map, now) for given in found.of("Node")]


def notes(found: Manifests) -> list[str]:
    """What of the input counts for nothing, in words."""
    nodes = {given.object.metadata.name for given in found.of("Node")}
    stray = sum(given.object.spec.node_name not in nodes for given in found.of("Pod"))
    told = [f"objects of other kinds are not looked at: {', '.join(sorted(found.skipped))}"] if found.skipped else []
    return told + ([f"Pods without spec.nodeName of a given Node, which do not count: {stray}"] if stray else [])


def node_out(item: Simulated) -> NodeOut:
    """The documented JSON."""
    lent = item.lent
    return NodeOut(
        item.node.name,
        lent.degraded.value if lent.degraded else None,
        _amounts(lent.reclaimable),
        [ZoneOut(zone.name, _amounts(zone.decisions), _integers(zone.prepared)) for zone in lent.zones],
        _integers(lent.prepared),
    )


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


def _config_map(found: Manifests) -> Given | None:
    given = [item for item in found.of("ConfigMap") if item.object.metadata.name == CONFIG_MAP]
    if len(given) > 1:
        places = " and ".join(f"{item.label} ({item.where})" for item in given)
        raise ConfigurationFault(places, "are two settings for one cluster", "give the one that Koordinator reads")
    return given[0] if given else None


def _simulated(found: Manifests, given: Given, pods: list[Given], config_map: Given | None, now: float) -> Simulated:
    name = given.object.metadata.name
    metric, slo, nrt = (found.named(kind, name) for kind in ("NodeMetric", "NodeSLO", "NodeResourceTopology"))
    try:
        node = upstream.node(given.object)
        sources = Sources(node, *map(_object, (config_map, slo, metric)))
        documents, faults = nodesettings.read(sources)
        if faults:
            raise faults[0]
        facts = Facts(
            node=node,
            pods=tuple(upstream.pod(item.object) for item in pods),
            metric=nodemetric.node_metric(metric.object) if metric else None,
            now=now,
            zones=topology.zones(nrt.object) if nrt else (),
            cpu=topology.cpu_basics(nrt.object) if nrt else None,
            colocation=documents.node,
        )
    except ConfigurationFault as fault:
        raise placed(fault, given, config_map, metric, slo, nrt, *pods) from fault
    settings = nodesettings.node_settings(documents, NodeSettings())
    return Simulated(node, facts, settings.colocation, lending(facts, settings.colocation, settings.normalization))


def _object(given: Given | None) -> Any:
    return given.object if given else None


def _amounts(decisions: Iterable[Decision]) -> dict[str, AmountOut]:
    return {
        d.name: AmountOut(d.value, d.unit.value, [TermOut(term.name, term.value) for term in d.terms], d.policy)
        for d in decisions
    }


def _integers(decisions: Iterable[Decision]) -> dict[str, int]:
    return {decision.name: decision.value for decision in decisions}
