"""An API server of Secrets, ConfigMaps, Leases and webhook configurations, with versions as a real one keeps them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from embedded.apiserver.apimachinery.json_patch import json_patch
from kube.client import KubeClient

HOOKS = "/apis/admissionregistration.k8s.io/v1/"


class FakeApi:
    """`objects` by path. `refuse` answers writes to a path with a status, once each; `writes` is what was written."""

    def __init__(self, folder: Path) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.writes: list[str] = []
        self.refuse: dict[str, int] = {}
        self._folder = folder
        self._version = 0

    async def __aenter__(self) -> KubeClient:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        config = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self._runner.addresses[0][1]}"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        path = self._folder / "kubeconfig"
        path.write_bytes(msgspec.yaml.encode(config))
        self._client = await KubeClient.connect(path, "test")
        return self._client

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()
        await self._runner.cleanup()

    def put(self, path: str, body: Mapping[str, Any]) -> None:
        """A write of somebody else."""
        self._version += 1
        metadata = {**body.get("metadata", {}), "resourceVersion": str(self._version)}
        self.objects[path] = {**copy.deepcopy(dict(body)), "metadata": metadata}

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else None
        path = f"{request.path}/{body['metadata']['name']}" if request.method == "POST" else request.path
        if request.method != "GET" and path in self.refuse:
            return web.json_response({"message": "refused"}, status=self.refuse.pop(path))
        found = self.objects.get(path)
        if (found is None) is not (request.method == "POST"):
            return web.json_response({"message": "no"}, status=409 if found else 404)
        match request.method:
            case "GET":
                return web.json_response(found)
            case "PUT" if found and body["metadata"].get("resourceVersion") != found["metadata"]["resourceVersion"]:
                return web.json_response({"message": "conflict"}, status=409)
            case "PATCH":
                body = json_patch(copy.deepcopy(found), body)
        self.writes.append(f"{request.method} {path}")
        self.put(path, body)
        return web.json_response(self.objects[path])
