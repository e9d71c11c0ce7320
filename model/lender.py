"""The lender: what a node offers for lending, and when its agent last confirmed it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

SILENT_SECONDS = 180.0
"""An agent renews its condition each minute (`heartbeat_seconds`); three in a row missed is no accident."""


class Lender(msgspec.Struct, frozen=True):
    """`offered` are the lent resources of which its status has any; `heartbeat_seconds` is by the node's own clock.

    The heartbeat is None where no agent of ours ever spoke for the node. `version` is the object's resourceVersion;
    `ready` is whether the condition says that the node lends, `labels` are the node's.
    """

    node: str
    version: str
    offered: tuple[str, ...] = ()
    heartbeat_seconds: float | None = None
    ready: bool = False
    labels: Mapping[str, str] = {}
