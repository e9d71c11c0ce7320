"""Facts of a cluster from its API server, asked before anything is installed."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import msgspec

from kube.client import KubeClient, path_of
from model.condition import ConditionType
from model.fault import KubernetesFault
from model.finding import Finding
from view.cluster_check import CheckedCluster, findings

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


async def look(client: KubeClient) -> CheckedCluster:
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
    return CheckedCluster(
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
    ours = any(condition.type == ConditionType.COLOCATION_READY for condition in node.status.conditions)
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


def cluster_findings(client_of: Any) -> tuple[Finding, ...]:
    """`client_of` makes the client, in the loop that uses it."""

    async def asked() -> CheckedCluster:
        async with await client_of() as client:
            return await look(client)

    return findings(asyncio.run(asked()))
