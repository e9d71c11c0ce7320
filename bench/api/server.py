"""The embedded API server as `python -m embedded.apiserver` builds it, with a way to fill it and to time it inside."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil

from bench.api.child import serve_commands
from bench.api.pods import LARGE_BYTES, NODES, body, named, node_of, template
from bench.api.receiver import digest
from embedded.apiserver.__main__ import settle_collector
from embedded.apiserver.apimachinery.objects import Object, decode, decode_object
from embedded.apiserver.apimachinery.resource_types import LEASES, PODS
from embedded.apiserver.apimachinery.resource_types import NODES as NODE_TYPE
from embedded.apiserver.apimachinery.selectors import EVERYTHING, Filter
from embedded.apiserver.authentication.authenticator import Credentials
from embedded.apiserver.authentication.token_file import TokenFile
from embedded.apiserver.authorization.bootstrap_roles import create_default_roles
from embedded.apiserver.bootstrap import create_system_objects
from embedded.apiserver.controller_manager import Controllers
from embedded.apiserver.http.router import Router
from embedded.apiserver.http.server import Server, tls_context
from embedded.apiserver.request.messages import Request, Response
from embedded.apiserver.request.user_info import MASTERS, UserInfo, known_user
from embedded.apiserver.storage.journal import Journal
from embedded.apiserver.storage.records import WatchEvent
from embedded.apiserver.storage.state_directory import StateDirectory
from embedded.apiserver.storage.watch_queue import Watcher

TOKEN = "bench"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
_LISTS: dict[str, tuple[dict[str, str], str]] = {
    "list": ({}, ""),
    "page": ({"limit": "500"}, ""),
    "table page": ({"limit": "500"}, _TABLE),
    "table": ({}, _TABLE),
    "node": ({"fieldSelector": "spec.nodeName=node-7"}, ""),
}
_BURST = 64
_LEASE_SECONDS = 3600


class ApiCommands:
    """The commands; `watchers` are those that came since the server began."""

    def __init__(self, core: Router) -> None:
        self._core = core
        self._template = template(LARGE_BYTES)
        self._watchers: list[Watcher[WatchEvent]] = []
        self._open = core.store.watch
        core.store.watch = self._watch  # type: ignore[method-assign]

    def _watch(self, type_id: str, wanted: Filter, since: int | None, limit: int = 8192) -> Watcher[WatchEvent]:
        self._watchers.append(self._open(type_id, wanted, since, limit))
        return self._watchers[-1]

    async def fill(self, command: dict[str, Any]) -> dict[str, Any]:
        """Pods 0 to `count`: one made as any client's, the others its copies, for only their bytes matter."""
        for number in range(NODES):
            self._make_node(node_of(number))
        made = self._core.resources.create(PODS, "default", decode(body(self._template, 0)))
        for number in range(1, command["count"]):
            self._put(made, number)
            if number % _BURST == 0:
                await asyncio.sleep(0)
        held = self._core.store.get(PODS.id, "default", named(command["count"] - 1))
        assert held is not None
        return {"bytes": len(held.body)}

    def _make_node(self, name: str) -> None:
        """Ready, and with a lease that outlives the benchmark: pods of other nodes are collected."""
        resources = self._core.resources
        resources.create(NODE_TYPE, "", {"metadata": {"name": name}})
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        resources.update(NODE_TYPE, "", name, lambda node: {**node, "status": status}, subresource="status")
        spec = {"holderIdentity": name, "leaseDurationSeconds": _LEASE_SECONDS}
        resources.create(LEASES, "kube-node-lease", {"metadata": {"name": name}, "spec": spec})

    def _put(self, pod: Object, number: int) -> int:
        pod["metadata"] |= {"name": named(number), "uid": f"00000000-0000-4000-8000-{number:012d}"}
        pod["spec"]["nodeName"] = node_of(number)
        return self._core.store.put(PODS, pod).revision

    async def lists(self, command: dict[str, Any]) -> dict[str, Any]:
        """Seconds of each kind of list, in `rounds` that do each of them once, and of the plain join."""
        taken: dict[str, list[float]] = {name: [] for name in ("join", *_LISTS)}
        for _ in range(command["rounds"]):
            taken["join"].append(self._join())
            for name, (query, accept) in _LISTS.items():
                taken[name].append(await self._list(query, accept))
        return taken

    def _join(self) -> float:
        begun = time.perf_counter()
        joined = b",".join([record.rest for record in self._core.store.select(PODS.id, EVERYTHING)])
        taken = time.perf_counter() - begun
        assert joined
        return taken

    async def _list(self, query: dict[str, str], accept: str) -> float:
        begun = time.perf_counter()
        request = Request("GET", "/api/v1/pods", query, {"accept": accept}, b"", UserInfo("admin", groups=(MASTERS,)))
        answer = await self._core.handle(request)
        taken = time.perf_counter() - begun
        assert isinstance(answer, Response) and answer.status == 200
        return taken

    async def publish(self, command: dict[str, Any]) -> dict[str, Any]:
        """`events` changes of the first `pods` pods, the next ones when every watcher has taken those before."""
        revisions: dict[str, list[int]] = {"": []}
        held = self._core.store.get(PODS.id, "default", named(0))
        assert held is not None
        pod, begun = decode_object(held.body), time.monotonic()
        for number in range(command["events"]):
            revision = self._put(pod, number % command["pods"])
            revisions[""].append(revision)
            revisions.setdefault(node_of(number % command["pods"]), []).append(revision)
            if number % _BURST == 0:
                await self._taken()
        return {"begun": begun, "digests": {node: digest(each) for node, each in revisions.items()}}

    async def _taken(self) -> None:
        self._watchers = [watcher for watcher in self._watchers if not watcher.closed]
        while True:
            await asyncio.sleep(0)
            if all(watcher.idle for watcher in self._watchers):
                return

    async def memory(self, command: dict[str, Any]) -> dict[str, Any]:
        """Full collections, and what the process holds."""
        return {"pauses": collections(command["rounds"]), "rss_bytes": psutil.Process().memory_info().rss}


