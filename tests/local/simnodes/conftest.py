"""Simulated nodes on an API without sockets: the server's core is asked directly, and time moves only when told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from embedded.apiserver.bootstrap import create_system_objects
from embedded.apiserver.controller_manager import Controllers
from embedded.apiserver.handlers.watch import WatchLimits
from embedded.apiserver.http.router import Router
from embedded.apiserver.request import messages
from embedded.apiserver.request.attributes import AllowAll
from embedded.node.objects.pod import NodeObject, PodObject
from kube.informer import Change, ChangeKind
from local.simnodes.cluster import SimulatedCluster
from local.simnodes.requests import QueuedWrite
from local.simnodes.settings import Simulation
from local.simnodes.usage import OnlineLoad, UsageShare
from local.simnodes.writer import Writer
from model.fault import KubernetesFault

NOON = 1_790_000_000.0
Object = dict[str, Any]


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


class Steady:
    """The same online work everywhere, always."""

    def __init__(self, ratio: float = 0.25) -> None:
        self.ratio = ratio

    def at(self, index: int, seconds: float) -> UsageShare:
        return UsageShare(self.ratio, self.ratio)


class CoreClient:
    """Implements writer.Client; `sent` are all requests, as (method, path)."""

    def __init__(self, clock: Clock) -> None:
        self.core = Router(clock, None, WatchLimits(bookmark_seconds=0.01), 8192, authorizer=AllowAll())
        create_system_objects(self.core.resources)
        self.controllers = Controllers(self.core.resources, self.core.writes)
        self.sent: list[tuple[str, str]] = []

    async def request(
        self, method: str, path: str, *, body: bytes | None = None, content_type: str = "application/json"
    ) -> bytes:
        self.sent.append((method, path))
        url = urlsplit(path)
        headers = {"content-type": content_type}
        query = dict(parse_qsl(url.query))
        answer: Any = await self.core.handle(messages.Request(method, url.path, query, headers, body or b""))
        if answer.status >= 400:
            told = json.loads(answer.body)
            raise KubernetesFault(path, told["message"], status=answer.status, reason=told.get("reason", ""))
        return bytes(answer.body)


class Stage:
    """A simulated cluster and its API; `step` lets time pass as the program does."""

    def __init__(self, simulation: Simulation, load: OnlineLoad) -> None:
        self.clock = Clock()
        self.client = CoreClient(self.clock)
        self._parts = simulation, load
        self.restart()

    def restart(self) -> None:
        """Another simulation on the same API, as after an end of the program."""
        self.cluster = SimulatedCluster(*self._parts)
        self._seen: dict[str, dict[str, Any]] = {"nodes": {}, "pods": {}}
        self._observe()
        self.cluster.begin(self.clock.now)
        self._write(self.cluster.take())
        self._observe()

    def step(self, seconds: float) -> list[QueuedWrite]:
        """Time passes to each moment at which something is due; returns what was written."""
        end, written = self.clock.now + seconds, []
        while True:
            self._observe()
            self.cluster.advance(self.clock.now)
            writes = self.cluster.take()
            written += writes
            self._write(writes)
            due = self.cluster.next_at
            if due is None or due > end:
                break
            self.clock.now = max(due, self.clock.now)
        self.clock.now = end
        self._observe()
        return written

    def call(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Object:
        data = None if body is None else json.dumps(body).encode()
        return dict(json.loads(asyncio.run(self.client.request(method, path, body=data, content_type=kind))))

    def get(self, path: str) -> Object:
        return self.call("GET", path)

    def add_pod(self, name: str, node: str = "sim-0", annotations: Mapping[str, str] = {}, **spec: Any) -> None:
        requests = spec.pop("requests", {"cpu": "1", "memory": "1Gi"})
        labels = spec.pop("labels", {})
        container = {"name": "a", "image": "i", "resources": {"requests": requests, "limits": requests}}
        metadata = {"name": name, "labels": labels, "annotations": dict(annotations)}
        body = {"metadata": metadata, "spec": {"nodeName": node, "containers": [container], **spec}}
        self.call("POST", "/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", **body})

    def pod(self, name: str) -> Object:
        return self.get(f"/api/v1/namespaces/default/pods/{name}")

    def node(self, name: str = "sim-0") -> Object:
        return self.get(f"/api/v1/nodes/{name}")

    def _write(self, writes: list[QueuedWrite]) -> None:
        async def write() -> None:
            writer = Writer(self.client)
            writer.put(writes)
            working = asyncio.create_task(writer.run())
            await writer.done()
            working.cancel()
            assert not writer.refused

        asyncio.run(write())

    def _observe(self) -> None:
        """What a watch would have told since the last look."""
        for kind, type_ in (("nodes", NodeObject), ("pods", PodObject)):
            found = {item["metadata"]["uid"]: item for item in self.get(f"/api/v1/{kind}")["items"]}
            before, self._seen[kind] = self._seen[kind], found
            for uid, item in found.items():
                if before.get(uid) != item:
                    self._tell(ChangeKind.MODIFIED if uid in before else ChangeKind.ADDED, type_, item)
            for uid in before.keys() - found.keys():
                self._tell(ChangeKind.DELETED, type_, before[uid])

    def _tell(self, kind: ChangeKind, type_: type[Any], item: Object) -> None:
        change = Change(kind, msgspec.convert(item, type_))
        if type_ is NodeObject:
            self.cluster.observe_node(change)
        else:
            self.cluster.observe_pod(change, self.clock.now)


@pytest.fixture
def make_stage() -> Callable[[Simulation, OnlineLoad], Stage]:
    return Stage


@pytest.fixture
def stage() -> Stage:
    """Three nodes of 32 CPUs and 128 GiB, registered, a quarter in use."""
    return Stage(Simulation(3), Steady())
