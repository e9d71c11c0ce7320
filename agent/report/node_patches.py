"""Node patches: the newest decision is the last to land, whatever an API server does with the patches of one Node.

A request that hangs may be applied long after its sender gave it up. So each patch names the version of the Node it was
made for: once a newer one has landed, an older one is refused (409). A patch is given up after a while, and at once
when less was decided than it offers (docs/adr/0028).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import structlog

from kube import objects
from kube.client import KubeClient, PatchKind, decode, path_of
from model.fault import KubernetesFault

log = structlog.get_logger()

GAVE_UP = "GaveUp"
"""The reason of a fault that took all the patience there is: nobody needs to rest after it."""
_LONGEST_SECONDS = 30.0
_TRIES = 5
_CONFLICT, _REFUSED = 409, 422
_NOTED = "managedFields"


class Superseded(Exception):
    """Less was decided than this patch offers: it was given up for a newer one."""


class WatchedNode(msgspec.Struct, frozen=True):
    """The Node as the API server told of it last: its condition of a type, and its version, "" where unknown."""

    condition: Callable[[str], objects.Condition | None] = lambda kind: None
    version: Callable[[], str] = str


class _Versioned(msgspec.Struct, frozen=True):
    metadata: objects.Metadata = objects.Metadata()


class _Nodes(msgspec.Struct, frozen=True):
    items: tuple[_Versioned, ...] = ()


class _Flight(msgspec.Struct, frozen=True):
    """A patch under way: what it offers, whether that is more than was acknowledged, whether it overtook another."""

    task: asyncio.Task[None]
    amounts: Mapping[str, int]
    grows: bool
    overtook: bool


class NodePatches:
    """One patch at a time, given up after `patience_seconds`; after each that was not answered in time, twice as long.

    `uncertain`: what the Node says may not be what was acknowledged. A predecessor's patch may be under way as well.
    """

    def __init__(self, client: KubeClient, name: str, version: Callable[[], str], patience_seconds: float) -> None:
        self._client = client
        self._name = name
        self._watched = version
        self._seen = self._version = ""
        self._least = self._patience = patience_seconds
        self._flight: _Flight | None = None
        self._overtook = False
        self.uncertain = True

    async def offer(self, told: dict[str, Any], amounts: Mapping[str, int], acknowledged: Mapping[str, int]) -> None:
        """Patch the status with what is `told`, which offers `amounts`, where `acknowledged` was the last that landed.

        Raises KubernetesFault, and Superseded as soon as `decided` was called with less.
        """
        sure, self.uncertain = not self.uncertain, True
        sending = asyncio.create_task(self._send("status", told, PatchKind.STRATEGIC))
        self._flight = _Flight(sending, amounts, _more(amounts, acknowledged), self._overtook)
        try:
            await asyncio.wait([sending])
        finally:
            self._flight = None
            sending.cancel()
        self._overtook = sending.cancelled()
        if self._overtook:
            raise Superseded
        try:
            sending.result()
        except KubernetesFault as fault:
            self.uncertain = not (sure and 400 <= fault.status < 500)
            raise
        self.uncertain = False

    @property
    def under_way(self) -> bool:
        """A patch of the status is not answered yet."""
        return self._flight is not None

    def decided(self, amounts: Mapping[str, int]) -> None:
        """What the newest tick offers: a patch under way that offers more of anything is given up.

        One that lowers the offer and was preferred to another already is waited for, so that a server that is slower
        than ticks gets to hear of a decline at all.
        """
        flight = self._flight
        if flight is not None and _more(flight.amounts, amounts) and (flight.grows or not flight.overtook):
            flight.task.cancel()

    async def annotate(self, annotations: Mapping[str, str | None]) -> None:
        """Raises KubernetesFault."""
        await self._send("", {"metadata": {"annotations": dict(annotations)}}, PatchKind.MERGE)

    async def _send(self, subresource: str, body: dict[str, Any], kind: PatchKind) -> None:
        seconds = self._patience
        try:
            async with asyncio.timeout(seconds):
                await self._until_no_conflict(path_of("v1/nodes", name=self._name, subresource=subresource), body, kind)
        except TimeoutError as error:
            self._patience = min(seconds * 2, _LONGEST_SECONDS)
            text = f"no answer within {seconds:g} s"
            raise KubernetesFault(f"PATCH Node {self._name}", text, reason=GAVE_UP) from error
        self._patience = self._least

    async def _until_no_conflict(self, path: str, body: dict[str, Any], kind: PatchKind) -> None:
        """Somebody else writes the Node, too: then the same is sent for the newest version, at once.

        Where a stolen token filled managedFields up to what the policy of agents admits, they are emptied: else what it
        offered would stand.
        """
        emptied = False
        for left in reversed(range(_TRIES)):
            try:
                answer = await self._patch(path, body, kind)
            except KubernetesFault as fault:
                if fault.status == _REFUSED and _NOTED in str(fault) and left and not emptied:
                    emptied = True
                    await self._empty_managed_fields(fault)
                    continue
                if fault.status != _CONFLICT or not left:
                    raise
                await self._look()
            else:
                self._learn(decode(answer, _Versioned, f"Node {self._name}"))
                return

    async def _empty_managed_fields(self, fault: KubernetesFault) -> None:
        """An API server takes no word on them beside a status: a request of its own. Others' notes are lost by it."""
        log.warning("the Node's managedFields leave no room and are emptied", error=str(fault))
        body: dict[str, Any] = {"metadata": {_NOTED: [{}]}}
        answer = await self._client.patch(path_of("v1/nodes", name=self._name), body, PatchKind.MERGE)
        self._learn(decode(answer, _Versioned, f"Node {self._name}"))

    async def _look(self) -> None:
        """As a list of one, since an agent may list nodes and not get them."""
        query = {"fieldSelector": f"metadata.name={self._name}"}
        answer = await self._client.request("GET", path_of("v1/nodes"), query=query)
        for node in decode(answer, _Nodes, "NodeList").items:
            self._learn(node)

    async def _patch(self, path: str, body: dict[str, Any], kind: PatchKind) -> bytes:
        watched = self._watched()
        if watched != self._seen:
            self._seen = self._version = watched
        if self._version:
            body = {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": self._version}}
        content, seconds = msgspec.json.encode(body), self._patience
        # The server is asked to give up as well: what still waits inside it then does not land later.
        return await self._client.request(
            "PATCH",
            path,
            query={"timeout": f"{seconds * 1000:.0f}ms"},
            body=content,
            content_type=kind.value,
            timeout_seconds=_LONGEST_SECONDS * 2,
        )

    def _learn(self, node: _Versioned) -> None:
        self._version = node.metadata.resource_version or self._version


def _more(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    """Of any resource; one that is not named is not offered."""
    return any(amount > other.get(name, 0) for name, amount in one.items())
