"""Taking Sublet off a cluster, step by step: each can be repeated, and none leaves more lent than before.

1 nothing is lent       the fleet's switch says observe and paused; agents withdraw what they offer
2 nothing is asked      the webhooks go, so that nobody waits for an answer that will not come
3 limits as they were   on each node an init container of the agent's own DaemonSet puts the originals back
4 nodes as they were    lent resources, condition and annotations go; what running pods hold stays, and what others lend
5 objects               NodeMetrics, NodeSLOs and NodeResourceTopologies of ours, then all parts of Sublet
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from cli.uninstall.plan import (
    LENT_RESOURCES,
    LentNode,
    Unfinished,
    cleaned,
    has_restored,
    held_by_pods,
    restores,
    restoring,
)
from kube.client import KubeClient, PatchKind, path_of
from kube.dialects.sublet.fleet import FleetMode
from model.condition import ConditionType
from model.fault import KubernetesFault

PART = "app.kubernetes.io/part-of=sublet"
_ANNOTATIONS = ("node.koordinator.sh/originExtendedAllocatable", "node.koordinator.sh/cpu-normalization-ratio")
_WEBHOOKS = "admissionregistration.k8s.io/v1"
_OWN_OBJECTS = (
    ("slo.koordinator.sh/v1alpha1/nodemetrics", "app.kubernetes.io/managed-by=sublet"),
    ("slo.koordinator.sh/v1alpha1/nodeslos", "app.kubernetes.io/managed-by=sublet"),
    # Koordinator's own carry its label as ours do, for whoever reads them; this one tells ours.
    ("topology.node.k8s.io/v1alpha1/noderesourcetopologies", PART),
)
"""What agents and the leader made."""
_NODE_METRICS = _OWN_OBJECTS[0][0]
_IN_NAMESPACE = (
    "apps/v1/daemonsets",
    "apps/v1/deployments",
    "v1/services",
    "v1/configmaps",
    "v1/serviceaccounts",
    "policy/v1/poddisruptionbudgets",
    "networking.k8s.io/v1/networkpolicies",
    "rbac.authorization.k8s.io/v1/rolebindings",
    "rbac.authorization.k8s.io/v1/roles",
    "monitoring.coreos.com/v1/servicemonitors",
)
_BY_NAME = (
    (
        "v1/secrets",
        ("sublet-ca", "sublet-scheduler-tls", "sublet-admission-tls", "sublet-agent-tls", "sublet-prometheus-token"),
    ),
    ("v1/configmaps", ("sublet-ca",)),
    ("coordination.k8s.io/v1/leases", ("sublet-scheduler", "sublet-admission")),
)
"""What the programs made for themselves, and the token that Prometheus was given."""
_CLUSTER_WIDE = (
    "rbac.authorization.k8s.io/v1/clusterrolebindings",
    "rbac.authorization.k8s.io/v1/clusterroles",
    f"{_WEBHOOKS}/validatingadmissionpolicybindings",
    f"{_WEBHOOKS}/validatingadmissionpolicies",
)
_EVERY_SECONDS = 1.0
_NOT_FOUND = 404


class Removal:
    """`tell` gets one line an event. Every method raises KubernetesFault where the API server refuses."""

    def __init__(
        self, client: KubeClient, namespace: str, tell: Callable[[str], None], timeout_seconds: float = 600.0
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._tell = tell
        self._timeout = timeout_seconds

    async def run(self, *, restore: bool) -> None:
        """All of it. Raises Unfinished too; then everything that was not reached is as it was."""
        await self.stop_lending()
        await self.drop_webhooks()
        if restore:
            await self.restore_limits()
        await self.clean_nodes()
        await self.drop_objects()

    async def stop_lending(self) -> None:
        body = {"data": {"mode": FleetMode.OBSERVE, "paused": "true", "canary": ""}}
        path = path_of("v1/configmaps", namespace=self._namespace, name="sublet-fleet")
        if await self._if_there(self._client.patch(path, body, PatchKind.MERGE)):
            self._tell("lending is switched off on all nodes")

    async def drop_webhooks(self) -> None:
        for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            if await self._if_there(self._client.delete(path_of(f"{_WEBHOOKS}/{kind}", name="sublet-admission"))):
                self._tell(f"{kind} sublet-admission deleted")

    async def restore_limits(self) -> None:
        """Replace every agent by one that first puts the originals back. Raises Unfinished naming the nodes that did
        not come to it."""
        path = path_of("apps/v1/daemonsets", namespace=self._namespace, name="sublet-agent")
        try:
            found = await self._client.get(path, dict)
        except KubernetesFault as fault:
            if fault.status != _NOT_FOUND:
                raise
            self._tell("no agents run: nothing to restore")
            return
        if not restores(found):
            await self._client.patch(path, restoring(found), PatchKind.JSON)
        await self._restored(path)

    async def _restored(self, path: str) -> None:
        told = ""
        deadline = asyncio.get_running_loop().time() + self._timeout
        while True:
            status = await self._rolled_out(path)
            line = f"original limits are back on {status[0]} of {status[1]} nodes"
            if line != told:
                self._tell(line)
                told = line
            if status[2]:
                return
            if asyncio.get_running_loop().time() > deadline:
                names = ", ".join([name async for name in self._not_restored()]) or "unknown"
                raise Unfinished(
                    f"not restored within {self._timeout:g} s: {names}; run this again once they are reachable, or "
                    "`sublet agent --restore` on them; with --no-restore their limits stay as they are"
                )
            await asyncio.sleep(_EVERY_SECONDS)

    async def _rolled_out(self, path: str) -> tuple[int, int, bool]:
        """(nodes done, nodes in all, whether that is all)."""
        found = await self._client.get(path, dict)
        status = found.get("status") or {}
        wanted, done = (int(status.get(key) or 0) for key in ("desiredNumberScheduled", "updatedNumberScheduled"))
        current = int(status.get("observedGeneration") or 0) >= int(found["metadata"].get("generation") or 0)
        nodes = [node async for node in self._not_restored()] if current and done == wanted else ["?"]
        done = wanted - len(nodes) if current and done == wanted else min(done, wanted)
        return done, wanted, current and not nodes

    async def _not_restored(self) -> AsyncIterator[str]:
        """Nodes whose agent has not ended its restoring with success."""
        selector = "app.kubernetes.io/name=sublet-agent"
        pods = await self._client.get(path_of("v1/pods", namespace=self._namespace), dict, labelSelector=selector)
        for pod in pods.get("items") or ():
            if not has_restored(pod):
                yield pod["spec"].get("nodeName") or pod["metadata"]["name"]

    async def clean_nodes(self) -> None:
        kept, nodes = [], await self._nodes()
        for node in nodes:
            await self._client.patch(
                path_of("v1/nodes", name=node.name, subresource="status"), cleaned(node), PatchKind.STRATEGIC
            )
            await self._client.patch(
                path_of("v1/nodes", name=node.name),
                {"metadata": {"annotations": dict.fromkeys(_ANNOTATIONS)}},
                PatchKind.MERGE,
            )
            if node.requested:
                kept.append(node.name)
        if nodes:
            noun = "node" if len(nodes) == 1 else "nodes"
            self._tell(f"lent resources, condition and annotations removed from {len(nodes)} {noun}")
        if kept:
            self._tell(
                f"pods on {', '.join(kept)} still hold lent resources: those amounts stay until you run this again"
            )

    async def _nodes(self) -> list[LentNode]:
        """Those that carry anything of ours. Without our condition, amounts on a node whose NodeMetric somebody else
        made are what that one lends."""
        pods = await self._listed("v1/pods")
        nodes = await self._listed("v1/nodes")
        others = {each["metadata"]["name"] for each in await self._listed(_NODE_METRICS) if not _made_by_us(each)}
        held = held_by_pods(pods)
        found = []
        for node in nodes:
            name, status = node["metadata"]["name"], node.get("status") or {}
            offered = {
                key: amount for key, amount in (status.get("allocatable") or {}).items() if key in LENT_RESOURCES
            }
            offered |= {key: amount for key, amount in (status.get("capacity") or {}).items() if key in LENT_RESOURCES}
            told = any(
                condition.get("type") == ConditionType.COLOCATION_READY for condition in status.get("conditions") or ()
            )
            if told or (offered and name not in others):
                found.append(LentNode(name, offered, held.get(name, {})))
        return found

    async def drop_objects(self) -> None:
        """The programs first: a scheduler that still leads makes again what is deleted. Raises Unfinished."""
        shared = await self._shared()
        if shared:
            await self._drop_parts()
        else:
            there = await self._if_there(self._client.delete(path_of("v1/namespaces", name=self._namespace)))
            await self._gone()
        for resource, selector in _OWN_OBJECTS:
            await self._drop_all(resource, selector)
        for resource in _CLUSTER_WIDE:
            await self._drop_all(resource, PART)
        if shared:
            self._tell(f"all parts of Sublet deleted; namespace {self._namespace} is kept: it has no label {PART}")
        else:
            self._tell(
                f"namespace {self._namespace} and all roles and policies of Sublet deleted"
                if there
                else f"there is no namespace {self._namespace}; nothing of Sublet is left"
            )
        self._tell("kept: custom resource definitions and PriorityClasses, since objects of yours may use them")

    async def _shared(self) -> bool:
        """Whether the namespace is there and not marked as ours: then other things may be in it."""
        try:
            found = await self._client.get(path_of("v1/namespaces", name=self._namespace), dict)
        except KubernetesFault as fault:
            if fault.status != _NOT_FOUND:
                raise
            return False
        return not _labelled(found, PART)

    async def _drop_parts(self) -> None:
        """Ours alone of a namespace; what the programs made goes after they are gone. Raises Unfinished."""
        for resource in _IN_NAMESPACE:
            await self._drop_all(resource, PART, self._namespace)
        await self._until(self._no_pods, f"pods of Sublet still run in namespace {self._namespace}: run this again")
        for resource, names in _BY_NAME:
            for name in names:
                await self._if_there(self._client.delete(path_of(resource, namespace=self._namespace, name=name)))

    async def _no_pods(self) -> bool:
        return not await self._listed("v1/pods", PART, self._namespace)

    async def _gone(self) -> None:
        async def is_gone() -> bool:
            return not await self._if_there(self._client.get(path_of("v1/namespaces", name=self._namespace), dict))

        told = f"namespace {self._namespace} is still there: kubectl describe namespace says why; then run this again"
        await self._until(is_gone, told)

    async def _until(self, done: Callable[[], Awaitable[bool]], otherwise: str) -> None:
        """Raises Unfinished with that text where it is not done in time."""
        try:
            async with asyncio.timeout(self._timeout):
                while not await done():
                    await asyncio.sleep(_EVERY_SECONDS)
        except TimeoutError:
            raise Unfinished(otherwise) from None

    async def _drop_all(self, resource: str, selector: str, namespace: str = "") -> None:
        for each in await self._listed(resource, selector, namespace):
            path = path_of(resource, namespace=namespace, name=each["metadata"]["name"])
            await self._if_there(self._client.delete(path))

    async def _listed(self, resource: str, selector: str = "", namespace: str = "") -> list[dict[str, Any]]:
        """Nothing where the server does not know the resource."""
        query = {"labelSelector": selector} if selector else {}
        try:
            return (await self._client.get(path_of(resource, namespace=namespace), dict, **query)).get("items") or []
        except KubernetesFault as fault:
            if fault.status != _NOT_FOUND:
                raise
            return []

    async def _if_there(self, request: Any) -> bool:
        """Whether there was anything to do it to."""
        try:
            await request
        except KubernetesFault as fault:
            if fault.status != _NOT_FOUND:
                raise
            return False
        return True


def _labelled(found: dict[str, Any], selector: str) -> bool:
    key, _, value = selector.partition("=")
    return (found["metadata"].get("labels") or {}).get(key) == value


def _made_by_us(found: dict[str, Any]) -> bool:
    return _labelled(found, _OWN_OBJECTS[0][1])
