"""Queues: who shares the cluster with whom."""

from __future__ import annotations

import msgspec

DEFAULT_QUEUE = "default"


class Queue(msgspec.Struct, frozen=True):
    """A leaf that takes workloads; `weight` is its share against its siblings."""

    name: str = DEFAULT_QUEUE
    weight: int = 1
