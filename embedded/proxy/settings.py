"""How the proxy behaves, as values."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta


class Pick(StrEnum):
    """Which of several endpoints the next connection goes to."""

    RANDOM = "random"
    ROUND_ROBIN = "round-robin"


class ProxySettings(msgspec.Struct, frozen=True):
    """Policy of the proxy."""

    pick: Annotated[Pick, Meta(description="which endpoint the next connection goes to")] = Pick.RANDOM
    most_connections: Annotated[int, Meta(ge=1, description="open at a time; further ones are closed at once")] = 1024
    connect_seconds: Annotated[float, Meta(gt=0, description="until an endpoint that does not answer is given up")] = (
        3.0
    )
    most_tries: Annotated[int, Meta(ge=1, description="endpoints tried for a connection")] = 3
    routed: Annotated[
        bool, Meta(description="whether addresses beyond the loopback are served, each made this machine's meanwhile")
    ] = False
    drain_seconds: Annotated[float, Meta(ge=0, description="connections to what is gone may go on for so long")] = 15.0
    retry_seconds: Annotated[
        float, Meta(gt=0, description="until an address that cannot be listened on is tried again")
    ] = 5.0


class ProxyAccess(msgspec.Struct, frozen=True):
    """Where the API server is, and whom to tell that the proxy serves."""

    kubeconfig: Path | None = None
    ready_file: Path | None = None
