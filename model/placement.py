"""Placement: which pod goes to which node, and how far that has come."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class PlacementState(StrEnum):
    """ASSUMED counts against the node at once; BOUND is confirmed by the API server."""

    ASSUMED = "assumed"
    BOUND = "bound"


class Placement(msgspec.Struct, frozen=True):
    """One pod on one node."""

    pod_key: str
    pod_uid: str
    node: str
    state: PlacementState = PlacementState.ASSUMED
