"""Networks whose every address is this machine's own, for as long as a route of the kernel's local table says so.

    ip route replace local 198.18.0.0/15 dev lo

Nothing is sent anywhere: whoever on this machine connects to such an address reaches who listens there.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from embedded.fault import ConfigurationFault

_LOCAL_TABLE = 255
_GONE = frozenset({errno.ESRCH, errno.ENOENT})


async def add(network: str) -> None:
    """Make an IPv4 address or network local. Raises OSError where the kernel refuses, as it does without root."""
    await asyncio.to_thread(_tell, "replace", network)


async def remove(network: str) -> None:
    """Take it back; one that is not there is fine. Raises OSError."""
    try:
        await asyncio.to_thread(_tell, "del", network)
    except OSError as error:
        if error.errno not in _GONE:
            raise


async def refuse_used(network: str) -> None:
    """Raises ConfigurationFault where this machine has an address or a route in the network already."""
    ours = ipaddress.IPv4Network(network)
    for other in await asyncio.to_thread(_known):
        if ours.overlaps(other) and other != ours:
            raise ConfigurationFault(
                network, f"this machine has a route to {other}", "pods cannot have addresses of it"
            )


def _known() -> list[ipaddress.IPv4Network]:
    """Where the kernel's routes lead; the default route leads everywhere and is none of them."""
    with IPRoute() as link:
        found = [(route.get_attr("RTA_DST"), route["dst_len"]) for route in link.get_routes(family=socket.AF_INET)]
    return [ipaddress.IPv4Network(f"{address}/{bits}", strict=False) for address, bits in found if address]


def _tell(command: str, network: str) -> None:
    destination = str(ipaddress.IPv4Network(network))
    try:
        # A socket of its own thread, since it runs an event loop inside.
        with IPRoute() as link:
            lo = link.link_lookup(ifname="lo")[0]
            link.route(command, dst=destination, table=_LOCAL_TABLE, type="local", scope="host", oif=lo)
    except NetlinkError as error:
        raise OSError(error.code, f"{destination}: {error}") from error
