"""Workload: the unit that queues, is admitted, placed and explained — a job, a gang or a lone pod."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from model.resources import ResourceVector

DEFAULT_GANG_TIMEOUT_SECONDS = 600.0
"""Koordinator CoschedulingArgs.defaultTimeout."""


class GangMode(StrEnum):
    """Koordinator's gang mode; an illegal text counts as STRICT."""

    STRICT = "Strict"
    NON_STRICT = "NonStrict"


class GangSource(StrEnum):
    """Where a pod's gang is defined."""

    POD_GROUP = "PodGroup"
    ANNOTATION = "annotation"


class GangSpec(msgspec.Struct, frozen=True):
    """How many members must be placed together; `problem` says why the definition cannot be used."""

    min_member: int
    total: int = 0
    mode: GangMode = GangMode.STRICT
    timeout_seconds: float = DEFAULT_GANG_TIMEOUT_SECONDS
    problem: str = ""


class GangMembership(msgspec.Struct, frozen=True):
    """A pod's own words about its gang; `spec` is None where a PodGroup object holds it."""

    namespace: str
    name: str
    source: GangSource
    spec: GangSpec | None = None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class Gang(msgspec.Struct, frozen=True):
    """A PodGroup object translated; `created_seconds` is Unix time."""

    namespace: str
    name: str
    spec: GangSpec
    uid: str = ""
    phase: str = ""
    created_seconds: float = 0.0

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class PodSet(msgspec.Struct, frozen=True):
    """Pods of one workload with the same request; `uids` in the order in which they are placed."""

    name: str
    uids: tuple[str, ...]
    request: ResourceVector

    @property
    def count(self) -> int:
        return len(self.uids)


class Workload(msgspec.Struct, frozen=True):
    """`key` is `namespace/name` of the gang or pod; times are Unix seconds.

    `min_total` counts members that must end up placed, those already bound included; `bound` is how many are.
    """

    key: str
    queue: str
    priority: int
    pod_sets: tuple[PodSet, ...]
    min_total: int = 1
    bound: int = 0
    gang: GangSpec | None = None
    uid: str = ""
    created_seconds: float = 0.0
    eligible_seconds: float = 0.0
    deadline_seconds: float | None = None
