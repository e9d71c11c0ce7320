"""Our Node on the API server: made or adopted, kept alive, made ready and unready.

Only fields of our own are ever patched; the agent's keys in capacity and allocatable stay as they are. A node may not
change its own taints (NodeRestriction): those that follow from its conditions are the control plane's to set and take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec
import structlog

from embedded.fault import KubernetesFault
from embedded.node.machine.facts import Machine
from embedded.node.objects.pod import NodeObject
from embedded.node.ports import NodePort
from embedded.node.registration import node_object

log = structlog.get_logger()

HEARTBEAT_SECONDS = 10.0
_STATUS_EVERY_HEARTBEATS = 30
_FIRST_RETRY_SECONDS = 0.2
_LONGEST_RETRY_SECONDS = 3.0


class NodeFacts(msgspec.Struct, frozen=True):
    """What the Node says. `log_port` is where the node's server listens, `pod_cidr` where pods' addresses are from.

    An annotation that is None is taken away.
    """

    name: str
    machine: Machine
    log_port: int
    pod_cidr: str
    annotations: Mapping[str, str | None] = {}


class Registration:
    """Makes the Node, keeps it alive, and says how it fares."""

    def __init__(self, api: NodePort, facts: NodeFacts, now: Callable[[], datetime]) -> None:
        self._api = api
        self._facts = facts
        self._name = facts.name
        self._machine = facts.machine
        self._now = now
        self._health = node_object.healthy(now())

    async def register(self) -> None:
        """Returns once the Node exists with our facts; waits for an API server that is away."""
        await self._persist(self._register_once, "node not registered yet")

    async def become_ready(self) -> None:
        """Condition Ready; returns once the control plane has taken the taints away that kept pods from us.

        Waits for an API server that is away.
        """
        self._health = self._health.changed(self._now(), ready=True)
        await self._persist(self._publish, "node not ready yet")
        await self._persist(self._await_pods_welcome, "node not ready yet")

    async def become_unready(self) -> None:
        """Raises KubernetesFault."""
        self._health = self._health.changed(self._now(), ready=False)
        await self._publish()

    async def show_pressures(self, pressures: frozenset[str]) -> None:
        """Those conditions are True, the others of their kind False. Raises KubernetesFault."""
        self._health = self._health.changed(self._now(), pressures=pressures)
        await self._publish()

    async def heartbeat(self) -> None:
        """Renew the lease for ever, the status now and then; register again if the Node is gone."""
        beats = 0
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            beats += 1
            try:
                await self._beat(with_status=beats % _STATUS_EVERY_HEARTBEATS == 0)
            except KubernetesFault as fault:
                log.warning("heartbeat missed", node=self._name, error=str(fault))

    async def _beat(self, *, with_status: bool) -> None:
        await self._renew()
        try:
            node = await self._api.read_node()
        except KubernetesFault as fault:
            if fault.status != 404:
                raise
            log.warning("node object is gone, registering again", node=self._name)
            await self._register_once()
            return
        if with_status or _given_up(node):
            await self._publish()

    async def _persist(self, attempt: Callable[[], Awaitable[None]], waiting: str) -> None:
        delay = _FIRST_RETRY_SECONDS
        while True:
            try:
                return await attempt()
            except KubernetesFault as fault:
                log.warning(waiting, node=self._name, error=str(fault))
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_RETRY_SECONDS)

    async def _register_once(self) -> None:
        await self._make_or_adopt()
        await self._publish()
        await self._renew()

    async def _await_pods_welcome(self) -> None:
        delay, told = _FIRST_RETRY_SECONDS, False
        while keeping := _keeping_pods_away(await self._api.read_node()):
            if delay >= _LONGEST_RETRY_SECONDS and not told:
                told = True
                log.warning("node is ready, and the control plane still keeps its taints", taints=sorted(keeping))
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_RETRY_SECONDS)
            await self._renew()

    async def _make_or_adopt(self) -> None:
        new = node_object.new_node(self._name, self._machine, self._facts.pod_cidr, self._facts.annotations)
        if not await self._api.create_node(new):
            labels = node_object.labels(self._name, self._machine)
            ours: dict[str, Any] = {"metadata": {"labels": labels, "annotations": dict(self._facts.annotations)}}
            if not (await self._api.read_node()).spec.pod_cidr:  # it may be set once
                ours["spec"] = node_object.pod_range(self._facts.pod_cidr)
            await self._api.patch_node(ours)

    async def _publish(self) -> None:
        status = node_object.status(self._name, self._machine, self._facts.log_port, self._health, self._now())
        await self._api.patch_node_status(status)

    async def _renew(self) -> None:
        body = node_object.lease(self._name, self._now())
        try:
            await self._api.patch_lease({"spec": body["spec"]})
        except KubernetesFault as fault:
            if fault.status != 404:
                raise
            await self._create_lease(body)

    async def _create_lease(self, body: dict[str, Any]) -> None:
        try:
            await self._api.create_lease(body)
        except KubernetesFault as fault:
            if fault.status not in (404, 409):
                raise
            log.warning("no lease", namespace=node_object.LEASE_NAMESPACE, error=str(fault))


def _keeping_pods_away(node: NodeObject) -> set[str]:
    """The keys of the taints that say the node is not ready."""
    return {taint.get("key", "") for taint in node.spec.taints or ()} & set(node_object.NOT_READY_TAINTS)


def _given_up(node: NodeObject) -> bool:
    """Whether the cluster has stopped hearing us, and says so in our place."""
    held = node.status.conditions or ()
    return any(found.get("type") == "Ready" and found.get("status") == "Unknown" for found in held)
