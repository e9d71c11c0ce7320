"""Result of a check of a written object, and what the check may read of the cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import msgspec

from admission.core.queue_rules import KnownQueue
from model.priority import PriorityClass
from model.profile import ColocationProfile


class CheckResult(msgspec.Struct, frozen=True):
    """Sentences: what is wrong, and what only looks wrong."""

    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class CheckContext(Protocol):
    """The cluster as far as it is known here; answers may be a little old and are never waited for."""

    def profiles(self) -> tuple[ColocationProfile, ...]:
        """By name."""
        ...

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """None for a namespace that is not known."""
        ...

    def classes(self) -> Mapping[str, PriorityClass]: ...

    def queues(self) -> Mapping[str, KnownQueue] | None:
        """By name; None while it is not known which there are."""
        ...

    def local_queues(self) -> Collection[str]:
        """Names of LocalQueues, of whichever namespaces."""
        ...

    def node_labels(self) -> Mapping[str, Mapping[str, str]]:
        """By node."""
        ...
