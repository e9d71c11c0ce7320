"""Traffic of the node's own interfaces (/proc/net/dev), and of each pod by the interface that leads into it.

A pod's traffic is counted on the host side of its link, so that nothing enters the pod's namespace. A netlink dump of
225 links takes 168 ms of CPU (reference: kernel measurements), so links are looked up only for pods that are new.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog

from agent.core.observe import network
from agent.core.observe.network import InterfaceTraffic
from agent.core.observe.observation import NetworkBytes

log = structlog.get_logger()

_COUNTERS_SECONDS = 5.0
_LINKS_SECONDS = 15.0
_MOST_LISTENERS_BYTES = 1 << 20
"""The kernel lists those that listen before all connections, of which there may be very many."""
_TRIES = 3
"""A pod's process may be there before its link; a pod of the host's own network never has one."""


def interfaces(proc: Path = Path("/proc")) -> tuple[InterfaceTraffic, ...]:
    """Every interface but loopback. Raises OSError or ValueError."""
    return network.interfaces((proc / "net/dev").read_bytes())


def users_listening_on(port: int, proc: Path = Path("/proc")) -> tuple[int, ...]:
    """Users whose processes listen on a TCP port of this network; empty where that cannot be told."""
    found: set[int] = set()
    for name in ("net/tcp", "net/tcp6"):
        with contextlib.suppress(OSError, ValueError), (proc / name).open("rb") as file:
            table, _, _ = file.read(_MOST_LISTENERS_BYTES).rpartition(b"\n")
            found |= network.listening_users(table, port)
    return tuple(sorted(found))


class NetworkEdge:
    """Keeps the newest counters; an empty tuple where they cannot be read."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self.newest: tuple[InterfaceTraffic, ...] = ()

    async def run(self) -> None:
        """Never returns."""
        while True:
            try:
                self.newest = interfaces(self._proc)
            except (OSError, ValueError) as error:
                if self.newest:
                    log.warning("interface counters unreadable", error=str(error))
                self.newest = ()
            await asyncio.sleep(_COUNTERS_SECONDS)


class PodNetworks:
    """Traffic of each pod that has an interface of its own.

    `pods` gives uid → a process id of the pod, `traffic` the newest counters; neither may wait. `links` gives uid →
    host-side interfaces of uid → pid; it is called in a thread, and raises OSError where that cannot be told.
    """

    def __init__(
        self,
        pods: Callable[[], Mapping[str, int]],
        traffic: Callable[[], tuple[InterfaceTraffic, ...]],
        links: Callable[[Mapping[str, int]], Mapping[str, tuple[str, ...]]],
    ) -> None:
        self._pods = pods
        self._traffic = traffic
        self._links = links
        self._names: dict[str, tuple[str, ...]] = {}
        self._tries: dict[tuple[str, int], int] = {}
        self._refused = False

    @property
    def newest(self) -> Mapping[str, NetworkBytes]:
        """By uid; pods of the host's network and pods not looked up yet are not in it."""
        return network.bytes_of_pods(self._names, self._traffic())

    async def run(self) -> None:
        """Never returns."""
        while True:
            await self.refresh()
            await asyncio.sleep(_LINKS_SECONDS)

    async def refresh(self) -> None:
        """Forget pods that are gone and look up those that are new; without a new one nothing is asked."""
        pods = dict(self._pods())
        self._tries = {pod: self._tries.get(pod, 0) for pod in pods.items()}
        self._names = {uid: names for uid, names in self._names.items() if uid in pods}
        due = {uid: pid for uid, pid in pods.items() if self._tries[uid, pid] < (1 if uid in self._names else _TRIES)}
        if not due:
            return
        try:
            self._names |= await asyncio.to_thread(self._links, due)
        except OSError as error:
            if not self._refused:
                log.warning("netlink refused", error=str(error), effect="no network counters of pods")
            self._refused = True
            return
        self._refused = False
        for pod in due.items():
            self._tries[pod] += 1
