"""What will work on a cluster, from what its API server says: facts first, judgements after."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from kube.client import KubeClient, path_of
from model.fault import KubernetesFault
from model.finding import Finding, Verdict

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
_DEFINITIONS = (
    "clustercolocationprofiles.config.koordinator.sh",
    "nodemetrics.slo.koordinator.sh",
    "nodeslos.slo.koordinator.sh",
    "podgroups.scheduling.sigs.k8s.io",
)
_POLICIES = "admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_NEEDED = (
    ("create", "", "namespaces"),
    ("create", "apps", "daemonsets"),
    ("create", "apps", "deployments"),
    ("create", "rbac.authorization.k8s.io", "clusterroles"),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings"),
    ("create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("create", "admissionregistration.k8s.io", "validatingadmissionpolicies"),
)
_OLDEST = (1, 24)
_WHOLE = (1, 30)


class ClusterFacts(msgspec.Struct, frozen=True):
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


class _Name(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _Name = _Name()


class _NodeInfo(msgspec.Struct, frozen=True, rename="camel"):
    architecture: str = ""
    kernel_version: str = ""
    container_runtime_version: str = ""


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    node_info: _NodeInfo = _NodeInfo()
    allocatable: dict[str, Any] = {}
    conditions: list[_Condition] = []


class _Node(msgspec.Struct, frozen=True):
    metadata: _Name = _Name()
    status: _Status = _Status()


class _Nodes(msgspec.Struct, frozen=True):
    items: list[_Node] = []


class _List(msgspec.Struct, frozen=True):
    items: list[_Named] = []


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    major: str = ""
    minor: str = ""
    git_version: str = ""


async def look(client: KubeClient) -> ClusterFacts:
    """Raises KubernetesFault where the API server cannot be asked, or refuses to say what a check needs."""
    version = await client.get("/version", _Version)
    nodes = (await client.get(path_of("v1/nodes"), _Nodes)).items
    workloads = [
        f"{each.metadata.namespace}/{each.metadata.name}"
        for kind in ("apps/v1/daemonsets", "apps/v1/deployments")
        for each in await _listed(client, kind)
    ]
    definitions = await _listed(client, "apiextensions.k8s.io/v1/customresourcedefinitions")
    kinds = Counter(_kind(node) for node in nodes)
    return ClusterFacts(
        version=(_number(version.major), _number(version.minor)),
        version_text=version.git_version,
        policies=await _served(client, _POLICIES),
        workloads=tuple(sorted(workloads)),
        definitions=frozenset(each.metadata.name for each in definitions),
        denied=tuple([wanted async for wanted in _denied(client)]),
        nodes=tuple(sorted(kinds.items())),
        foreign=tuple(sorted(node.metadata.name for node in nodes if _lent_by_others(node))),
    )


def _kind(node: _Node) -> tuple[str, str, str]:
    info = node.status.node_info
    return (info.architecture, info.kernel_version, info.container_runtime_version)


def _lent_by_others(node: _Node) -> bool:
    ours = any(condition.type == "ColocationReady" for condition in node.status.conditions)
    return "kubernetes.io/batch-cpu" in node.status.allocatable and not ours


def _number(text: str) -> int:
    """Some vendors write `30+`."""
    digits = "".join(character for character in text if character.isdecimal())
    return int(digits) if digits else 0


async def _listed(client: KubeClient, resource: str) -> list[_Named]:
    """Nothing where the server does not know the resource."""
    try:
        return (await client.get(path_of(resource), _List)).items
    except KubernetesFault as fault:
        if fault.status == 404:
            return []
        raise


async def _served(client: KubeClient, resource: str) -> bool:
    try:
        await client.get(path_of(resource), dict, limit=1)
    except KubernetesFault as fault:
        if fault.status in (403, 404):
            return fault.status == 403
        raise
    return True


async def _denied(client: KubeClient) -> Any:
    """What is needed to install, and is not allowed."""
    review = path_of("authorization.k8s.io/v1/selfsubjectaccessreviews")
    for verb, group, resource in _NEEDED:
        attributes = {"verb": verb, "group": group, "resource": resource}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = msgspec.json.decode(await client.create(review, body))
        if not answer.get("status", {}).get("allowed"):
            yield f"{verb} {resource}{'.' + group if group else ''}"


def findings(facts: ClusterFacts) -> tuple[Finding, ...]:
    """In the order in which an installation would meet them."""
    return (_version(facts), *_nodes(facts), _permissions(facts), _policy(facts), _definitions(facts), *_others(facts))


def _version(facts: ClusterFacts) -> Finding:
    if facts.version < _OLDEST:
        wanted = f"{_OLDEST[0]}.{_OLDEST[1]}"
        return Finding(
            "Kubernetes", facts.version_text, "objects we write are not known", Verdict.REFUSED, f"{wanted}+"
        )
    return Finding("Kubernetes", facts.version_text)


def _nodes(facts: ClusterFacts) -> Iterator[Finding]:
    for (architecture, kernel, runtime), count in facts.nodes:
        found = f"{count} x {architecture or 'unknown'}, kernel {kernel or 'unknown'}, {runtime or 'unknown'}"
        if architecture in ("amd64", "arm64"):
            yield Finding("nodes", found)
        else:
            yield Finding("nodes", found, "there is no image for them", Verdict.LIMITED, "amd64 or arm64")
    if not facts.nodes:
        yield Finding("nodes", "none", "there is nothing to lend", Verdict.LIMITED)


def _permissions(facts: ClusterFacts) -> Finding:
    if not facts.denied:
        return Finding("your permissions", "all that installing needs")
    effect = "`kubectl apply -k deploy/` will be refused"
    return Finding(
        "your permissions", f"not {', '.join(facts.denied)}", effect, Verdict.REFUSED, "ask for cluster-admin"
    )


def _policy(facts: ClusterFacts) -> Finding:
    if facts.policies and facts.version >= _WHOLE:
        return Finding("admission policies", "served")
    effect = "an agent's token could write to other nodes"
    return Finding("admission policies", "not served", effect, Verdict.LIMITED, f"Kubernetes {_WHOLE[0]}.{_WHOLE[1]}+")


def _definitions(facts: ClusterFacts) -> Finding:
    missing = [name for name in _DEFINITIONS if name not in facts.definitions]
    if not missing:
        return Finding("Koordinator's definitions", "installed, and kept")
    effect = "neither NodeMetric nor profiles nor gangs"
    fix = "kubectl create -k deploy/crds"
    return Finding("Koordinator's definitions", f"without {', '.join(missing)}", effect, Verdict.LIMITED, fix)


def _others(facts: ClusterFacts) -> Iterator[Finding]:
    found = [each for each in facts.workloads if each.partition("/")[2] in RIVALS]
    if found:
        names = ", ".join(f"{RIVALS[each.partition('/')[2]]} ({each})" for each in found)
        effect = "two would lend the same resources, or place the same pods"
        yield Finding("other colocation", names, effect, Verdict.REFUSED, "remove it first")
    elif facts.foreign:
        shown = ", ".join(facts.foreign[:3]) + (f" and {len(facts.foreign) - 3} more" if len(facts.foreign) > 3 else "")
        effect = "somebody else lends there, or did"
        yield Finding("other colocation", f"batch resources on {shown}", effect, Verdict.REFUSED, "find out who")
    else:
        yield Finding("other colocation", "none")


def cluster_findings(client_of: Any) -> tuple[Finding, ...]:
    """`client_of` makes the client, in the loop that uses it."""

    async def asked() -> ClusterFacts:
        async with await client_of() as client:
            return await look(client)

    return findings(asyncio.run(asked()))
