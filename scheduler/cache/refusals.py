"""Objects that cannot be read: told once per version, and what follows for the nodes they are on."""

from __future__ import annotations

import traceback
from pathlib import PurePath

import msgspec

from kube.objects import Metadata
from model.fault import ConfigurationFault
from scheduler.ports import NamedObject


class Refusal(msgspec.Struct, frozen=True):
    """An object that cannot be read; `pod` where its owner can be told on the object itself.

    `counts`: it was read, and counts but for what the message says.
    """

    kind: str
    message: str
    pod: NamedObject | None = None
    counts: bool = False


class Refusals:
    """By kind and key. What an unreadable pod takes of its node is not known, so that node is `closed` meanwhile."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}
        self._nodes: dict[str, str] = {}
        self._new: list[tuple[str, Refusal]] = []

    @property
    def closed(self) -> frozenset[str]:
        """Names of nodes that get no new pods."""
        return frozenset(self._nodes.values())

    def add(
        self, where: str, metadata: Metadata, message: str, pod: NamedObject | None = None, *, counts: bool = False
    ) -> None:
        """Told once per version; our own condition write makes a new one with the same message, told already too."""
        version = f"{metadata.uid} {message}"
        if self._told.get(where) != version:
            self._told[where] = version
            self._new.append((where, Refusal(where.partition(" ")[0], message, pod, counts)))

    def settled(self, where: str) -> None:
        """The object is gone, or can be read: what was wrong is no news any more, and what will be is."""
        if self._told.pop(where, None) is not None:
            self._new = [(at, refusal) for at, refusal in self._new if at != where]

    def close(self, uid: str, node: str) -> None:
        """An unreadable pod is on this node."""
        self._nodes[uid] = node

    def reopen(self, uid: str) -> str | None:
        """The pod can be read, or is gone: the node it closed, None where it closed none."""
        return self._nodes.pop(uid, None)

    def take(self) -> list[Refusal]:
        """What was refused since the last call."""
        found, self._new = self._new, []
        return [refusal for _, refusal in found]


def described(error: Exception) -> str:
    """Where an error of ours is, and its kind: the same for every workload that it concerns."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({PurePath(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{where}"


def of_ours(where: str, error: Exception) -> ConfigurationFault:
    """An object that cannot be read by an error of ours is left out as any other that cannot be."""
    return ConfigurationFault(where, f"cannot be read by an error of the scheduler: {described(error)}", "report it")
