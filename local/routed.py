"""Addresses of pods that are this machine's by a route: a real API server takes no loopback address for an endpoint."""

from __future__ import annotations

import fcntl
import os
from contextlib import AsyncExitStack
from pathlib import Path

from embedded import local_routes
from embedded.node.network.addresses import ROUTED
from model.fault import ConfigurationFault

_LOCK = Path("/run/sublet-up-join.lock")


async def take_addresses(held: AsyncExitStack, option: str, *used: str) -> None:
    """Until `held` ends. `used` are networks that must be free as well. Raises Fault naming the option."""
    fix = "run it as root: addresses of pods and Services become this machine's"
    try:
        lock = held.enter_context(os.fdopen(os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)))
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for network in (str(ROUTED), *used):
            await local_routes.refuse_used(network)
        await local_routes.add(str(ROUTED))
    except BlockingIOError as error:
        what = "another `sublet up` with --join or --apiserver runs here"
        raise ConfigurationFault(option, what, "stop that one first") from error
    except OSError as error:
        raise ConfigurationFault(option, f"not possible: {error.strerror or error}", fix) from error
    held.push_async_callback(local_routes.remove, str(ROUTED))