def collections(rounds: int) -> list[float]:
    """Seconds of so many full garbage collections; another before them takes what has gathered."""
    gc.collect()
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        gc.collect()
        taken.append(time.perf_counter() - begun)
    return taken


@contextlib.asynccontextmanager
async def _journal(path: Path | None) -> AsyncIterator[Journal | None]:
    if path is None:
        yield None
        return
    journal = Journal(StateDirectory(path))
    try:
        yield journal
    finally:
        await journal.close()


async def _serve(keys: Path, state: Path | None) -> None:
    async with _journal(state) as journal:
        users = TokenFile({TOKEN: known_user("admin", groups=(MASTERS,))})
        core = Router(time.time, log=journal, credentials=Credentials(users))
        create_system_objects(core.resources)
        create_default_roles(core.resources)
        server = Server(core, core.authenticator, tls_context(keys / "tls.crt", keys / "tls.key"))
        controllers = Controllers(core.resources, core.writes)
        port = await server.start("127.0.0.1", 0)
        controllers.start()
        settle_collector()

        async def where(command: dict[str, Any]) -> dict[str, Any]:
            return {"port": port, "revision": core.store.revision}

        bench = ApiCommands(core)
        handlers = {"where": where, "fill": bench.fill, "lists": bench.lists}
        try:
            await serve_commands({**handlers, "publish": bench.publish, "memory": bench.memory})
        finally:
            await controllers.stop()
            await server.stop()
            await core.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.api.server", description=__doc__)
    parser.add_argument("--keys", type=Path, required=True, help="directory of tls.crt and tls.key")
    parser.add_argument("--state-dir", type=Path, help="as that of the API server")
    arguments = parser.parse_args()
    asyncio.run(_serve(arguments.keys, arguments.state_dir))


if __name__ == "__main__":
    main()
