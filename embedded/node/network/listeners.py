"""Who listens on a TCP port: by process, since all pods share this machine's network."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import psutil


def listening(pids: Iterable[int], port: int) -> list[str]:
    """Addresses at which any of these processes listens on it, IPv4 ones first."""
    found: set[str] = set()
    for pid in pids:
        with suppress(psutil.Error, OSError):
            connections = psutil.Process(pid).net_connections("tcp")
            listeners = (each for each in connections if each.status == psutil.CONN_LISTEN and each.laddr.port == port)
            found |= {each.laddr.ip for each in listeners}
    return sorted(found, key=lambda address: (":" in address, address))
