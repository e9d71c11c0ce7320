"""Check of a cluster before installation, from what its API server says of it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from model.finding import Finding, Severity

RIVALS = {
    "koordlet": "Koordinator's agent",
    "koord-manager": "Koordinator's manager",
    "koord-scheduler": "Koordinator's scheduler",
    "katalyst-agent": "Katalyst's agent",
    "katalyst-agent-qrm": "Katalyst's agent",
    "volcano-agent": "Volcano's agent",
    "crane-agent": "Crane's agent",
}
"""Workloads that lend the same resources, or serve the same scheduler name."""
QUEUEING = {
    "volcano-scheduler": (
        "Volcano's scheduler",
        "pods of schedulerName volcano would be placed by two",
        "leave volcano out of profiles[].names and scheduler_names",
    ),
    "volcano-controllers": (
        "Volcano's controllers",
        "its Queues and PodGroups are read only, and its Jobs left to it: their status is Volcano's",
        "",
    ),
    "kueue-controller-manager": ("Kueue", "its queues are not counted here: what names both needs room in both", ""),
    "koord-manager": (
        "Koordinator's quota controllers",
        "ElasticQuotas are read only: their status is Koordinator's",
        "",
    ),
}
"""Workloads that act on queues: what they are, what follows, and what to do."""
DEFINITIONS = (
    "clustercolocationprofiles.config.koordinator.sh",
    "nodemetrics.slo.koordinator.sh",
    "nodeslos.slo.koordinator.sh",
    "podgroups.scheduling.sigs.k8s.io",
)
_OLDEST = (1, 24)
_WHOLE = (1, 30)


class CheckedCluster(msgspec.Struct, frozen=True):
    """`version` is (major, minor); `workloads` are namespace/name of DaemonSets and Deployments; `denied` what the
    caller may not do; `nodes` counts (architecture, kernel, runtime); `foreign` nodes lend without an agent of ours.
    """

    version: tuple[int, int]
    version_text: str
    policies: bool
    workloads: tuple[str, ...] = ()
    definitions: frozenset[str] = frozenset()
    denied: tuple[str, ...] = ()
    nodes: tuple[tuple[tuple[str, str, str], int], ...] = ()
    foreign: tuple[str, ...] = ()


def findings(facts: CheckedCluster) -> tuple[Finding, ...]:
    """In the order in which an installation would meet them."""
    of_cluster = (_version(facts), *_nodes(facts), _permissions(facts), _policy(facts), _definitions(facts))
    return (*of_cluster, *_others(facts), *_queueing(facts))


def _version(facts: CheckedCluster) -> Finding:
    if facts.version < _OLDEST:
        wanted = f"{_OLDEST[0]}.{_OLDEST[1]}"
        return Finding(
            "Kubernetes", facts.version_text, "objects we write are not known", Severity.REFUSED, f"{wanted}+"
        )
    return Finding("Kubernetes", facts.version_text)


def _nodes(facts: CheckedCluster) -> Iterator[Finding]:
    for (architecture, kernel, runtime), count in facts.nodes:
        found = f"{count} x {architecture or 'unknown'}, kernel {kernel or 'unknown'}, {runtime or 'unknown'}"
        if architecture in ("amd64", "arm64"):
            yield Finding("nodes", found)
        else:
            yield Finding("nodes", found, "there is no image for them", Severity.LIMITED, "amd64 or arm64")
    if not facts.nodes:
        yield Finding("nodes", "none", "there is nothing to lend", Severity.LIMITED)


def _permissions(facts: CheckedCluster) -> Finding:
    if not facts.denied:
        return Finding("your permissions", "all that installing needs")
    effect = "`kubectl apply -k deploy/` will be refused"
    return Finding(
        "your permissions", f"not {', '.join(facts.denied)}", effect, Severity.REFUSED, "ask for cluster-admin"
    )


def _policy(facts: CheckedCluster) -> Finding:
    if facts.policies and facts.version >= _WHOLE:
        return Finding("admission policies", "served")
    effect = "an agent's token could write to other nodes"
    return Finding("admission policies", "not served", effect, Severity.LIMITED, f"Kubernetes {_WHOLE[0]}.{_WHOLE[1]}+")


def _definitions(facts: CheckedCluster) -> Finding:
    missing = [name for name in DEFINITIONS if name not in facts.definitions]
    if not missing:
        return Finding("Koordinator's definitions", "installed, and kept")
    effect = "neither NodeMetric nor profiles nor gangs"
    fix = "kubectl create -k deploy/crds"
    return Finding("Koordinator's definitions", f"without {', '.join(missing)}", effect, Severity.LIMITED, fix)


def _others(facts: CheckedCluster) -> Iterator[Finding]:
    found = [each for each in facts.workloads if each.partition("/")[2] in RIVALS]
    if found:
        names = ", ".join(f"{RIVALS[each.partition('/')[2]]} ({each})" for each in found)
        effect = "two would lend the same resources, or place the same pods"
        yield Finding("other colocation", names, effect, Severity.REFUSED, "remove it first")
    elif facts.foreign:
        shown = ", ".join(facts.foreign[:3]) + (f" and {len(facts.foreign) - 3} more" if len(facts.foreign) > 3 else "")
        effect = "somebody else lends there, or did"
        yield Finding("other colocation", f"batch resources on {shown}", effect, Severity.REFUSED, "find out who")
    else:
        yield Finding("other colocation", "none")


def _queueing(facts: CheckedCluster) -> Iterator[Finding]:
    """Others that act on the queues that are read here; what we write is left to them."""
    found = [each for each in facts.workloads if each.partition("/")[2] in QUEUEING]
    for each in found:
        what, effect, fix = QUEUEING[each.partition("/")[2]]
        yield Finding("other queueing", f"{what} ({each})", effect, Severity.LIMITED, fix)
    if not found:
        yield Finding("other queueing", "none")
