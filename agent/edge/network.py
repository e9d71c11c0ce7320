"""Traffic of the node's own interfaces, by netlink (pyroute2)."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

_INTERVAL_SECONDS = 15.0
"""A netlink dump costs milliseconds, so it stays far from the tick."""


class InterfaceTraffic(msgspec.Struct, frozen=True):
    """Bytes since the interface came up."""

    name: str
    received_bytes: int
    sent_bytes: int


def interfaces() -> tuple[InterfaceTraffic, ...]:
    """Every interface but loopback. Raises OSError or NetlinkError where netlink is not granted."""
    with IPRoute() as route:
        found = []
        for link in route.get_links():
            name, counters = link.get_attr("IFLA_IFNAME"), link.get_attr("IFLA_STATS64")
            if name != "lo" and counters is not None:
                found.append(InterfaceTraffic(name, counters["rx_bytes"], counters["tx_bytes"]))
        return tuple(sorted(found, key=lambda traffic: traffic.name))


class NetworkEdge:
    """Keeps the newest counters; an empty tuple where netlink is not granted."""

    def __init__(self) -> None:
        self.newest: tuple[InterfaceTraffic, ...] = ()

    async def run(self) -> None:
        """Never returns."""
        while True:
            with contextlib.suppress(OSError, NetlinkError):
                self.newest = await asyncio.to_thread(interfaces)
            await asyncio.sleep(_INTERVAL_SECONDS)
